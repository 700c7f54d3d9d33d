//! `route.*`: metrics of a route of the main table, in the words that ip-route(8) prints and accepts.

use goodput_model::SettingRef;

use super::row::{At, Row};
use crate::command::{Command, Condition};
use crate::error::RemoteError;
use crate::shell::Shell;
use goodput_settings::value;

/// One metric.
pub(super) struct Metric {
    /// The setting.
    pub(super) id: &'static str,
    /// Its name in a route.
    word: &'static str,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    /// A number within a range.
    Number(u32, u32),
    /// A size, bytes.
    Bytes,
    /// Milliseconds, which are printed with their unit.
    Milliseconds,
    /// 1 and 0 for on and off.
    Switch,
    /// `ecn`, or nothing.
    Ecn,
    /// A name.
    Name,
}

const fn metric(id: &'static str, word: &'static str, kind: Kind) -> Metric {
    Metric { id, word, kind }
}

/// The ranges are those of the local settings, and those in net/ipv4/metrics.c.
pub(super) static ROWS: [Metric; 9] = [
    metric("route.window", "window", Kind::Bytes),
    metric("route.initcwnd", "initcwnd", Kind::Number(1, 65535)),
    metric("route.initrwnd", "initrwnd", Kind::Number(1, 65535)),
    metric("route.mtu", "mtu", Kind::Number(68, 65520)),
    metric("route.advmss", "advmss", Kind::Number(48, 65495)),
    metric("route.congctl", "congctl", Kind::Name),
    metric("route.quickack", "quickack", Kind::Switch),
    metric("route.rto_min", "rto_min", Kind::Milliseconds),
    metric("route.ecn", "features", Kind::Ecn),
];

/// Words followed by one value (ip/iproute.c `print_route`).
const WITH_VALUE: [&str; 25] = [
    "via",
    "dev",
    "proto",
    "scope",
    "src",
    "metric",
    "table",
    "pref",
    "mtu",
    "advmss",
    "window",
    "initcwnd",
    "initrwnd",
    "congctl",
    "quickack",
    "rto_min",
    "features",
    "hoplimit",
    "rtt",
    "rttvar",
    "ssthresh",
    "cwnd",
    "reordering",
    "fastopen_no_cookie",
    "realm",
];

/// States of a route, which nobody sets.
const STATES: [&str; 2] = ["linkdown", "dead"];

/// The pairs of words of a route; `lock` belongs to the following value.
type Pairs = Vec<(String, String)>;

fn show(at: &At<'_>) -> Command {
    let words = [family(at), "-o", "route", "show", "table", "main", "exact", at.scope()];
    Command::new("ip", words)
}

/// Whether there is a route to this destination.
pub(super) fn is_there(shell: &mut dyn Shell, setting: &SettingRef) -> Result<bool, RemoteError> {
    let command = show(&At { shell, setting });
    Ok(!shell.output(&command)?.trim().is_empty())
}

/// The route, and its line.
fn route(at: &mut At<'_>) -> Result<(Pairs, String), RemoteError> {
    let command = show(at);
    let printed = at.shell.output(&command)?;
    let line = printed.trim_end();
    if line.is_empty() {
        return Err(at.refused("there is no such route in the main table"));
    }
    if line.contains('\n') {
        return Err(at.refused("there are several such routes"));
    }
    match parse(line) {
        Some(pairs) => Ok((pairs, line.into())),
        None => Err(at.misread(&command, line, "one plain route with one next hop")),
    }
}

fn parse(line: &str) -> Option<Pairs> {
    let mut words = line.split_whitespace().filter(|word| !STATES.contains(word)).peekable();
    let destination = words.next()?;
    let mut pairs = Vec::new();
    while let Some(word) = words.next() {
        if word == "onlink" {
            continue;
        }
        let known = WITH_VALUE.contains(&word);
        // rto_min is always locked, and accepts no such word (ip/iproute.c `iproute_modify`).
        let lock = words.next_if_eq(&"lock").filter(|_| word != "rto_min");
        let lock = lock.map(|_| "lock ").unwrap_or_default();
        let value = words.next().filter(|_| known)?;
        pairs.push((word.to_owned(), format!("{lock}{value}")));
    }
    let plain = destination.bytes().all(|b| b.is_ascii_alphanumeric() || b".:/".contains(&b));
    plain.then_some(pairs)
}

/// Milliseconds of `5ms`, `200ms`, `1s` or `1.5s`.
fn milliseconds(text: &str) -> Option<u32> {
    match text.strip_suffix("ms") {
        Some(number) => number.parse().ok(),
        None => {
            let seconds: f64 = text.strip_suffix('s')?.parse().ok()?;
            let milliseconds = (seconds * 1000.0).round();
            let fits = (0.0..=f64::from(u32::MAX)).contains(&milliseconds);
            fits.then_some(milliseconds as u32)
        }
    }
}

impl Metric {
    /// Converts a printed value to the setting's value.
    fn setting(&self, printed: &str) -> Option<String> {
        let printed = printed.strip_prefix("lock ").unwrap_or(printed);
        Some(match self.kind {
            Kind::Number(..) | Kind::Bytes => printed.parse::<u32>().ok()?.to_string(),
            Kind::Milliseconds => milliseconds(printed)?.to_string(),
            Kind::Switch => value::on_off(printed.parse::<u32>().ok()? != 0).into(),
            Kind::Ecn => (printed == "ecn").then(|| "on".to_owned())?,
            Kind::Name => printed.into(),
        })
    }

    /// Converts the setting's value to what ip(8) accepts.
    fn argument(&self, value: &str) -> String {
        match self.kind {
            Kind::Milliseconds => format!("{value}ms"),
            Kind::Switch => u32::from(value == "on").to_string(),
            Kind::Ecn => "ecn".into(),
            Kind::Number(..) | Kind::Bytes | Kind::Name => value.into(),
        }
    }

    /// How ip(8) would print this new value; empty for the default, which ip(8) doesn't print.
    fn printed(&self, value: &str) -> Vec<String> {
        if value == value::DEFAULT {
            return Vec::new();
        }
        let mut printed = vec![self.argument(value)];
        if let (Kind::Milliseconds, Ok(milliseconds)) = (self.kind, value.parse::<u32>()) {
            // `print_rta_metrics`, ip/iproute.c: at least one second is printed in seconds in some versions.
            printed.push(format!("{}s", f64::from(milliseconds) / 1000.0));
        }
        printed
    }

    /// Expressions of sed(1) that turn a printed route into words that ip(8) accepts, without this metric.
    fn others(&self) -> String {
        let states: String = STATES.iter().map(|state| format!("s/ {state} / /;")).collect();
        let word = self.word;
        format!(
            "-e 's/[[:blank:]][[:blank:]]*/ /g;s/$/ /;{states}s/ rto_min lock / rto_min /' \
             -e 's/ {word} \\(lock \\)\\{{0,1\\}}[^ ]* / /'"
        )
    }

    /// Expressions of sed(1) that extract the value of this metric from a printed route, as [`parse`] does.
    fn alone(&self) -> String {
        let word = self.word;
        format!(
            "-e 's/[[:blank:]][[:blank:]]*/ /g;s/$/ /;s/ rto_min lock / rto_min /' \
             -e '/ {word} /!s/.*/{}/' -e 's/.* {word} \\(\\(lock \\)\\{{0,1\\}}[^ ]*\\) .*/\\1/'",
            value::DEFAULT
        )
    }

    fn of(
        &self,
        at: &mut At<'_>,
        pairs: &[(String, String)],
        line: &str,
    ) -> Result<String, RemoteError> {
        let Some((_, printed)) = pairs.iter().find(|(word, _)| word == self.word) else {
            return Ok(value::DEFAULT.into());
        };
        self.setting(printed).ok_or_else(|| at.misread(&show(at), line, self.word))
    }
}

impl Row for Metric {
    fn read(&self, at: &mut At<'_>) -> Result<String, RemoteError> {
        let (pairs, line) = route(at)?;
        self.of(at, &pairs, &line)
    }

    fn normalise(&self, at: &mut At<'_>, text: &str) -> Result<String, RemoteError> {
        let setting = at.setting;
        if text == value::DEFAULT {
            return Ok(text.into());
        }
        Ok(match self.kind {
            Kind::Number(least, most) => value::number(setting, text, &(least..=most))?.to_string(),
            Kind::Milliseconds => value::number(setting, text, &(1..=120_000_u32))?.to_string(),
            Kind::Bytes => value::size(setting, text, u32::MAX.into())?.to_string(),
            Kind::Switch => value::on_off(value::switch(setting, text)?).into(),
            Kind::Ecn if text == "on" => text.into(),
            Kind::Ecn => return Err(value::bad(setting, text, "it must be on, or default").into()),
            Kind::Name => {
                let name = value::word(setting, text, value::CONGESTION_NAME_MAX)?;
                super::congestion::check(at, &name)?;
                name
            }
        })
    }

    /// The route as it is when this runs, with another value of this metric: other metrics may have changed
    /// meanwhile.
    fn write(&self, at: &mut At<'_>, value: &str) -> Result<Vec<Command>, RemoteError> {
        let (pairs, line) = route(at)?;
        let same = self.of(at, &pairs, &line)? == value;
        let printed = pairs.iter().find(|(word, _)| same && word == self.word);
        let words = match printed {
            Some((_, printed)) => format!(" {} {printed}", self.word),
            None if value == value::DEFAULT => String::new(),
            None => format!(" {} {}", self.word, self.argument(value)),
        };
        let (show, family) = (show(at).typed(), family(at));
        let others = self.others();
        let script = format!("set -f; ip {family} route replace $({show} | sed {others}){words}");
        let purpose = format!("change {} of the route to {}", self.word, at.scope());
        Ok(vec![Command::script(purpose, &script, [""; 0])])
    }

    /// Checks only this metric, which is not printed if it is not set.
    fn holds(&self, at: &mut At<'_>, value: &str) -> Result<Condition, RemoteError> {
        let script = format!("{} | sed {}", show(at).typed(), self.alone());
        let purpose = format!("read the route to {}", at.scope());
        let ask = || Command::script(purpose.clone(), &script, [""; 0]);
        let (pairs, line) = route(at)?;
        let printed = pairs.iter().find(|(word, _)| word == self.word);
        // As printed now, including a lock.
        if self.of(at, &pairs, &line)? == value {
            let printed = printed.map_or(value::DEFAULT, |(_, printed)| printed);
            return Ok(Condition::line(ask(), Condition::literal(printed)));
        }
        let printed = self.printed(value).into_iter().map(|printed| Condition::literal(&printed));
        let conditions = printed.map(|line| Condition::line(ask(), line));
        let none = || Condition::line(ask(), Condition::literal(value::DEFAULT));
        Ok(conditions.reduce(Condition::or).unwrap_or_else(none))
    }
}

fn family(at: &At<'_>) -> &'static str {
    if at.scope().contains(':') { "-6" } else { "-4" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::Scripted;

    const LINE: &str = "192.0.2.0/24 via 198.51.100.1 dev eth0 proto static onlink initcwnd 20 rto_min lock 5ms linkdown \n";

    fn at<T>(id: &str, line: &str, act: impl Fn(&Metric, &mut At<'_>) -> T) -> T {
        let show = "ip -4 -o route show table main exact 192.0.2.0/24";
        let mut shell = Scripted::default().prints(show, line);
        let setting = format!("{id}@192.0.2.0/24").parse().unwrap();
        let row = ROWS.iter().find(|row| row.id == id).unwrap();
        act(row, &mut At { shell: &mut shell, setting: &setting })
    }

    #[test]
    fn a_metric_is_replaced_and_everything_else_stays() {
        assert_eq!(at("route.initcwnd", LINE, |row, at| row.read(at)).unwrap(), "20");
        assert_eq!(at("route.rto_min", LINE, |row, at| row.read(at)).unwrap(), "5");
        assert_eq!(at("route.ecn", LINE, |row, at| row.read(at)).unwrap(), "default");
        let write = |id: &str, value: &str, line: &str| {
            let command = at(id, LINE, |row, at| row.write(at, value)).unwrap();
            run(&command[0].to_string(), line).0
        };
        let begin = "-4 route replace 192.0.2.0/24 via 198.51.100.1 dev eth0 proto static onlink";
        let ten = "initcwnd 10";
        assert_eq!(write("route.initcwnd", "10", LINE), format!("{begin} rto_min 5ms {ten}"));
        assert_eq!(write("route.initcwnd", "default", LINE), format!("{begin} rto_min 5ms"));
        let now = LINE.replace("20", "30").replace("5ms", "7ms mtu lock 1400");
        assert_eq!(
            write("route.initcwnd", "20", &now),
            format!("{begin} rto_min 7ms mtu lock 1400 initcwnd 20"),
            "the original comes back, whatever was done to the other metrics"
        );
    }

    /// What `script` would make ip do if it printed `line`, and whether it succeeds.
    fn run(script: &str, line: &str) -> (String, bool) {
        let folder = tempfile::tempdir().unwrap();
        let ip = "#!/bin/sh\ncase $* in *show*) printf %s \"$LINE\";; *) echo \"$*\";; esac\n";
        let program = folder.path().join("ip");
        goodput_testing::write_script(&program, ip);
        let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
        let mut shell = std::process::Command::new("sh");
        let output = shell.args(["-c", script]).env("PATH", path).env("LINE", line).output();
        let output = output.unwrap();
        (String::from_utf8(output.stdout).unwrap().trim().into(), output.status.success())
    }

    #[test]
    fn the_host_looks_at_one_metric_only() {
        let holds = |id: &str, value: &str, line: &str| {
            let condition = at(id, LINE, |row, at| row.holds(at, value)).unwrap();
            run(&condition.to_string(), line).1
        };
        let other = LINE.replace("5ms", "9ms");
        assert!(holds("route.initcwnd", "20", &other));
        assert!(!holds("route.initcwnd", "20", &LINE.replace("20", "200")));
        assert!(holds("route.rto_min", "5", LINE) && !holds("route.rto_min", "5", &other));
        assert!(holds("route.mtu", "default", &other));
        assert!(!holds("route.mtu", "default", &LINE.replace("5ms", "5ms mtu 1400")));
        assert!(!holds("route.mtu", "default", ""), "the route is gone");
        let later = LINE.replace("20", "30").replace("5ms", "1.5s mtu 1400");
        assert!(holds("route.initcwnd", "30", &later) && !holds("route.initcwnd", "40", &later));
        assert!(holds("route.rto_min", "1500", &later) && holds("route.mtu", "1400", &later));
    }

    #[test]
    fn routes_that_are_not_plain_are_refused() {
        let read = |line: &str| at("route.window", line, |row, at| row.read(at));
        assert!(read("").is_err());
        assert!(read("default via a dev b\ndefault via c dev d\n").is_err());
        assert!(read("192.0.2.0/24 nexthop via 198.51.100.1 dev eth0 weight 1\n").is_err());
        assert!(read("192.0.2.0/24 dev eth0 window big\n").is_err());
        assert!(read("192.0.2.0/24;reboot dev eth0\n").is_err());
    }
}
