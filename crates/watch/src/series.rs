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

use crate::options::{Options, UNSEEN, belongs, collected, given};
use crate::since::Difference;

/// How long a test is: as [`UNSEEN`], it does not decide the series.
const LENGTH: &str = "length";

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

/// The values that all other options had by default when series began, besides that of [`CHUNK`]. They are not written, so
/// that series go on. Never change them: with a new default, tests are made in another way.
const FIRST_DEFAULTS: [(&str, &str); 4] =
    [("mover", "copy"), ("observe", "true"), ("socket.nodelay", "false"), ("socket.cork", "false")];

/// The bytes of a write or a datagram, whose first default is that of the kind of test.
const CHUNK: &str = "chunk_bytes";

/// The value of an option that is not given.
const NOT_GIVEN: &str = "not given";
/// The value of an option, or of a part of one, that is off.
const OFF: &str = "false";

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

impl Series {
    /// The series of a plan; `on_mount`: the target is a file on a mount.
    pub fn of(plan: &Plan, on_mount: bool) -> Self {
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
            others: others(plan, on_mount),
        }
    }
}

/// The options without a field of their own.
fn others(plan: &Plan, on_mount: bool) -> Options {
    let mut others = given(plan);
    others.retain(|name, value| !is_apart(name) && !is_first_default(plan, on_mount, name, value));
    others
}

/// Whether an option has a field of its own, or does not decide what a test shows.
fn is_apart(name: &str) -> bool {
    let mut apart = FIELDS.iter().chain(&UNSEEN).chain([&LENGTH]);
    apart.any(|option| belongs(name, option))
}

fn is_first_default(plan: &Plan, on_mount: bool, name: &str, value: &str) -> bool {
    match name {
        CHUNK => first_chunks(plan, on_mount).contains(&value),
        _ => FIRST_DEFAULTS.contains(&(name, value)),
    }
}

/// The first defaults of [`CHUNK`]. Never change them either.
fn first_chunks(plan: &Plan, on_mount: bool) -> &'static [&'static str] {
    match (plan.transport, plan.socket.family) {
        (Transport::Tcp, _) if on_mount => &["4194304"],
        (Transport::Tcp, _) => &["131072"],
        (Transport::Udp, Some(Family::V4)) => &["1472"],
        (Transport::Udp, Some(Family::V6)) => &["1452"],
        // The address of the target decides.
        (Transport::Udp, None) => &["1472", "1452"],
    }
}

/// How the tests of `plan` are made in another way than those of an `earlier` series of the same target, the JSON of a
/// [`Series`], of which `test` is the newest one: empty if they are made in the same way. `None` if they ask something else
/// (another protocol or direction), or if the series can't be read.
pub fn made_in_another_way(
    (plan, on_mount): (&Plan, bool),
    earlier: &str,
    test: &Plan,
) -> Option<Vec<Difference>> {
    let now = collected(&serde_json::to_value(Series::of(plan, on_mount)).ok()?);
    let before = completed(earlier, test, on_mount)?;
    if ["transport", "direction"].iter().any(|name| now.get(*name) != before.get(*name)) {
        return None;
    }
    let (given_now, given_before) = (given(plan), given(test));
    let names: BTreeSet<&String> = now.keys().chain(before.keys()).collect();
    let different = |name: &String| {
        let before = value(name, &before, &given_before);
        let since = value(name, &now, &given_now);
        let is_same = before == since
            || since == OFF && is_part_of_none(name, &given_before)
            || before == OFF && is_part_of_none(name, &given_now);
        (!is_same).then(|| Difference { what: format!("option {name}"), before, since })
    };
    Some(names.into_iter().filter_map(different).collect())
}

/// Whether this is a part of an option that is not given, such as how to write a sink: it is not asked for either. An option of
/// its own may be on if it is not given.
fn is_part_of_none(name: &str, given: &Options) -> bool {
    let whole = name.rsplit_once('.').map(|(whole, _)| whole);
    whole.is_some_and(|whole| !given.keys().any(|other| belongs(other, whole)))
}

/// The options of a series, with those of its newest test if it may be of the first watches, which wrote only the fields.
fn completed(series: &str, test: &Plan, on_mount: bool) -> Option<Options> {
    let json: Value = serde_json::from_str(series).ok()?;
    let mut all = json.is_object().then(|| collected(&json))?;
    let is_field = |name: &String| {
        let mut fields = FIELDS.iter().map(|field| field.trim_start_matches("socket."));
        fields.any(|field| belongs(name, field))
    };
    if all.keys().all(is_field) {
        let mut others = others(test, on_mount);
        // An agent chose it, not the user.
        others.remove("rate_limit_of");
        all.extend(others);
    }
    Some(all)
}

/// The value of an option of a series, also if it is not written because it is a first default.
fn value(name: &str, series: &Options, given: &Options) -> String {
    let has_default = name == CHUNK || FIRST_DEFAULTS.iter().any(|(option, _)| *option == name);
    let unwritten = || given.get(name).filter(|_| has_default);
    series.get(name).or_else(unwritten).cloned().unwrap_or_else(|| NOT_GIVEN.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::{Bytes, Length};

    fn json(plan: &Plan) -> String {
        serde_json::to_string(&Series::of(plan, false)).unwrap()
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
        let said = made_in_another_way((&now, false), &json(&before), &before).unwrap();
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
                let is_written = others(&plan, false).contains_key(&name);
                let is_first = is_first_default(&plan, false, &name, &value);
                assert!(is_apart(&name) || is_written != is_first, "{name}: {value}");
            }
        }
    }

    #[test]
    fn tests_that_ask_something_else_or_that_can_not_be_read_are_no_change_of_the_test() {
        let reverse = Plan { direction: Direction::Reverse, ..Plan::standard() };
        let standard = json(&Plan::standard());
        let said = |plan: &Plan, earlier: &str| {
            made_in_another_way((plan, false), earlier, &Plan::standard())
        };
        assert_eq!(said(&reverse, &standard), None);
        assert_eq!(said(&udp("copy", None), &standard), None);
        for earlier in ["", "null", "[]", "{}"] {
            assert_eq!(said(&Plan::standard(), earlier), None, "{earlier}");
        }
        assert_eq!(said(&Plan::standard(), &standard), Some(Vec::new()));
        let four = Plan { flows: 4, ..Plan::standard() };
        let [flows] = &said(&four, &standard).unwrap()[..] else { panic!("one") };
        assert_eq!((&*flows.what, &*flows.before, &*flows.since), ("option flows", "1", "4"));
    }

    #[test]
    fn a_part_that_is_off_of_an_option_that_was_not_given_is_no_difference() {
        let mut with_sink = Plan::standard();
        let sink = r#"{"name":"/tmp/x","direct":false,"fsync":false}"#;
        with_sink.storage.sink = serde_json::from_str(sink).ok();
        assert!(with_sink.storage.sink.is_some());
        let standard = Plan::standard();
        let said = made_in_another_way((&with_sink, false), &json(&standard), &standard).unwrap();
        assert!(said.iter().any(|one| one.what.contains("sink")), "{said:?}");
        assert!(said.iter().all(|one| one.since != "false"), "{said:?}");
        let back = made_in_another_way((&standard, false), &json(&with_sink), &with_sink).unwrap();
        assert!(back.iter().all(|one| one.before != "false"), "{back:?}");
    }

    #[test]
    fn an_option_that_is_off_and_one_that_is_not_given_are_different() {
        let standard = Plan::standard();
        for (of_all, of_sockets, name) in [
            (r#"{"observed":false,"#, "", "observed"),
            ("{", r#","socket":{"observed":false}"#, "socket.observed"),
        ] {
            let own = json(&standard);
            let own = own.strip_prefix('{').unwrap().strip_suffix('}').unwrap();
            let earlier = format!("{of_all}{own}{of_sockets}}}");
            let said = made_in_another_way((&standard, false), &earlier, &standard).unwrap();
            let [one] = &said[..] else { panic!("{said:?}") };
            assert_eq!((&*one.what, &*one.before), (&*format!("option {name}"), "false"));
        }
    }

    /// The series of the first watches have no options besides the fields.
    #[test]
    fn what_the_first_watches_did_not_write_is_that_of_their_newest_test() {
        let first = json(&Plan::standard());
        let small = Plan { chunk_bytes: Bytes(65536), ..Plan::standard() };
        // As an agent with a limit left it.
        let limited = Plan {
            rate_bits_per_s: Some(BitRate(1e6)),
            rate_limit_of: Some(goodput_model::EndName::Far),
            ..small.clone()
        };
        for test in [&small, &limited] {
            let said = |plan: &Plan| made_in_another_way((plan, false), &first, test).unwrap();
            assert_eq!(said(&small), [], "the series goes on");
            let [chunk] = &said(&Plan::standard())[..] else { panic!("one") };
            assert_eq!((&*chunk.before, &*chunk.since), ("65536", "131072"));
        }
        let own = json(&small);
        let [chunk] = &made_in_another_way((&Plan::standard(), false), &own, &small).unwrap()[..]
        else {
            panic!("one")
        };
        assert_eq!((&*chunk.before, &*chunk.since), ("65536", "131072"));
    }

    #[test]
    fn the_default_chunk_of_one_kind_of_test_is_none_of_another_kind() {
        let is_written = |plan: &Plan, on_mount| others(plan, on_mount).contains_key(CHUNK);
        let tcp = |bytes| Plan { chunk_bytes: Bytes(bytes), ..Plan::standard() };
        assert!(!is_written(&tcp(128 << 10), false) && is_written(&tcp(128 << 10), true));
        assert!(is_written(&tcp(4 << 20), false) && !is_written(&tcp(4 << 20), true));
        assert!(is_written(&tcp(1472), false));
        let over = |family, bytes| {
            let mut plan = Plan { chunk_bytes: Bytes(bytes), ..udp("copy", None) };
            plan.socket.family = family;
            is_written(&plan, false)
        };
        assert!(!over(Some(Family::V4), 1472) && over(Some(Family::V4), 1452));
        assert!(over(Some(Family::V6), 1472) && !over(Some(Family::V6), 1452));
        assert!(!over(None, 1472) && !over(None, 1452) && over(None, 131_072));
    }
}
