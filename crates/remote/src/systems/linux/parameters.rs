//! `qdisc.fifo.limit`, `qdisc.fq_codel.*`, `qdisc.fq.*`, `qdisc.cake.*` through tc(8): one parameter of the discipline at a
//! device's root. tc sends only what it was given, and the kernel leaves the rest (`*_change`, net/sched/sch_*.c).

use goodput_model::{EndName, SettingRef};
use goodput_settings::{Assignment, Backend, find_for, rules, value};

use super::row::{At, Row};
use super::{link, qdisc, token_bucket};
use crate::command::{Command, Condition};
use crate::error::RemoteError;

/// One parameter.
pub(super) struct Parameter {
    /// The setting.
    pub(super) id: &'static str,
    /// The kinds of discipline that have it.
    kinds: &'static [&'static str],
    /// Its key in JSON.
    key: &'static str,
    /// Values that have words of their own: the value, what tc prints for it, and the words that tc takes.
    named: &'static [[&'static str; 3]],
    /// All other values.
    form: Form,
}

/// How tc prints the number of a parameter in JSON, and takes it. The word before a number is the key.
#[derive(Clone, Copy)]
enum Form {
    /// It has no values but the named ones.
    Named,
    /// A word, which tc prints in quotation marks, and takes without the key.
    Word,
    /// Packets, or bytes in a queue of bytes.
    Limit,
    /// A number.
    Number,
    /// Microseconds, of which the kernel keeps steps of 1.024, rounded down (include/net/codel.h).
    Micros,
    /// Microseconds. The kernel keeps them as they are, or in its clock ticks.
    Whole,
    /// Nanoseconds.
    Nanos,
    /// Bytes per second.
    Rate,
}

/// What [`SHOW`] prints for a key that tc leaves out.
const ABSENT: &str = "-";

/// What tc prints in place of a word that it doesn't know (iproute2, tc/q_cake.c `cake_print_mode`).
const UNKNOWN: &str = "unknown";

/// fq takes this for no rate: all bits of 32 (net/sched/sch_fq.c `fq_init`).
const NO_RATE: &str = "maxrate 4294967295bps";

/// fq never marks at this delay: all bits of 32 (net/sched/sch_fq.c `fq_dequeue`).
const NEVER: [&str; 3] = ["4294967295", ABSENT, "ce_threshold 4294967295us"];

/// The round-trip time that cake is tuned for.
const RTT: &str = "qdisc.cake.rtt";

/// tc-cake(8)'s words for what JSON has as true or false.
macro_rules! switch {
    ($on:literal, $off:literal) => {
        &[["on", "true", $on], ["off", "false", $off]]
    };
}

const fn number(id: &'static str, kind: &'static [&'static str], key: &'static str) -> Parameter {
    row(id, kind, key, &[], Form::Number)
}

const fn named(
    id: &'static str,
    kind: &'static [&'static str],
    key: &'static str,
    named: &'static [[&'static str; 3]],
) -> Parameter {
    row(id, kind, key, named, Form::Named)
}

const fn row(
    id: &'static str,
    kinds: &'static [&'static str],
    key: &'static str,
    named: &'static [[&'static str; 3]],
    form: Form,
) -> Parameter {
    Parameter { id, kinds, key, named, form }
}

/// `*_print_opt` and `*_parse_opt` of iproute2, tc/q_{fifo,fq_codel,fq,cake}.c. With cake's round-trip time tc also sets the
/// target ([`check_target`]).
///
/// Left out is what tc can't put back. It sends neither an `mpu` nor a `memlimit` of 0. `overhead` and `atm` depend on each
/// other: `raw` also ends `atm`, and with `raw` it does not print `noatm`.
pub(super) static ROWS: [Parameter; 29] = [
    row("qdisc.fifo.limit", &["pfifo", "bfifo"], "limit", &[], Form::Limit),
    number("qdisc.fq_codel.limit", &["fq_codel"], "limit"),
    row("qdisc.fq_codel.target", &["fq_codel"], "target", &[], Form::Micros),
    row("qdisc.fq_codel.interval", &["fq_codel"], "interval", &[], Form::Micros),
    number("qdisc.fq_codel.quantum", &["fq_codel"], "quantum"),
    number("qdisc.fq_codel.memory_limit", &["fq_codel"], "memory_limit"),
    named(
        "qdisc.fq_codel.ecn",
        &["fq_codel"],
        "ecn",
        &[["on", "true", "ecn"], ["off", ABSENT, "noecn"]],
    ),
    number("qdisc.fq.limit", &["fq"], "limit"),
    number("qdisc.fq.flow_limit", &["fq"], "flow_limit"),
    number("qdisc.fq.quantum", &["fq"], "quantum"),
    number("qdisc.fq.initial_quantum", &["fq"], "initial_quantum"),
    number("qdisc.fq.orphan_mask", &["fq"], "orphan_mask"),
    row("qdisc.fq.maxrate", &["fq"], "maxrate", &[["none", ABSENT, NO_RATE]], Form::Rate),
    row(
        "qdisc.fq.low_rate_threshold",
        &["fq"],
        "low_rate_threshold",
        &[["off", ABSENT, "low_rate_threshold 0bps"]],
        Form::Rate,
    ),
    row("qdisc.fq.refill_delay", &["fq"], "refill_delay", &[], Form::Whole),
    row("qdisc.fq.ce_threshold", &["fq"], "ce_threshold", &[NEVER], Form::Whole),
    row("qdisc.fq.timer_slack", &["fq"], "timer_slack", &[], Form::Nanos),
    row("qdisc.fq.horizon", &["fq"], "horizon", &[], Form::Whole),
    named(
        "qdisc.fq.horizon_drop",
        &["fq"],
        "horizon_drop",
        &[["on", "null", "horizon_drop"], ["off", ABSENT, "horizon_cap"]],
    ),
    named(
        "qdisc.fq.pacing",
        &["fq"],
        "pacing",
        &[["on", ABSENT, "pacing"], ["off", "false", "nopacing"]],
    ),
    row(RTT, &["cake"], "rtt", &[], Form::Whole),
    row(
        "qdisc.cake.bandwidth",
        &["cake"],
        "bandwidth",
        &[["none", "\"unlimited\"", "unlimited"]],
        Form::Rate,
    ),
    named(
        "qdisc.cake.ack_filter",
        &["cake"],
        "ack-filter",
        &[
            ["off", "\"disabled\"", "no-ack-filter"],
            ["on", "\"enabled\"", "ack-filter"],
            ["aggressive", "\"aggressive\"", "ack-filter-aggressive"],
        ],
    ),
    row("qdisc.cake.diffserv", &["cake"], "diffserv", &[], Form::Word),
    row("qdisc.cake.flowmode", &["cake"], "flowmode", &[], Form::Word),
    named("qdisc.cake.nat", &["cake"], "nat", switch!("nat", "nonat")),
    named("qdisc.cake.wash", &["cake"], "wash", switch!("wash", "nowash")),
    named("qdisc.cake.ingress", &["cake"], "ingress", switch!("ingress", "egress")),
    named("qdisc.cake.split_gso", &["cake"], "split_gso", switch!("split-gso", "no-split-gso")),
];

/// Prints the parameter `$3` of the discipline at the root of the device `$1`, if its kind matches `$2`; `$4` are the kinds in
/// words. A change would remove a table of sizes, and end cake's own choice of a rate.
const SHOW: &str = "set -f; no() { s=$1; shift; echo \"$*\" >&2; exit \"$s\"; }; \
    all=$(tc -r -d -j qdisc show dev \"$1\") || exit; \
    it=$(printf \"%s\\n\" \"$all\" | tr \"{\" \"\\n\" | \
    sed -n \"/^\\\"kind\\\":\\\"$2\\\",\\\"handle\\\":\\\"[0-9a-f]*:\\\",\\\"root\\\":true,/{N;s/\\n/ /;p;}\"); \
    [ \"$it\" ] || no 3 \"the discipline at its root is no $4, or tc there does not print it in JSON\"; \
    it=${it#*\\\"options\\\": }; \
    case $it in *\\\"stab\\\":*) no 1 \"it has a table of sizes (stab), which a change would remove; change it with tc, which sets both at once\";; \
    *\\\"autorate\\\":*) no 1 \"it chooses its rate by what comes in (autorate-ingress), so a rate would not last\";; esac; \
    v=-; IFS=,; for p in ${it%%\\}*}; do case $p in \"\\\"$3\\\":\"*) v=${p#*:};; esac; done; printf \"%s\\n\" \"$v\"";

/// Part of the round-trip time that tc sets as the target (iproute2, tc/q_cake.c `cake_parse_opt`).
const TARGET_PART: u64 = 20;

/// Refuses a cake whose target would not come back with its round-trip time: tc sets both, and takes no target alone. The
/// target is only seen in the tins, where a slow one has a longer one of its own (net/sched/sch_cake.c `cake_set_rate`).
fn check_target(at: &mut At<'_>) -> Result<(), RemoteError> {
    let command = Command::new("tc", ["-s", "-d", "-j", "qdisc", "show", "dev", at.scope()]);
    let disciplines = link::json(at.shell, &command)?;
    let root = disciplines.iter().find(|one| one["root"] == true && one["kind"] == "cake");
    let rtt = root.and_then(|root| root["options"]["rtt"].as_u64());
    let tins = root.and_then(|root| root["tins"].as_array()).into_iter().flatten();
    let targets: Option<Vec<u64>> = tins.map(|tin| tin["target_us"].as_u64()).collect();
    let least = targets.and_then(|targets| targets.into_iter().min());
    let (Some(rtt), Some(least)) = (rtt, least) else {
        return Err(at.misread(&command, "", "cake's rtt, and a target of each tin"));
    };
    let of_tc = (rtt / TARGET_PART).max(1);
    if least == of_tc {
        return Ok(());
    }
    let device = at.scope();
    Err(at.refused(&format!(
        "tc sets cake's target along with it, to {of_tc} µs, but the shortest target of its tins is {least} µs: someone chose \
         another one, or the bandwidth is too low to see it. Set qdisc.cake.bandwidth@{device}=none first, or run goodput on \
         that host to change it"
    )))
}

impl Parameter {
    fn show(&self, at: &At<'_>) -> Command {
        let purpose = format!("read {} of {}", self.key, at.scope());
        Command::script(
            purpose,
            SHOW,
            [at.scope(), &self.pattern(), self.key, &self.kinds.join(" or ")],
        )
    }

    /// The kinds as a basic regular expression, with the alternatives of GNU and busybox.
    fn pattern(&self) -> String {
        format!("\\({}\\)", self.kinds.join("\\|"))
    }

    /// Whether a discipline of this kind has it.
    pub(super) fn is_of(&self, kind: &str) -> bool {
        self.kinds.contains(&kind)
    }

    /// The value that tc prints like this; `None` if goodput does not know it.
    fn value(&self, printed: &str) -> Option<String> {
        if let Some([value, ..]) = self.named.iter().find(|[_, shown, _]| *shown == printed) {
            return Some((*value).to_owned());
        }
        match self.form {
            Form::Named => None,
            Form::Word => {
                let word = printed.strip_prefix('"')?.strip_suffix('"')?;
                (word != UNKNOWN).then(|| word.to_owned())
            }
            Form::Rate => printed.parse().ok().map(rules::shaper_rate_text),
            _ => Some(printed.parse::<u32>().ok()?.to_string()),
        }
    }

    /// How tc prints a value, and the words by which it takes the value.
    fn words(&self, at: &At<'_>, value: &str) -> Result<[String; 2], RemoteError> {
        if let Some([_, shown, words]) = self.named.iter().find(|[known, ..]| *known == value) {
            return Ok([(*shown).to_owned(), (*words).to_owned()]);
        }
        let (shown, taken) = match self.form {
            Form::Named => Err(value::bad(at.setting, value, "goodput does not know it"))?,
            Form::Word => return Ok([format!("\"{value}\""), value.to_owned()]),
            Form::Limit | Form::Number => (value.to_owned(), value.to_owned()),
            Form::Whole => (value.to_owned(), format!("{value}us")),
            Form::Nanos => (value.to_owned(), format!("{value}ns")),
            // One more than what is read back is kept as the same number of steps.
            Form::Micros => {
                let micros: u64 = value::number(at.setting, value, &(0..=u64::from(u32::MAX)))?;
                (value.to_owned(), format!("{}us", micros + 1))
            }
            Form::Rate => {
                let rate = rules::shaper_rate(at.setting, value)?;
                (rate.to_string(), format!("{rate}bps"))
            }
        };
        Ok([shown, format!("{} {taken}", self.key)])
    }

    /// Whether the queue counts bytes.
    fn counts_bytes(&self, at: &mut At<'_>) -> Result<bool, RemoteError> {
        Ok(matches!(self.form, Form::Limit) && qdisc::root(at)?.0 == "bfifo")
    }
}

impl Row for Parameter {
    fn read(&self, at: &mut At<'_>) -> Result<String, RemoteError> {
        let command = self.show(at);
        let printed = at.shell.output(&command)?;
        let value = self.value(printed.trim());
        value.ok_or_else(|| at.misread(&command, &printed, &format!("a value of {}", self.key)))
    }

    fn normalise(&self, at: &mut At<'_>, value: &str) -> Result<String, RemoteError> {
        self.read(at)?;
        if let Form::Limit = self.form {
            return Ok(match self.counts_bytes(at)? {
                true => value::size(at.setting, value, u32::MAX.into())?.to_string(),
                false => value::number(at.setting, value, &(1..=u32::MAX))?.to_string(),
            });
        }
        // The same as on goodput's own host, whose kernel is not asked for that.
        let far = SettingRef { end: EndName::Far, ..at.setting.clone() };
        match find_for(&far)?.backend {
            Backend::Machine(machine) => Ok(machine.normalise(at.setting, value)?),
            Backend::Plan(_) => Err(at.refused("it is no setting of a machine")),
        }
    }

    fn write(&self, at: &mut At<'_>, value: &str) -> Result<Vec<Command>, RemoteError> {
        let (kind, ..) = qdisc::root(at)?;
        let [_, words] = self.words(at, value)?;
        let change = ["qdisc", "change", "dev", at.scope(), "root", &kind];
        let words = words.split(' ').map(str::to_owned);
        Ok(vec![Command::new("tc", change).args(words)])
    }

    fn holds(&self, at: &mut At<'_>, value: &str) -> Result<Condition, RemoteError> {
        let [shown, _] = self.words(at, value)?;
        Ok(Condition::line(self.show(at), Condition::literal(&shown)))
    }

    fn read_of_discipline(&self, at: &At<'_>) -> Option<Command> {
        Some(self.show(at))
    }

    fn check_new(
        &self,
        at: &mut At<'_>,
        value: &str,
        earlier: &[Assignment],
    ) -> Result<(), RemoteError> {
        if !self.counts_bytes(at)? {
            return Ok(());
        }
        let bytes = value::size(at.setting, value, u32::MAX.into())?;
        token_bucket::check_fits(at, value, bytes, earlier)
    }

    fn comes_back(&self, at: &mut At<'_>) -> Result<(), RemoteError> {
        match &*qdisc::root(at)?.1 {
            "0:" => Err(at.refused(
                "the kernel made the discipline by default, and a change would make another one in its place; \
                 set qdisc.kind first",
            )),
            _ if self.id == RTT => check_target(at),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::Scripted;
    use std::process;

    /// What the script prints about a device of which tc prints `json`.
    fn shown(row: &Parameter, json: &str) -> String {
        let script = format!("tc() {{ printf '%s' \"$JSON\"; }}; {SHOW}");
        let mut sh = process::Command::new("sh");
        let words = ["sh", "eth0", &row.pattern(), row.key, &row.kinds.join(" or ")];
        let sh = sh.args(["-c", &script]).args(words).env("JSON", json);
        let output = sh.output().unwrap();
        let printed = [output.stdout, output.stderr].concat();
        String::from_utf8(printed).unwrap().trim().to_owned()
    }

    fn root(kind: &str, options: &str) -> String {
        format!(
            "[{{\"kind\":\"{kind}\",\"handle\":\"8001:\",\"root\":true,\"refcnt\":2,\"options\":{{{options}}}}}]\n"
        )
    }

    fn parameter(id: &str) -> &'static Parameter {
        ROWS.iter().find(|row| row.id == id).unwrap()
    }

    /// The lines follow iproute2's tc/q_fq_codel.c, q_fq.c, q_cake.c and q_fifo.c.
    #[test]
    fn each_parameter_is_read_from_json_and_written_such_that_it_reads_back() {
        let codel = "\"limit\":10240,\"flows\":1024,\"quantum\":1514,\"target\":4999,\"interval\":99999,\
            \"memory_limit\":33554432,\"ecn\":true,\"drop_batch\":64";
        let fq = "\"limit\":10000,\"flow_limit\":100,\"buckets\":1024,\"orphan_mask\":1023,\"bands\":3,\
            \"priomap\":[1,2,2],\"quantum\":3028,\"initial_quantum\":15140,\"maxrate\":11250000,\"refill_delay\":40000";
        let slow = "\"pacing\":false,\"low_rate_threshold\":68750,\"ce_threshold\":5000,\"timer_slack\":10000,\"horizon\":10000000,\
            \"horizon_drop\":null";
        let cake = "\"bandwidth\":\"unlimited\",\"diffserv\":\"diffserv3\",\"flowmode\":\"triple-isolate\",\"nat\":false,\
            \"wash\":true,\"ingress\":false,\"ack-filter\":\"disabled\",\"split_gso\":true,\"rtt\":100000,\"raw\":true";
        for (id, kind, options, value, typed) in [
            ("qdisc.fifo.limit", "pfifo", "\"limit\":1000", "1000", "limit 1000"),
            ("qdisc.fq_codel.limit", "fq_codel", codel, "10240", "limit 10240"),
            ("qdisc.fq_codel.target", "fq_codel", codel, "4999", "target 5000us"),
            ("qdisc.fq_codel.interval", "fq_codel", codel, "99999", "interval 100000us"),
            ("qdisc.fq_codel.quantum", "fq_codel", codel, "1514", "quantum 1514"),
            ("qdisc.fq_codel.ecn", "fq_codel", codel, "on", "ecn"),
            ("qdisc.fq_codel.ecn", "fq_codel", "\"limit\":1", "off", "noecn"),
            ("qdisc.fq.flow_limit", "fq", fq, "100", "flow_limit 100"),
            ("qdisc.fq.quantum", "fq", fq, "3028", "quantum 3028"),
            ("qdisc.fq.maxrate", "fq", fq, "90mbit", "maxrate 11250000bps"),
            ("qdisc.fq.maxrate", "fq", "\"limit\":1", "none", "maxrate 4294967295bps"),
            ("qdisc.fq_codel.memory_limit", "fq_codel", codel, "33554432", "memory_limit 33554432"),
            ("qdisc.fq.initial_quantum", "fq", fq, "15140", "initial_quantum 15140"),
            ("qdisc.fq.orphan_mask", "fq", fq, "1023", "orphan_mask 1023"),
            ("qdisc.fq.refill_delay", "fq", fq, "40000", "refill_delay 40000us"),
            ("qdisc.fq.pacing", "fq", fq, "on", "pacing"),
            ("qdisc.fq.pacing", "fq", slow, "off", "nopacing"),
            ("qdisc.fq.low_rate_threshold", "fq", slow, "550kbit", "low_rate_threshold 68750bps"),
            ("qdisc.fq.low_rate_threshold", "fq", fq, "off", "low_rate_threshold 0bps"),
            ("qdisc.fq.ce_threshold", "fq", slow, "5000", "ce_threshold 5000us"),
            ("qdisc.fq.ce_threshold", "fq", fq, "4294967295", "ce_threshold 4294967295us"),
            ("qdisc.fq.timer_slack", "fq", slow, "10000", "timer_slack 10000ns"),
            ("qdisc.fq.horizon", "fq", slow, "10000000", "horizon 10000000us"),
            ("qdisc.fq.horizon_drop", "fq", slow, "on", "horizon_drop"),
            ("qdisc.fq.horizon_drop", "fq", fq, "off", "horizon_cap"),
            ("qdisc.cake.diffserv", "cake", cake, "diffserv3", "diffserv3"),
            ("qdisc.cake.flowmode", "cake", cake, "triple-isolate", "triple-isolate"),
            ("qdisc.cake.nat", "cake", cake, "off", "nonat"),
            ("qdisc.cake.wash", "cake", cake, "on", "wash"),
            ("qdisc.cake.ingress", "cake", cake, "off", "egress"),
            ("qdisc.cake.split_gso", "cake", cake, "on", "split-gso"),
            ("qdisc.cake.rtt", "cake", cake, "100000", "rtt 100000us"),
            ("qdisc.cake.bandwidth", "cake", cake, "none", "unlimited"),
            ("qdisc.cake.ack_filter", "cake", cake, "off", "no-ack-filter"),
        ] {
            let row = parameter(id);
            let printed = shown(row, &root(kind, options));
            let setting: SettingRef = format!("{id}@eth0").parse().unwrap();
            let text = format!("qdisc {kind} 8001: root refcnt 2\n");
            let mut shell = Scripted::default().prints("tc qdisc show dev eth0", &text);
            let show = row.show(&At { shell: &mut shell, setting: &setting }).typed();
            let mut shell = shell.prints(&show, &format!("{printed}\n"));
            let mut at = At { shell: &mut shell, setting: &setting };
            assert_eq!(row.read(&mut at).unwrap(), value, "{id}");
            // Asked for what it prints, a kernel would keep one step less.
            let asked = match row.form {
                Form::Micros => (value.parse::<u32>().unwrap() + 1).to_string(),
                _ => value.to_owned(),
            };
            assert_eq!(row.normalise(&mut at, &asked).unwrap(), value, "{id}");
            assert_eq!(row.words(&at, value).unwrap()[0], printed, "{id}: its condition");
            let written = row.write(&mut at, value).unwrap()[0].typed();
            assert_eq!(written, format!("tc qdisc change dev eth0 root {kind} {typed}"));
        }
    }

    /// The tins follow iproute2's tc/q_cake.c `cake_print_xstats`.
    #[test]
    fn a_round_trip_time_of_cake_is_changed_only_if_its_target_comes_back() {
        let setting: SettingRef = "qdisc.cake.rtt@eth0".parse().unwrap();
        let back = |rtt: u32, targets: &[u32]| {
            let tins = targets.iter().map(|us| format!("{{\"sent_bytes\":0,\"target_us\":{us}}}"));
            let tins = tins.collect::<Vec<_>>().join(",");
            let json = format!(
                "[{{\"kind\":\"cake\",\"handle\":\"8001:\",\"root\":true,\"options\":{{\"rtt\":{rtt}}},\"tins\":[{tins}]}}]"
            );
            let mut shell = Scripted::default()
                .prints("tc qdisc show dev eth0", "qdisc cake 8001: root refcnt 2\n")
                .prints("tc -s -d -j qdisc show dev eth0", &json);
            parameter("qdisc.cake.rtt").comes_back(&mut At { shell: &mut shell, setting: &setting })
        };
        assert!(back(100_000, &[5000, 5000, 5000]).is_ok(), "without a bandwidth");
        assert!(back(100_000, &[36_300, 5000, 9100]).is_ok(), "only the slow tins have their own");
        assert!(back(10, &[1]).is_ok(), "a target is at least 1 µs");
        for targets in [&[36_300, 18_200][..], &[4000]] {
            let said = back(100_000, targets).unwrap_err().to_string();
            assert!(said.contains("to 5000 µs") && said.contains("bandwidth@eth0=none"), "{said}");
        }
        assert!(matches!(back(100_000, &[]), Err(RemoteError::NotUnderstood { .. })));
    }

    #[test]
    fn what_would_not_come_back_is_refused() {
        let limit = parameter("qdisc.fq.limit");
        assert!(shown(limit, &root("fq_codel", "\"limit\":1")).contains("is no fq"));
        assert_eq!(parameter("qdisc.cake.diffserv").value("\"unknown\""), None);
        let table = root("fq", "\"limit\":1}, \"stab\":{\"overhead\":14").replace(", ", ",");
        assert!(shown(limit, &table).contains("table of sizes"));
        let autorate = root("cake", "\"bandwidth\":1000,\"autorate\":\"autorate-ingress\"");
        assert!(shown(parameter("qdisc.cake.bandwidth"), &autorate).contains("by what comes in"));
        let setting: SettingRef = "qdisc.fq.limit@eth0".parse().unwrap();
        let back = |handle: &str| {
            let text = format!("qdisc fq {handle} root refcnt 2\n");
            let mut shell = Scripted::default().prints("tc qdisc show dev eth0", &text);
            limit.comes_back(&mut At { shell: &mut shell, setting: &setting })
        };
        assert!(back("8001:").is_ok());
        assert!(back("0:").unwrap_err().to_string().contains("set qdisc.kind first"));
    }
}
