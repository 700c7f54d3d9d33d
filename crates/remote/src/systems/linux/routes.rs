//! `route.*`: metrics of a route of the main table, in the words in which ip-route(8) prints and takes them.

use super::row::{At, Row};
use crate::command::{Command, Condition};
use crate::error::RemoteError;
use goodput_settings::value;

/// One metric.
pub(super) struct Metric {
    /// The setting.
    pub(super) id: &'static str,
    /// What it is called in a route.
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

/// The ranges are those of the local settings, and of net/ipv4/metrics.c.
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

/// Words with one value behind them (ip/iproute.c `print_route`).
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

/// The words of a route: its destination, then pairs; `lock` belongs to the value behind it.
struct Route {
    destination: String,
    pairs: Vec<(String, String)>,
    onlink: bool,
}

fn show(at: &At<'_>) -> Command {
    let family = if at.scope().contains(':') { "-6" } else { "-4" };
    let words = [family, "-o", "route", "show", "table", "main", "exact", at.scope()];
    Command::new("ip", words)
}

/// The route, and the line that says it.
fn route(at: &mut At<'_>) -> Result<(Route, String), RemoteError> {
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
        Some(route) => Ok((route, line.into())),
        None => Err(at.misread(&command, line, "one plain route with one next hop")),
    }
}

fn parse(line: &str) -> Option<Route> {
    let mut words = line.split_whitespace().filter(|word| !STATES.contains(word)).peekable();
    let destination = words.next()?.to_owned();
    let (mut pairs, mut onlink) = (Vec::new(), false);
    while let Some(word) = words.next() {
        if word == "onlink" {
            onlink = true;
            continue;
        }
        let known = WITH_VALUE.contains(&word);
        let lock = words.next_if_eq(&"lock").map(|_| "lock ").unwrap_or_default();
        let value = words.next().filter(|_| known)?;
        pairs.push((word.to_owned(), format!("{lock}{value}")));
    }
    let plain = destination.bytes().all(|b| b.is_ascii_alphanumeric() || b".:/".contains(&b));
    plain.then_some(Route { destination, pairs, onlink })
}

/// Milliseconds of `5ms`, `200ms` or `1s`.
fn milliseconds(text: &str) -> Option<u32> {
    match text.strip_suffix("ms") {
        Some(number) => number.parse().ok(),
        None => text.strip_suffix('s')?.parse::<u32>().ok()?.checked_mul(1000),
    }
}

impl Metric {
    /// The value as it is printed, to the value of the setting.
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

    /// The value of the setting, to what ip(8) takes.
    fn argument(&self, value: &str) -> String {
        match self.kind {
            Kind::Milliseconds => format!("{value}ms"),
            Kind::Switch => u32::from(value == "on").to_string(),
            Kind::Ecn => "ecn".into(),
            Kind::Number(..) | Kind::Bytes | Kind::Name => value.into(),
        }
    }

    fn of(&self, at: &mut At<'_>, route: &Route, line: &str) -> Result<String, RemoteError> {
        let Some((_, printed)) = route.pairs.iter().find(|(word, _)| word == self.word) else {
            return Ok(value::DEFAULT.into());
        };
        self.setting(printed).ok_or_else(|| at.misread(&show(at), line, self.word))
    }
}

impl Row for Metric {
    fn read(&self, at: &mut At<'_>) -> Result<String, RemoteError> {
        let (route, line) = route(at)?;
        self.of(at, &route, &line)
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
            Kind::Ecn => return Err(at.refused("it must be on, or default")),
            Kind::Name => value::word(setting, text, value::CONGESTION_NAME_MAX)?,
        })
    }

    /// The route as it is now, with another value of this metric.
    fn write(&self, at: &mut At<'_>, value: &str) -> Result<Vec<Command>, RemoteError> {
        let (route, line) = route(at)?;
        let same = self.of(at, &route, &line)? == value;
        let mut words = vec!["route".to_owned(), "replace".into(), route.destination.clone()];
        for (word, printed) in &route.pairs {
            if *word != self.word || same {
                words.push(word.clone());
                words.extend(printed.split(' ').map(str::to_owned));
            }
        }
        if !same && value != value::DEFAULT {
            words.extend([self.word.to_owned(), self.argument(value)]);
        }
        words.extend(route.onlink.then(|| "onlink".to_owned()));
        let family = if at.scope().contains(':') { "-6" } else { "-4" };
        Ok(vec![Command::new("ip", [family]).args(words)])
    }

    /// Only the value that the route has now can be told from its line.
    fn holds(&self, at: &mut At<'_>, value: &str) -> Result<Condition, RemoteError> {
        let (route, line) = route(at)?;
        match self.of(at, &route, &line)? == value {
            true => {
                let line = format!("{}[[:blank:]]*", Condition::literal(&line));
                Ok(Condition::line(show(at), line))
            }
            false => Err(at.refused(&format!("it is no longer {value}"))),
        }
    }
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
        let write = |id: &str, value: &str| {
            at(id, LINE, |row, at| row.write(at, value)).unwrap()[0].typed()
        };
        let begin = "ip -4 route replace 192.0.2.0/24 via 198.51.100.1 dev eth0 proto static";
        assert_eq!(
            write("route.initcwnd", "10"),
            format!("{begin} rto_min lock 5ms initcwnd 10 onlink")
        );
        assert_eq!(write("route.initcwnd", "default"), format!("{begin} rto_min lock 5ms onlink"));
        let original = format!("{begin} initcwnd 20 rto_min lock 5ms onlink");
        assert_eq!(
            write("route.initcwnd", "20"),
            original,
            "the original comes back to the letter"
        );
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
