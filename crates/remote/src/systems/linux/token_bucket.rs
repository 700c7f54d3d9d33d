//! `qdisc.tbf.*` through tc(8): rate, burst and limit of the token bucket at a device's root.
//!
//! tc sends all parameters of a bucket at once, and prints some of them rounded. A script there reads the exact ones, changes
//! one, and writes the others as they are at that moment. The same script puts back, so it changes nothing that someone else
//! has changed meanwhile.

use std::sync::LazyLock;

use goodput_model::{ETHERNET_HEADER_BYTES, SettingRef};
use goodput_settings::{Assignment, rules, value};

use super::link;
use super::row::{At, Row};
use crate::command::{Command, Condition};
use crate::error::RemoteError;

/// One number of a bucket.
pub(super) struct Number {
    /// The setting.
    pub(super) id: &'static str,
    /// Its name in the scripts.
    word: &'static str,
    most: u64,
}

/// The scripts compute with bursts of up to 1 GiB.
pub(super) static ROWS: [Number; 3] = [
    Number { id: "qdisc.tbf.rate", word: RATE, most: u64::MAX },
    Number { id: "qdisc.tbf.burst", word: BURST, most: (1 << 30) - 1 },
    Number { id: "qdisc.tbf.limit", word: LIMIT, most: u32::MAX as u64 },
];

const RATE: &str = "rate";
const BURST: &str = "burst";
const LIMIT: &str = "limit";

const LOOK: &str = include_str!("token_bucket.sh");

static SHOW: LazyLock<String> =
    LazyLock::new(|| one_line(&[LOOK, include_str!("token_bucket_show.sh")]));
static CHANGE: LazyLock<String> =
    LazyLock::new(|| one_line(&[LOOK, include_str!("token_bucket_change.sh")]));

/// The lines of scripts, without those of comments.
fn one_line(scripts: &[&str]) -> String {
    let lines = scripts.iter().flat_map(|script| script.lines());
    lines.filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join(" ")
}

/// A bucket, as the script prints it.
struct Bucket {
    rate_bytes_per_s: u64,
    burst_bytes: u64,
    limit_bytes: u64,
}

impl Bucket {
    fn of(&self, word: &str) -> u64 {
        match word {
            RATE => self.rate_bytes_per_s,
            BURST => self.burst_bytes,
            _ => self.limit_bytes,
        }
    }
}

/// The command that prints the bucket, with the burst that it would have if `burst` were set.
fn show(device: &str, burst: &str) -> Command {
    Command::script(format!("read the token bucket of {device}"), &SHOW, [device, burst])
}

fn read(at: &mut At<'_>, burst: &str) -> Result<Bucket, RemoteError> {
    let command = show(at.scope(), burst);
    let printed = at.shell.output(&command)?;
    let number = |line: &str, word: &str| line.strip_prefix(word)?.strip_prefix(' ')?.parse().ok();
    let bucket = match printed.lines().collect::<Vec<_>>()[..] {
        [rate, burst, limit] => number(rate, RATE)
            .zip(number(burst, BURST))
            .zip(number(limit, LIMIT))
            .map(|((rate_bytes_per_s, burst_bytes), limit_bytes)| Bucket {
                rate_bytes_per_s,
                burst_bytes,
                limit_bytes,
            }),
        _ => None,
    };
    bucket.ok_or_else(|| at.misread(&command, &printed, "its rate, burst and limit"))
}

/// The other numbers of the same bucket: a change that is cut can leave the queue closed, and a burst is rounded at another
/// rate.
pub(super) fn coupled(setting: &SettingRef) -> Vec<SettingRef> {
    let others = ROWS.iter().filter(|row| row.id != setting.name);
    others.map(|row| SettingRef { name: row.id.into(), ..setting.clone() }).collect()
}

/// Refuses `bytes` for a bucket or a queue that drops each longer packet, if the device has longer ones (net/sched/sch_tbf.c
/// `tbf_enqueue`, net/sched/sch_fifo.c `bfifo_enqueue`). `earlier` may change the MTU.
pub(super) fn check_fits(
    at: &mut At<'_>,
    value: &str,
    bytes: u64,
    earlier: &[Assignment],
) -> Result<(), RemoteError> {
    let command = Command::new("ip", ["-j", "link", "show", "dev", at.scope()]);
    let links = link::json(at.shell, &command)?;
    let mtu = links.first().and_then(|link| link["mtu"].as_u64());
    let mtu = mtu.ok_or_else(|| at.misread(&command, "", "a link with its MTU"))?;
    let is_its = |one: &SettingRef| one.name == "link.mtu" && one.scope == at.setting.scope;
    let later = earlier.iter().rev().find(|(one, _)| is_its(one));
    let mtu = later.and_then(|(_, mtu)| mtu.parse().ok()).unwrap_or(mtu);
    let is_ethernet = links.first().is_some_and(|link| link["link_type"] == "ether");
    let header = if is_ethernet { u64::from(ETHERNET_HEADER_BYTES) } else { 0 };
    let least = mtu.saturating_add(header);
    if bytes >= least {
        return Ok(());
    }
    let why = format!(
        "packets of {} have up to {least} bytes, and longer ones than this are dropped; it must be at least {least}",
        at.scope()
    );
    Err(value::bad(at.setting, value, why).into())
}

impl Number {
    /// The number that the script takes for a value.
    fn bytes(&self, at: &At<'_>, value: &str) -> Result<u64, RemoteError> {
        Ok(match self.word {
            RATE => rules::shaper_rate(at.setting, value)?,
            _ => value::size(at.setting, value, self.most)?,
        })
    }

    fn text(&self, bytes: u64) -> String {
        if self.word == RATE { rules::shaper_rate_text(bytes) } else { bytes.to_string() }
    }
}

impl Row for Number {
    fn read(&self, at: &mut At<'_>) -> Result<String, RemoteError> {
        Ok(self.text(read(at, "")?.of(self.word)))
    }

    fn normalise(&self, at: &mut At<'_>, value: &str) -> Result<String, RemoteError> {
        let bytes = self.bytes(at, value)?;
        let burst = if self.word == BURST { bytes.to_string() } else { String::new() };
        let becomes = read(at, &burst)?;
        Ok(self.text(if self.word == BURST { becomes.burst_bytes } else { bytes }))
    }

    fn write(&self, at: &mut At<'_>, value: &str) -> Result<Vec<Command>, RemoteError> {
        let bytes = self.bytes(at, value)?;
        let now = read(at, "")?;
        // An original is asked for before the change: then the burst is the one that goes with it.
        let is_original = self.word == RATE && now.rate_bytes_per_s == bytes;
        let burst = if is_original { now.burst_bytes } else { 0 };
        let purpose = format!("change the {} of the token bucket of {}", self.word, at.scope());
        let words = [at.scope(), self.word, &bytes.to_string(), &burst.to_string()];
        Ok(vec![Command::script(purpose, &CHANGE, words)])
    }

    fn holds(&self, at: &mut At<'_>, value: &str) -> Result<Condition, RemoteError> {
        let line = format!("{} {}", self.word, self.bytes(at, value)?);
        Ok(Condition::line(show(at.scope(), ""), Condition::literal(&line)))
    }

    /// Each change fills the bucket (net/sched/sch_tbf.c `tbf_change`).
    fn starts_anew(&self) -> bool {
        true
    }

    fn read_of_discipline(&self, at: &At<'_>) -> Option<Command> {
        Some(show(at.scope(), ""))
    }

    fn check_new(
        &self,
        at: &mut At<'_>,
        value: &str,
        earlier: &[Assignment],
    ) -> Result<(), RemoteError> {
        match self.word {
            RATE => Ok(()),
            _ => check_fits(at, value, self.bytes(at, value)?, earlier),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::row::NO_DISCIPLINE;
    use super::*;
    use crate::scripted::Scripted;
    use std::process;

    /// What the script prints and how it ends, about a device of which tc prints `json`, and `text` without JSON.
    fn shown(json: &str, text: &str, burst: &str) -> (String, Option<i32>) {
        let tc =
            "tc() { case $* in *-j*) printf '%s' \"$JSON\";; *) printf '%s' \"$TEXT\";; esac; }";
        let script = format!("{tc}; {}", *SHOW);
        let mut sh = process::Command::new("sh");
        let sh = sh.args(["-c", &script, "sh", "eth0", burst]).env("JSON", json).env("TEXT", text);
        let output = sh.output().unwrap();
        let printed = [output.stdout, output.stderr].concat();
        (String::from_utf8(printed).unwrap().trim().replace('\n', ", "), output.status.code())
    }

    fn tbf(options: &str, rest: &str) -> String {
        let begins =
            "[{\"kind\":\"tbf\",\"handle\":\"8001:\",\"root\":true,\"refcnt\":2,\"options\":";
        format!("{begins}{{{options}}}{rest}]\n")
    }

    const PLAIN: &str = "\"rate\":12500000,\"burst\":\"64Kb/1\",\"mpu\":0,\"burst_raw\":\"14000\",\
        \"lat\":19334,\"limit\":307200,\"linklayer\":\"ethernet\"";
    const ATM: &str = "\"rate\":125000000,\"burst\":\"16500b/1\",\"mpu\":64,\"burst_raw\":\"819\",\
        \"lat\":49988,\"limit\":6265000,\"overhead\":10,\"linklayer\":\"atm\"";

    #[test]
    fn a_bucket_is_read_exactly_whatever_it_counts_beside_a_packet() {
        let plain = shown(&tbf(PLAIN, "}"), "", "");
        assert_eq!(plain, ("rate 12500000, burst 65536, limit 307200".into(), Some(0)));
        // 14977 to 15024 bytes are 313 cells with the overhead, as the 15000 bytes that were set.
        let atm = shown(&tbf(ATM, "}"), "", "");
        assert_eq!(atm, ("rate 125000000, burst 14967, limit 6265000".into(), Some(0)));
        let rounded = shown(&tbf(ATM, "}"), "", "15000");
        assert_eq!(rounded.0, atm.0, "what the kernel makes of 15000 bytes");
        assert_eq!(
            shown(&tbf(PLAIN, "}"), "", "1600").0,
            "rate 12500000, burst 1600, limit 307200"
        );
    }

    #[test]
    fn a_bucket_that_would_not_come_back_exactly_is_refused_with_the_reason() {
        let peak = "qdisc tbf 8001: root refcnt 2 rate 1Gbit peakrate 2Gbit mtu 1500b/1\n";
        let table = "},\"stab\":{\"linklayer\":\"ethernet\",\"overhead\":14}";
        let inside = "}},{\"kind\":\"pfifo\",\"handle\":\"2:\",\"parent\":\"8001:1\",\"options\":{\"limit\":7}}";
        let of = |options: &str| tbf(options, "}");
        for (json, text, words) in [
            (of(PLAIN), peak, "has a peak rate"),
            (tbf(PLAIN, &table[1..]), "", "table of sizes"),
            (tbf(PLAIN, &inside[1..]), "", "another discipline inside"),
            (of(&PLAIN.replace("lat", "cell")), "", "goodput does not know"),
            (of(&PLAIN.replace("307200", "\"300Kb\"")), "", "as numbers"),
            (of(&PLAIN.replace("\"burst_raw\":\"14000\",", "")), "", "burst exactly"),
            (of(&PLAIN.replace("ethernet", "unspec")), "", "link layer"),
            (of(&PLAIN.replace("12500000", "0")), "", "rate is 0"),
        ] {
            let (said, status) = shown(&json, text, "");
            assert!(status == Some(1) && said.contains(words), "{words}: {said} {status:?}");
        }
        for none in ["[]", "", "qdisc tbf 8001: root", "[{\"kind\":\"fq\",\"handle\":\"0:\"}]"] {
            assert_eq!(shown(none, "", "").1, Some(NO_DISCIPLINE), "{none}");
        }
    }

    #[test]
    fn what_the_script_prints_is_parsed_strictly_and_a_packet_must_fit() {
        let setting: SettingRef = "qdisc.tbf.burst@eth0".parse().unwrap();
        let link = "[{\"ifname\":\"eth0\",\"mtu\":1500,\"link_type\":\"ether\"}]";
        let mut shell = Scripted::default()
            .prints(&show("eth0", "").typed(), "rate 12500000\nburst 65536\nlimit 307200\n")
            .prints(&show("eth0", "1").typed(), "rate 1\nburst one\nlimit 2\n")
            .prints("ip -j link show dev eth0", link);
        let mut at = At { shell: &mut shell, setting: &setting };
        let values = ROWS.iter().map(|row| row.read(&mut at).unwrap());
        assert_eq!(values.collect::<Vec<_>>(), ["100mbit", "65536", "307200"]);
        let odd = ROWS[1].normalise(&mut at, "1").unwrap_err();
        assert!(matches!(odd, RemoteError::NotUnderstood { .. }), "{odd}");
        assert!(ROWS[1].check_new(&mut at, "1514", &[]).is_ok());
        let small = ROWS[2].check_new(&mut at, "1513", &[]).unwrap_err().to_string();
        assert!(small.contains("up to 1514 bytes"), "{small}");
        let mtu = ("link.mtu@eth0".parse().unwrap(), "9000".into());
        assert!(ROWS[1].check_new(&mut at, "1514", &[mtu]).is_err(), "by then they are longer");
    }
}
