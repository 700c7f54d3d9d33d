//! Which tests can be compared: a series is a target, and how its tests are made.
//!
//! Only the length of a test may differ within a series: it follows from the budget, and a new one each time would say
//! nothing for two days. What changed within a series all the same, such as the length or the program, is named as a
//! change of the test (`since`).

use std::collections::BTreeSet;
use std::net::IpAddr;

use goodput_model::{BitRate, Direction, Family, Plan, Storage, Transport};
use serde::Serialize;
use serde_json::Value;

use crate::options::{Options, collected, given};
use crate::since::Difference;

/// Options that don't decide what a test shows: its length, the intervals that are kept, and whether the far end's own
/// output is asked for.
const UNDECISIVE: [&str; 3] = ["length", "interval_s", "peer_output"];

/// What series have always had as fields of their own, also if it is not given.
const FIELDS: [&str; 12] = [
    "transport",
    "direction",
    "flows",
    "rate_bits_per_s",
    "storage",
    "fetches",
    "towards",
    "socket.family",
    "socket.bind",
    "socket.device",
    "socket.mptcp",
    "socket.dscp",
];

/// The values that all other options had by default when series began. They are not written, so that series go on. Never
/// change them: with a new default, tests are made in another way.
const FIRST_DEFAULTS: [(&str, &[&str]); 5] = [
    ("mover", &["copy"]),
    // Of streams, files on a mount, and datagrams over IPv4 and IPv6.
    ("chunk_bytes", &["131072", "4194304", "1472", "1452"]),
    ("observe", &["true"]),
    ("socket.nodelay", &["false"]),
    ("socket.cork", &["false"]),
];

/// What all tests of a series have in common.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    transport: Transport,
    direction: Direction,
    flows: u16,
    /// The rate that the user asks for: a slower test shows another limit.
    rate_bits_per_s: Option<BitRate>,
    storage: Storage,
    fetches: Option<u32>,
    /// The far end sends to this address, not back to the near end.
    towards: Option<IpAddr>,
    family: Option<Family>,
    /// The near end's address and device, which choose the route.
    bind: Option<IpAddr>,
    device: Option<String>,
    mptcp: bool,
    /// The class of the packets, which a path may treat differently.
    dscp: Option<u8>,
    /// Every other option that can decide what a test shows, unless it has its first default.
    #[serde(flatten)]
    others: Options,
}

impl From<&Plan> for Series {
    fn from(plan: &Plan) -> Self {
        let socket = &plan.socket;
        Self {
            transport: plan.transport,
            direction: plan.direction,
            flows: plan.flows,
            rate_bits_per_s: plan.rate_bits_per_s,
            storage: plan.storage.clone(),
            fetches: plan.fetches,
            towards: plan.towards,
            family: socket.family,
            bind: socket.bind,
            device: socket.device.clone(),
            mptcp: socket.mptcp,
            dscp: socket.dscp,
            others: others(plan),
        }
    }
}

/// The options without a field of their own.
fn others(plan: &Plan) -> Options {
    let mut others = given(plan);
    others.retain(|name, value| {
        let is_apart = UNDECISIVE.iter().chain(&FIELDS).any(|group| belongs(name, group));
        !is_apart && !first_defaults(name).contains(&value.as_str())
    });
    others
}

/// Whether an option is this one, or a part of it.
fn belongs(name: &str, option: &str) -> bool {
    name.strip_prefix(option).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn first_defaults(name: &str) -> &'static [&'static str] {
    FIRST_DEFAULTS.iter().find(|(option, _)| *option == name).map_or(&[], |(_, values)| values)
}

/// How the tests of a series are made in another way than those of an `earlier` series of the same target; empty if they ask
/// something else (another protocol or direction), or if one can't be read. Both are the JSON of a [`Series`].
pub fn made_in_another_way(series: &str, earlier: &str) -> Vec<Difference> {
    let read = |json: &str| -> Option<Options> {
        let json: Value = serde_json::from_str(json).ok()?;
        json.is_object().then(|| collected(&json))
    };
    let Some((now, before)) = read(series).zip(read(earlier)) else { return Vec::new() };
    if ["transport", "direction"].iter().any(|name| now.get(*name) != before.get(*name)) {
        return Vec::new();
    }
    let names: BTreeSet<&String> = now.keys().chain(before.keys()).collect();
    names.into_iter().filter_map(|name| different(name, &now, &before)).collect()
}

fn different(name: &str, now: &Options, before: &Options) -> Option<Difference> {
    let value = |options: &Options| {
        let first = first_defaults(name).first().copied().unwrap_or("not given");
        options.get(name).cloned().unwrap_or_else(|| first.into())
    };
    let (before, since) = (value(before), value(now));
    (before != since).then(|| Difference { what: format!("option {name}"), before, since })
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::{Bytes, Length};

    fn json(plan: &Plan) -> String {
        serde_json::to_string(&Series::from(plan)).unwrap()
    }

    fn udp(mover: &str, rate_bits_per_s: Option<f64>) -> Plan {
        Plan {
            transport: Transport::Udp,
            mover: mover.into(),
            chunk_bytes: Bytes(1472),
            rate_bits_per_s: rate_bits_per_s.map(BitRate),
            ..Plan::standard()
        }
    }

    /// What the first watches wrote: they are not to begin anew.
    #[test]
    fn a_test_with_the_first_defaults_belongs_to_the_series_of_the_first_watches() {
        let first = |transport: &str, rate: &str| {
            format!(
                r#"{{"transport":"{transport}","direction":"send","flows":1,"rate_bits_per_s":{rate},"storage":{storage},"fetches":null,"towards":null,"family":null,"bind":null,"device":null,"mptcp":false,"dscp":null}}"#,
                storage = serde_json::to_string(&Storage::default()).unwrap()
            )
        };
        assert_eq!(json(&Plan::standard()), first("tcp", "null"));
        assert_eq!(json(&udp("copy", Some(1e6))), first("udp", "1000000.0"));
        assert_eq!(json(&udp("copy", None)), first("udp", "null"));
    }

    #[test]
    fn an_upgrade_that_changes_a_default_begins_a_series_and_is_named() {
        let (before, now) = (udp("copy", None), udp("auto", None));
        assert_eq!(now.mover, now.usual_mover(), "this is the default today");
        let said = made_in_another_way(&json(&now), &json(&before));
        let mover =
            Difference { what: "option mover".into(), before: "copy".into(), since: "auto".into() };
        assert_eq!(said, [mover]);
    }

    #[test]
    fn what_decides_the_figure_is_of_the_series_and_the_length_is_not() {
        let standard = json(&Plan::standard());
        let changes: [fn(&mut Plan); 9] = [
            |plan| plan.flows = 4,
            |plan| plan.direction = Direction::Reverse,
            |plan| plan.rate_bits_per_s = Some(BitRate(1e6)),
            |plan| plan.receive_mover = Some("discard".into()),
            |plan| plan.chunk_bytes = Bytes(1000),
            |plan| plan.omit_s = 1.0,
            |plan| plan.socket.congestion = Some("bbr".into()),
            |plan| plan.socket.sndbuf_bytes = Some(Bytes(65536)),
            |plan| plan.socket.nodelay = true,
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let mut plan = Plan::standard();
            change(&mut plan);
            assert_ne!(json(&plan), standard, "{number}");
        }
        for length in [Length::Seconds(1.0), Length::Bytes(Bytes(1)), Length::Source] {
            let plan = Plan { length, interval_s: 0.5, ..Plan::standard() };
            assert_eq!(json(&plan), standard);
        }
    }

    /// A default of today is either the first one, or it is written: then a change of it can't hide.
    #[test]
    fn every_default_is_a_first_one_or_written() {
        for plan in [Plan::standard(), udp("auto", None), udp("copy", Some(1e6))] {
            for (name, value) in given(&plan) {
                let has_field = FIELDS.iter().chain(&UNDECISIVE).any(|one| belongs(&name, one));
                let is_written = others(&plan).contains_key(&name);
                let is_first = first_defaults(&name).contains(&value.as_str());
                assert!(has_field || is_written != is_first, "{name}: {value}");
            }
        }
    }

    #[test]
    fn tests_that_ask_something_else_or_that_can_not_be_read_are_no_change_of_the_test() {
        let reverse = Plan { direction: Direction::Reverse, ..Plan::standard() };
        let standard = json(&Plan::standard());
        assert_eq!(made_in_another_way(&json(&reverse), &standard), []);
        assert_eq!(made_in_another_way(&json(&udp("copy", None)), &standard), []);
        for earlier in ["", "null", "[]", "{}", &standard] {
            assert_eq!(made_in_another_way(&standard, earlier), [], "{earlier}");
        }
        let four = Plan { flows: 4, ..Plan::standard() };
        let [flows] = &made_in_another_way(&json(&four), &standard)[..] else { panic!("one") };
        assert_eq!((&*flows.what, &*flows.before, &*flows.since), ("option flows", "1", "4"));
    }
}
