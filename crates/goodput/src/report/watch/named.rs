//! What differs between tests, in words: records have names for programs, such as `option chunk_bytes` and
//! `link.speed_bits_per_s of the far end`; a person reads `--chunk` and `link speed of the far end`.

use goodput_model::{BitRate, PacketBytes, Seconds};
use goodput_watch::Difference;

/// Options of a plan whose names in the plan are not those of the command line, by what their names begin with.
const OPTIONS: &[(&str, &str)] = &[
    ("length", "length of a test"),
    ("direction", "direction"),
    ("transport", "transport"),
    ("interval_s", "--interval"),
    ("rate_limit_of", "end that limits the rate"),
    ("peer_output", "--peer-output"),
    ("arrivals", "times of datagrams"),
    ("far_capture", "capture at the far end"),
    ("towards", "host that gets the payload"),
    ("pin", "--pin"),
    ("observe", "observation of the hosts"),
    ("storage.source.file.cache", "page cache before a test"),
    ("storage.source.memory", "--size"),
    ("storage.source", "--source"),
    ("storage.sink.direct", "--direct"),
    ("storage.sink.fsync", "--fsync"),
    ("storage.sink_alone", "trial of the sink alone"),
    ("storage.sink", "--sink"),
    ("storage.header_bytes", "--header"),
    ("storage.header_more", "--more"),
    ("mount.direct", "reading past the page cache"),
    ("family", "IP version"),
    ("spread_ports", "--source-port"),
];

/// What the names of a host's facts begin with, and what that is called.
const AREAS: &[(&str, &str)] = &[
    ("qdisc", "queueing discipline"),
    ("frequency", "CPU clock"),
    ("steering", "packet steering"),
    ("negotiation", "link negotiation"),
    ("pause", "pause frames"),
    ("coalescing", "interrupt coalescing"),
    ("filters", "traffic filters"),
    ("nftables", "packet filter"),
    ("numa", "NUMA"),
    ("eee", "EEE"),
    ("fec", "FEC"),
];

/// How a number is written with its unit.
type InUnit = fn(f64) -> String;

/// How a name ends that has a unit, and how a value of this unit is written.
const UNITS: &[(&str, InUnit)] = &[
    ("_bits_per_s", |value| BitRate(value).to_string()),
    ("_gt_per_s", |value| format!("{value} GT/s")),
    ("_bytes", |value| PacketBytes(value as u64).to_string()),
    ("_frames", |value| format!("{value} frames")),
    ("_packets", |value| format!("{value} packets")),
    ("_percent", |value| format!("{value} %")),
    ("_hz", |value| format!("{} MHz", value / 1e6)),
    ("_us", |value| Seconds(value / 1e6).to_string()),
    ("_seconds", |value| Seconds(value).to_string()),
    ("_s", |value| Seconds(value).to_string()),
];

/// The same difference as a person reads it. What is in words already stays.
pub(super) fn in_words(difference: &Difference) -> Difference {
    let Difference { what, before, since } = difference;
    let (what, name) = match (what.strip_prefix("option "), what.split_once(" of the ")) {
        (Some(option), _) => (option_name(option), option),
        (None, Some((fact, end))) if is_fact(fact) => {
            (format!("{} of the {end}", fact_name(fact)), fact)
        }
        _ => return difference.clone(),
    };
    let [before, since] = [before, since].map(|text| value(name, text));
    Difference { what, before, since }
}

/// A fact is an area, a dot and a name; words have spaces.
fn is_fact(text: &str) -> bool {
    text.contains('.') && !text.contains(' ')
}

/// The name of an option of the plan on the command line, or what it is if there is no such option.
fn option_name(option: &str) -> String {
    let own = option.strip_prefix("socket.").unwrap_or(option);
    let is_part = |whole: &str| {
        own.strip_prefix(whole).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    if let Some((_, words)) = OPTIONS.iter().find(|(whole, _)| is_part(whole)) {
        return (*words).into();
    }
    let last = own.rsplit('.').next().unwrap_or(own);
    format!("--{}", without_unit(last).replace('_', "-"))
}

/// A fact by the name of the setting that changes it, or in words.
fn fact_name(fact: &str) -> String {
    let setting = without_unit(fact);
    if setting.starts_with("sysctl.") || goodput_settings::find(setting).is_ok() {
        return setting.into();
    }
    let (area, name) = setting.split_once('.').unwrap_or((setting, ""));
    let area = AREAS.iter().find(|(id, _)| *id == area).map_or(area, |(_, words)| words);
    let name = name.replace(['.', '_'], " ");
    let name = match name.as_str() {
        // Its kind is what a discipline is called by.
        "kind" => "",
        "mtu" => "MTU",
        name => name,
    };
    format!("{area} {name}").trim_end().into()
}

fn without_unit(name: &str) -> &str {
    UNITS.iter().find_map(|(unit, _)| name.strip_suffix(unit)).unwrap_or(name)
}

/// A value with the unit that the name says.
fn value(name: &str, text: &str) -> String {
    // `length.bytes` has its unit as well.
    let name = name.replace('.', "_");
    let unit = UNITS.iter().find(|(unit, _)| name.ends_with(unit));
    match (text, unit) {
        ("true", _) => "on".into(),
        ("false", _) => "off".into(),
        (_, Some((_, write))) => text.parse().map_or_else(|_| text.into(), write),
        (_, None) => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use goodput_model::Plan;
    use serde_json::Value;

    use super::*;
    use crate::args::Cli;

    fn words(what: &str, before: &str, since: &str) -> String {
        let difference =
            Difference { what: what.into(), before: before.into(), since: since.into() };
        let Difference { what, before, since } = in_words(&difference);
        format!("{what}: {since}, before {before}")
    }

    #[test]
    fn an_option_has_the_name_that_the_user_typed_and_its_value_a_unit() {
        for (what, before, since, expected) in [
            ("option flows", "1", "4", "--flows: 4, before 1"),
            (
                "option rate_bits_per_s",
                "1000000.0",
                "not given",
                "--rate: not given, before 1 Mbit/s",
            ),
            ("option chunk_bytes", "131072", "65536", "--chunk: 65536 bytes, before 131072 bytes"),
            (
                "option socket.sndbuf_bytes",
                "not given",
                "1000",
                "--sndbuf: 1000 bytes, before not given",
            ),
            (
                "option socket.notsent_lowat_bytes",
                "1",
                "2",
                "--notsent-lowat: 2 bytes, before 1 byte",
            ),
            ("option nodelay", "false", "true", "--nodelay: on, before off"),
            ("option length.bytes", "10", "20", "length of a test: 20 bytes, before 10 bytes"),
            ("option storage.sink.direct", "false", "true", "--direct: on, before off"),
        ] {
            assert_eq!(words(what, before, since), expected);
        }
    }

    #[test]
    fn a_fact_is_called_like_its_setting_or_in_words() {
        let near = " of the near end";
        for (fact, expected) in [
            ("sysctl.net.ipv4.tcp_rmem", "sysctl.net.ipv4.tcp_rmem"),
            ("link.mtu_bytes", "link.mtu"),
            ("link.speed_bits_per_s", "link speed"),
            ("route.gateway", "route gateway"),
            ("neighbour.next_hop", "neighbour next hop"),
            ("filters.ingress_policers", "traffic filters ingress policers"),
            ("frequency.max_hz", "CPU clock max"),
            ("qdisc.peak_rate_bits_per_s", "queueing discipline peak rate"),
        ] {
            let said = words(&format!("{fact}{near}"), "a", "b");
            assert_eq!(said, format!("{expected}{near}: b, before a"));
        }
        let speed = words("link.speed_bits_per_s of the far end", "1000000000", "100000000");
        assert_eq!(speed, "link speed of the far end: 100 Mbit/s, before 1 Gbit/s");
    }

    #[test]
    fn what_is_in_words_stays() {
        for what in ["goodput of the near end", "path MTU", "CPU use of the far host"] {
            assert!(words(what, "false", "1").starts_with(&format!("{what}: 1, before false")));
        }
    }

    /// The places of all values, as `option` names them.
    fn places(place: &str, json: &Value, all: &mut Vec<String>) {
        match json {
            Value::Object(fields) => {
                let dot = if place.is_empty() { "" } else { "." };
                fields
                    .iter()
                    .for_each(|(name, json)| places(&format!("{place}{dot}{name}"), json, all));
            }
            _ => all.push(place.into()),
        }
    }

    #[test]
    fn every_option_of_a_plan_is_one_of_the_command_line_or_in_words() {
        let cli = Cli::command();
        let watch = cli.find_subcommand("watch").unwrap();
        let known = |name: &str| watch.get_arguments().any(|arg| arg.get_long() == Some(name));
        let schema = serde_json::to_value(schemars::schema_for!(Plan)).unwrap();
        let mut all = Vec::new();
        places("", &serde_json::to_value(Plan::standard()).unwrap(), &mut all);
        all.extend(schema["properties"].as_object().unwrap().keys().cloned());
        for part in ["SocketOptions", "NfsPlan"] {
            let fields = schema["$defs"][part]["properties"].as_object().unwrap();
            let own = if part == "NfsPlan" { "nfs" } else { "socket" };
            all.extend(fields.keys().map(|name| format!("{own}.{name}")));
        }
        // They are groups of options.
        all.retain(|place| !["socket", "nfs", "mount", "storage"].contains(&place.as_str()));
        for place in all {
            let name = option_name(&place);
            let long = name.strip_prefix("--").map(|name| name.split(' ').next().unwrap_or(name));
            assert!(long.is_none_or(known) && !name.contains('_'), "{place}: {name}");
        }
    }
}
