//! What else changed when the path did: the test itself, limits, settings of both hosts, and what TCP saw.
//!
//! If the test changed, nobody knows whether the path did: its options, the movers that carried the payload, and the program
//! are apart from all other changes.
//!
//! A setting changed with the path if it changed about then, was steady before, and has lasted since. A quantity changed if the ranks of
//! its values since are too unlikely among those before.

use std::collections::{BTreeMap, BTreeSet};

use goodput_model::record::DirectionResult;
use goodput_model::{
    Bytes, End, EndName, Fact, Known, NOT_SET, PacketBytes, Record, Role, Seconds, TcpInfo, median,
};
use serde::{Deserialize, Serialize};

use crate::limit::{Limit, usual};
use crate::options::{Options, UNSEEN, belongs, given};
use crate::ranks::{place, probability, standard_sum};
use crate::window::MIN_WINDOW;

/// A setting that changed within this many tests of the beginning of a change, or of the tests that it may have begun with, changed
/// with the path. As many tests as the shortest window has that is tried: a test before a change that lies like those after it moves
/// its beginning.
const NEAR: usize = MIN_WINDOW;
/// Tests before its change during which a setting was the same, or all: one that flips now and then changed with nothing.
const STEADY: usize = 2 * NEAR;
/// Tests that a changed setting has lasted for at least, and of which a quantity is known.
const FEWEST: usize = 3;
/// Probability below which the limit changed: otherwise the verdicts flip between two.
const LIMIT_LEVEL: f64 = 0.01;
/// Probability below which a quantity changed: 1 % for all of them together.
const LEVEL: f64 = 0.01 / COMPARED.len() as f64;

/// One thing that changed, in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// What: `near kernel`, `route.device of the far end`, `round trip`.
    pub what: String,
    /// Its value before.
    pub before: String,
    /// Its value since.
    pub since: String,
}

/// What else changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Differences {
    /// The limit before; none without a record.
    pub before: Option<Limit>,
    /// The limit since.
    pub since: Option<Limit>,
    /// What changed of the test itself: its options, its movers, and the program at both ends.
    pub test: Vec<Difference>,
    /// Everything else that changed, settings first.
    pub changed: Vec<Difference>,
}

/// Tests around a change, oldest first: those before it, those that may be of either side, and those since.
type Sides<'a, T> = [&'a [T]; 3];

/// Compares the tests before a change with those since. Those that may be of either side say only when a setting changed. Of a
/// host's facts, those are compared that `lasts` says are settings or lasting states: a counter that rarely grows can look like
/// one.
pub fn differences(sides: [&[Record]; 3], lasts: impl Fn(&str) -> bool) -> Differences {
    let ends = [EndName::Near, EndName::Far];
    let programs = ends.into_iter().flat_map(|name| programs(name, sides));
    let test = options(sides).into_iter().chain(programs).collect();
    let hosts = ends.into_iter().flat_map(|name| hosts(name, sides, &lasts));
    let addresses = addresses(sides);
    let [before, between, since] = sides;
    let surely_before = if between.is_empty() { surely_before(before) } else { before };
    let quantities = COMPARED.iter().filter_map(|quantity| quantity.changed(surely_before, since));
    let of = |records: &[Record]| records.iter().map(Limit::of).collect::<Vec<_>>();
    let (before, since) = limits(&of(before), &of(since), surely_before.len());
    Differences {
        before,
        since,
        test,
        changed: addresses.into_iter().chain(hosts).chain(quantities).collect(),
    }
}

/// The tests before a change that is dated to the test, without those so near to it that the date may be wrong by them.
fn surely_before(before: &[Record]) -> &[Record] {
    &before[..before.len().saturating_sub(NEAR).max(before.len().min(FEWEST))]
}

/// The usual limit before, of which the first `surely` tests are surely before, and that since. If tests flip between
/// limits, the limit is the same on both sides: the more frequent one.
fn limits(before: &[Limit], since: &[Limit], surely: usize) -> (Option<Limit>, Option<Limit>) {
    let own = [usual(before), usual(since)];
    let [Some(one), Some(other)] = own else { return (own[0].cloned(), own[1].cloned()) };
    let has_changed = |limit: &Limit| {
        let has = |tests: &[Limit]| -> Vec<f64> {
            tests.iter().map(|test| f64::from(u8::from(test.is(limit)))).collect()
        };
        by_chance(&mut has(&before[..surely]), &has(since)) < LIMIT_LEVEL
    };
    if one.is(other) || has_changed(one) || has_changed(other) {
        return (Some(one.clone()), Some(other.clone()));
    }
    let all = [before, since].concat();
    let common = |tests: &[Limit]| {
        let common = usual(&all)?;
        tests.iter().rfind(|test| test.is(common)).cloned()
    };
    match (common(before), common(since)) {
        (Some(one), Some(other)) => (Some(one), Some(other)),
        _ => (Some(one.clone()), Some(other.clone())),
    }
}

/// Probability that values of an unchanged path lie as far from the middle of the `reference`, which gets sorted.
fn by_chance(reference: &mut [f64], values: &[f64]) -> f64 {
    reference.sort_by(f64::total_cmp);
    let sum = values.iter().map(|value| place(reference, *value)).sum();
    probability(standard_sum(sum, values.len(), reference.len(), 1.0), values.len())
}

/// A value that changed near the time of the path's change, was steady before that, and has lasted since. What it was long
/// before does not matter: a cause may come again.
fn different<R, T: PartialEq + ToString>(
    what: &str,
    sides: Sides<R>,
    value: impl Fn(&R) -> Option<T>,
) -> Option<Difference> {
    let all: Vec<Option<T>> = sides.into_iter().flatten().map(value).collect();
    let [before, between, since] = sides.map(<[R]>::len);
    let newest = all.last()?.as_ref()?;
    let changed = all.iter().rposition(|value| value.as_ref() != Some(newest))? + 1;
    let previous = all[..changed].last()?.as_ref()?;
    let lasted =
        all[..changed].iter().rev().take_while(|value| value.as_ref() == Some(previous)).count();
    let was_steady = lasted >= changed.min(STEADY);
    let is_near = (before..=before + between + 2 * NEAR).contains(&(changed + NEAR));
    let has_lasted = all.len() - changed >= FEWEST.min(since);
    (was_steady && is_near && has_lasted).then(|| Difference {
        what: what.into(),
        before: previous.to_string(),
        since: newest.to_string(),
    })
}

fn end(record: &Record, name: EndName) -> Option<&End> {
    match name {
        EndName::Near => record.ends.near.value(),
        EndName::Far => record.ends.far.value(),
    }
}

/// Options of the tests, such as their length, without those that show nothing of the path.
fn options(sides: Sides<Record>) -> Vec<Difference> {
    let all = |records: &[Record]| -> Vec<Options> {
        records.iter().map(|record| given(&record.plan)).collect()
    };
    let sides = sides.map(all);
    let mut names: BTreeSet<&String> = sides.iter().flatten().flat_map(BTreeMap::keys).collect();
    names.retain(|name| !UNSEEN.iter().any(|option| belongs(name, option)));
    let value = |name: &String, options: &Options| {
        Some(options.get(name).cloned().unwrap_or_else(|| "not given".into()))
    };
    let difference = |name: &String| {
        let sides = sides.each_ref().map(Vec::as_slice);
        different(&format!("option {name}"), sides, |options| value(name, options))
    };
    names.into_iter().filter_map(difference).collect()
}

/// The program of one end, and what it chose to move the payload by.
fn programs(name: EndName, sides: Sides<Record>) -> Vec<Difference> {
    let own = |what: &str| format!("{what} of the {name} end");
    let program = |record: &Record| end(record, name).map(|end| end.host.goodput.clone());
    let chosen = |role: Role| move |record: &Record| mover(record, name, role);
    let all = [
        different(&own("goodput"), sides, program),
        different(&own("sending mover"), sides, chosen(Role::Sender)),
        different(&own("receiving mover"), sides, chosen(Role::Receiver)),
    ];
    all.into_iter().flatten().collect()
}

/// The mover that an end chose; `as planned` if the plan names one.
fn mover(record: &Record, name: EndName, role: Role) -> Option<String> {
    let chosen = end(record, name)?.movers.iter().find(|chosen| chosen.role == role);
    Some(chosen.map_or_else(|| "as planned".into(), |chosen| chosen.mover.clone()))
}

/// Kernel and settings of one host.
fn hosts(name: EndName, sides: Sides<Record>, lasts: impl Fn(&str) -> bool) -> Vec<Difference> {
    let own = |what: &str| format!("{what} of the {name} end");
    let host = |value: fn(&End) -> String| move |record: &Record| end(record, name).map(value);
    let mut all: Vec<Difference> = [
        different(&own("host"), sides, host(|end| end.host.name.clone())),
        different(&own("kernel"), sides, host(|end| end.host.kernel.clone())),
        different(&own("number of CPUs"), sides, host(|end| end.host.cpus.to_string())),
    ]
    .into_iter()
    .flatten()
    .collect();
    let [before, _, since] = sides;
    let oldest = before.first().and_then(|record| end(record, name));
    let newest = since.last().and_then(|record| end(record, name));
    let outer = oldest.into_iter().chain(newest);
    let facts: BTreeSet<&String> = outer.flat_map(|end| end.before.facts.keys()).collect();
    let program = |end: Option<&End>| end.map(|end| end.host.goodput.clone());
    let one_program = program(oldest).filter(|oldest| Some(oldest) == program(newest).as_ref());
    all.extend(facts.into_iter().filter(|fact| lasts(fact)).filter_map(|fact| {
        let setting = |record: &Record| {
            let end = end(record, name)?;
            // Another goodput may look for more, or for less.
            let is_none =
                || Some(&end.host.goodput) == one_program.as_ref() && is_not_set(end, fact);
            steady(end, fact).or_else(|| is_none().then(|| "none".into()))
        };
        different(&own(fact), sides, setting)
    }));
    all
}

/// Whether a host had no such setting, before and after the test: its area was read, and nothing says that it could not be.
fn is_not_set(end: &End, name: &str) -> bool {
    let area = name.split('.').next().unwrap_or(name);
    let belongs = |fact: &String| fact.strip_prefix(area).is_some_and(|rest| rest.starts_with('.'));
    [&end.before, &end.after].into_iter().all(|host| {
        let unread = |name: &str| host.missing.get(name).is_some_and(|why| why != NOT_SET);
        let is_missing = unread(area) || unread(name);
        let is_read = host.facts.keys().any(belongs);
        is_read && !is_missing && !host.facts.contains_key(name)
    })
}

/// A fact that was the same before and after the test.
fn steady(end: &End, name: &str) -> Option<String> {
    let (before, after) = (end.before.facts.get(name)?, end.after.facts.get(name)?);
    (before == after).then(|| match before {
        Fact::Count(count) => count.to_string(),
        Fact::Real(real) => real.to_string(),
        Fact::Text(text) => text.clone(),
    })
}

/// The addresses of the flows, without ports: another one is another route, or another host behind the name.
fn addresses(sides: Sides<Record>) -> Vec<Difference> {
    let near = |record: &Record| Some(record.connections.first()?.local.ip());
    let far = |record: &Record| Some(record.connections.first()?.remote.ip());
    let both = [
        different("address of the near end", sides, near),
        different("address of the far end", sides, far),
        different("path MTU", sides, |record| Some(PacketBytes(tcp(record)?.pmtu_bytes?))),
        different("segment size", sides, |record| Some(PacketBytes(tcp(record)?.snd_mss_bytes?))),
    ];
    both.into_iter().flatten().collect()
}

/// The sender's newest tcp_info.
fn tcp(record: &Record) -> Option<&TcpInfo> {
    let samples = &end(record, record.verdict.sender)?.samples;
    let detailed = samples.iter().rev().find(|sample| !sample.flows.is_empty())?;
    detailed.flows.first()?.tcp.value()
}

/// A number of a test that may change with the path.
struct ComparedNumber {
    name: &'static str,
    value: fn(&Record) -> Option<f64>,
    words: fn(f64) -> String,
}

const COMPARED: [ComparedNumber; 8] = [
    ComparedNumber {
        name: "smallest round trip",
        value: |record| known(&main_direction(record)?.min_rtt_us),
        words: time,
    },
    ComparedNumber {
        name: "round trip under load",
        value: |record| known(&main_direction(record)?.rtt_us),
        words: time,
    },
    ComparedNumber { name: "retransmitted share", value: retransmitted, words: percent },
    ComparedNumber {
        name: "lost datagrams",
        value: |record| known(&main_direction(record)?.lost_percent),
        words: percent,
    },
    ComparedNumber {
        name: "receiver's window",
        value: |record| Some(tcp(record)?.snd_wnd_bytes? as f64),
        words: bytes,
    },
    ComparedNumber { name: "congestion window", value: congestion_window, words: bytes },
    ComparedNumber {
        name: "CPU use of the near host",
        value: |record| known(&record.result.near.host_cpu_percent),
        words: percent,
    },
    ComparedNumber {
        name: "CPU use of the far host",
        value: |record| known(&record.result.far.host_cpu_percent),
        words: percent,
    },
];

impl ComparedNumber {
    fn changed(&self, before: &[Record], since: &[Record]) -> Option<Difference> {
        let of = |records: &[Record]| -> Vec<f64> {
            records.iter().filter_map(self.value).filter(|value| value.is_finite()).collect()
        };
        let (mut reference, values) = (of(before), of(since));
        let (one, other) = (median(reference.iter().copied())?, median(values.iter().copied())?);
        let words = || Difference {
            what: self.name.into(),
            before: (self.words)(one),
            since: (self.words)(other),
        };
        (by_chance(&mut reference, &values) < LEVEL).then(words)
    }
}

/// The direction that the verdict is about.
fn main_direction(record: &Record) -> Option<&DirectionResult> {
    record.result.directions.iter().find(|one| one.sender == record.verdict.sender)
}

fn known(value: &Known<f64>) -> Option<f64> {
    value.value().copied()
}

/// Share of all bytes sent over TCP that were sent again, percent, as the history has it.
fn retransmitted(record: &Record) -> Option<f64> {
    let main = main_direction(record)?;
    let again = *main.retransmitted_bytes.value()? as f64;
    let all = again + *main.sent_bytes.value()? as f64;
    (all > 0.0).then(|| again / all * 100.0)
}

fn congestion_window(record: &Record) -> Option<f64> {
    let tcp = tcp(record)?;
    Some((tcp.snd_cwnd_segments? * tcp.snd_mss_bytes?) as f64)
}

fn time(us: f64) -> String {
    Seconds(us / 1e6).to_string()
}

fn percent(value: f64) -> String {
    format!("{value:.2} %")
}

fn bytes(value: f64) -> String {
    Bytes(value as u64).to_string()
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;
    use goodput_model::{Connection, Length, MoverChoice};
    use rand::rngs::Xoshiro256PlusPlus;
    use rand::{RngExt, SeedableRng};

    type Random = Xoshiro256PlusPlus;

    /// A value of a healthy path, within some percent.
    fn about(random: &mut Random, value: f64, percent: f64) -> f64 {
        value * (1.0 + percent / 100.0 * (2.0 * random.random::<f64>() - 1.0))
    }

    /// A test of a healthy path, with noise.
    fn healthy(random: &mut Random) -> Record {
        let json = include_str!("../../store/tests/golden/v1/test.json");
        let mut record = Record::from_json(json).unwrap();
        let remote: SocketAddr = "192.0.2.7:7487".parse().unwrap();
        let local: SocketAddr = "192.0.2.1:40000".parse().unwrap();
        record.connections = vec![Connection { flow: 0, local, remote, expected_queue: None }];
        put(&mut record, "sysctl.net.ipv4.tcp_rmem", "4096 131072 6291456");
        put(&mut record, "route.device", "eth0");
        let bytes = about(random, 1e6, 50.0);
        put(&mut record, "link.rx_bytes", &bytes.to_string());
        put(&mut record, "link.rx_crc_errors", "0");
        let rtt_us = about(random, 42_100.0, 5.0);
        let direction = &mut record.result.directions[0];
        direction.rtt_us = Known::Value(rtt_us);
        direction.min_rtt_us = Known::Value(rtt_us * 0.9);
        direction.retransmitted_bytes = Known::Value(about(random, 80_000.0, 100.0) as u64);
        record.result.near.host_cpu_percent = Known::Value(about(random, 20.0, 30.0));
        record.result.far.host_cpu_percent = Known::Value(about(random, 20.0, 30.0));
        let (window, packets) =
            (about(random, 3e6, 10.0) as u64, about(random, 1400.0, 20.0) as u64);
        change_tcp(&mut record, |tcp| {
            tcp.pmtu_bytes = Some(1500);
            tcp.snd_mss_bytes = Some(1448);
            tcp.snd_wnd_bytes = Some(window);
            tcp.snd_cwnd_segments = Some(packets);
        });
        record
    }

    /// Sets a fact of the near end, before and after the test.
    fn put(record: &mut Record, name: &str, value: &str) {
        let Known::Value(near) = &mut record.ends.near else { panic!("the golden record has it") };
        near.before.put(name, value);
        near.after.put(name, value);
    }

    fn change_tcp(record: &mut Record, change: impl Fn(&mut TcpInfo)) {
        let Known::Value(near) = &mut record.ends.near else { panic!("the golden record has it") };
        for flow in near.samples.iter_mut().flat_map(|sample| &mut sample.flows) {
            if let Known::Value(tcp) = &mut flow.tcp {
                change(tcp);
            }
        }
    }

    /// As if the near end had been free to choose.
    fn choose_a_mover(record: &mut Record) {
        let chosen = MoverChoice { role: Role::Sender, mover: "splice".into(), why: String::new() };
        if let Known::Value(near) = &mut record.ends.near {
            near.movers = vec![chosen];
        }
    }

    /// A cause, and how it must be named.
    struct Cause {
        name: &'static str,
        plant: fn(&mut Record),
    }

    const CAUSES: [Cause; 13] = [
        Cause {
            name: "option length.bytes",
            plant: |record| record.plan.length = Length::Bytes(Bytes(2_000_000)),
        },
        Cause {
            name: "goodput of the near end",
            plant: |record| {
                if let Known::Value(near) = &mut record.ends.near {
                    near.host.goodput = "9.9.9".into();
                }
            },
        },
        Cause { name: "sending mover of the near end", plant: choose_a_mover },
        Cause {
            name: "sysctl.net.ipv4.tcp_rmem of the near end",
            plant: |record| put(record, "sysctl.net.ipv4.tcp_rmem", "4096 131072 262144"),
        },
        Cause {
            name: "route.device of the near end",
            plant: |record| put(record, "route.device", "wg0"),
        },
        Cause {
            name: "kernel of the near end",
            plant: |record| {
                if let Known::Value(near) = &mut record.ends.near {
                    near.host.kernel = "Linux 6.12.0".into();
                }
            },
        },
        Cause {
            name: "address of the far end",
            plant: |record| record.connections[0].remote = "198.51.100.7:7487".parse().unwrap(),
        },
        Cause {
            name: "path MTU",
            plant: |record| change_tcp(record, |tcp| tcp.pmtu_bytes = Some(1400)),
        },
        Cause {
            name: "receiver's window",
            plant: |record| {
                change_tcp(record, |tcp| {
                    tcp.snd_wnd_bytes = tcp.snd_wnd_bytes.map(|bytes| bytes / 2)
                })
            },
        },
        Cause {
            name: "retransmitted share",
            plant: |record| {
                record.result.directions[0].retransmitted_bytes = Known::Value(1_500_000)
            },
        },
        Cause {
            name: "round trip under load",
            plant: |record| {
                let rtt = &mut record.result.directions[0].rtt_us;
                *rtt = rtt.clone().map(|us| us * 1.4);
            },
        },
        Cause {
            name: "CPU use of the far host",
            plant: |record| record.result.far.host_cpu_percent = Known::Value(97.0),
        },
        Cause { name: "limit", plant: |record| record.verdict.limit = "policer".into() },
    ];

    /// What is said of a path with 32 tests before a change and some since.
    fn said(seed: u64, plant: impl Fn(&mut Record)) -> Differences {
        let mut random = Random::seed_from_u64(seed);
        let before: Vec<_> = (0..32).map(|_| healthy(&mut random)).collect();
        let number = random.random_range(5..=8);
        let mut since: Vec<_> = (0..number).map(|_| healthy(&mut random)).collect();
        since.iter_mut().for_each(plant);
        differences([&before, &[], &since], lasts)
    }

    /// As if these were the only settings of a host.
    fn lasts(fact: &str) -> bool {
        ["route.device", "sysctl.net.ipv4.tcp_rmem"].contains(&fact)
    }

    #[test]
    fn a_cause_that_comes_again_is_named_again_and_one_that_flips_is_not() {
        let named = |before: &[&str], since: &[&str]| {
            let difference =
                different("rate", [before, &[], since], |value| Some(value.to_string()));
            difference.map(|one| (one.before, one.since))
        };
        let again = [["60"; 12].as_slice(), &["100"; 20]].concat();
        assert_eq!(named(&again, &["60"; 8]), Some(("100".into(), "60".into())));
        let flips = ["60", "100", "100", "60", "100", "100"].repeat(5);
        assert_eq!(named(&flips, &["60"; 8]), None);
        assert_eq!(named(&["100"; 3], &["60"; 8]), Some(("100".into(), "60".into())));
    }

    /// What is said if the near end gets a setting that it did not have, or loses it.
    fn set_or_lost(is_set_since: bool, change: impl Fn(&mut End)) -> Vec<Difference> {
        let mut random = Random::seed_from_u64(1);
        let mut records = |has_it: bool| -> Vec<Record> {
            let made = (0..8).map(|_| {
                let mut record = healthy(&mut random);
                if has_it {
                    put(&mut record, "route.window", "20000");
                } else if let Known::Value(near) = &mut record.ends.near {
                    change(near);
                }
                record
            });
            made.collect()
        };
        let (before, since) = (records(!is_set_since), records(is_set_since));
        let lasts = |fact: &str| fact.starts_with("route.");
        differences([&before, &[], &since], lasts).changed
    }

    #[test]
    fn a_setting_that_was_made_or_removed_is_named() {
        let named = |before: &str, since: &str| Difference {
            what: "route.window of the near end".into(),
            before: before.into(),
            since: since.into(),
        };
        // As the kernel's sources say it of a route.
        let not_set = |near: &mut End| {
            for host in [&mut near.before, &mut near.after] {
                host.lacks("route.window", NOT_SET);
            }
        };
        assert_eq!(set_or_lost(true, not_set), [named("none", "20000")]);
        assert_eq!(set_or_lost(false, not_set), [named("20000", "none")]);
        assert_eq!(set_or_lost(true, |_| {}), [named("none", "20000")]);
        assert_eq!(set_or_lost(false, |_| {}), [named("20000", "none")]);
    }

    #[test]
    fn what_could_not_be_read_or_an_older_goodput_did_not_look_for_is_no_removed_setting() {
        let unread = |near: &mut End| near.after.lacks("route.window", "not permitted");
        let area = |near: &mut End| near.before.lacks("route", "not permitted");
        let older = |near: &mut End| near.host.goodput = "0.0.9".into();
        let without = |near: &mut End| {
            for host in [&mut near.before, &mut near.after] {
                host.facts.retain(|name, _| !name.starts_with("route."));
            }
        };
        for is_set_since in [true, false] {
            for change in [unread, area, older, without] {
                assert_eq!(set_or_lost(is_set_since, change), []);
            }
        }
    }

    #[test]
    fn a_counter_that_grew_when_the_path_changed_is_no_setting() {
        let said = said(1, |record| put(record, "link.rx_crc_errors", "3"));
        assert_eq!(said.changed, []);
    }

    #[test]
    fn each_planted_cause_is_named() {
        let named = |Cause { name, plant }: &Cause, seed| {
            let said = said(seed, plant);
            let limit = said.before.map(|limit| limit.rule) != said.since.map(|limit| limit.rule);
            let mut all = said.test.iter().chain(&said.changed);
            all.any(|one| one.what == *name) || (limit && *name == "limit")
        };
        for cause in &CAUSES {
            let missed: Vec<_> = (0..20).filter(|seed| !named(cause, *seed)).collect();
            assert!(missed.len() <= 2, "{}: {missed:?}", cause.name);
        }
    }

    #[test]
    fn sizes_of_packets_are_said_to_the_byte() {
        let said = said(1, |record| {
            change_tcp(record, |tcp| {
                (tcp.pmtu_bytes, tcp.snd_mss_bytes) = (Some(1400), Some(1348));
            });
        });
        let words = |what: &str| {
            let one = said.changed.iter().find(|one| one.what == what).unwrap();
            (one.before.clone(), one.since.clone())
        };
        assert_eq!(words("path MTU"), ("1500 bytes".into(), "1400 bytes".into()));
        assert_eq!(words("segment size"), ("1448 bytes".into(), "1348 bytes".into()));
    }

    #[test]
    fn a_change_of_the_test_is_apart_from_all_others() {
        let of_test = CAUSES.iter().filter(|cause| !said(1, cause.plant).test.is_empty());
        let of_test: Vec<_> = of_test.map(|cause| cause.name).collect();
        let expected =
            ["option length.bytes", "goodput of the near end", "sending mover of the near end"];
        assert_eq!(of_test, expected);
        let mover = said(1, choose_a_mover);
        assert_eq!(mover.changed, []);
        let chosen = (&*mover.test[0].before, &*mover.test[0].since);
        assert_eq!(chosen, ("as planned", "splice"));
    }

    #[test]
    fn an_option_that_shows_nothing_of_the_path_is_no_change_of_the_test() {
        let said = said(1, |record| {
            record.plan.interval_s = 0.25;
            record.plan.peer_output = !record.plan.peer_output;
        });
        assert_eq!(said.test, []);
    }

    #[test]
    fn little_is_named_that_did_not_change() {
        let unchanged = |seed| said(seed, |_| {});
        let number = |said: Differences| said.test.len() + said.changed.len();
        let named: usize = (0..200).map(|seed| number(unchanged(seed))).sum();
        assert!(named <= 4, "{named} in 200 changes: 1 % is expected");
    }

    #[test]
    fn a_change_whose_beginning_is_known_to_some_tests_is_named_all_the_same() {
        let mut random = Random::seed_from_u64(1);
        let mut all: Vec<_> = (0..20).map(|_| healthy(&mut random)).collect();
        all[12..].iter_mut().for_each(|record| put(record, "route.device", "wg0"));
        for first in 12 - NEAR..=12 + NEAR {
            let said = differences([&all[..first], &[], &all[first..]], lasts);
            let change = Difference {
                what: "route.device of the near end".into(),
                before: "eth0".into(),
                since: "wg0".into(),
            };
            assert_eq!(said.changed, [change], "{first}");
        }
    }

    /// Of 44 tests, the path changed with one of the 29th to the 37th, and its limit, device and loss with the 33rd.
    #[test]
    fn tests_that_may_be_of_either_side_only_say_when_a_setting_changed() {
        let mut random = Random::seed_from_u64(1);
        let mut all: Vec<_> = (0..44).map(|_| healthy(&mut random)).collect();
        for record in &mut all[32..] {
            put(record, "route.device", "wg0");
            record.verdict.limit = "policer".into();
            record.result.directions[0].retransmitted_bytes = Known::Value(1_500_000);
        }
        let said = differences([&all[..28], &all[28..36], &all[36..]], lasts);
        for name in ["route.device of the near end", "retransmitted share"] {
            assert!(said.changed.iter().any(|one| one.what == name), "{name}: {said:?}");
        }
        let [before, since] = [said.before, said.since].map(|limit| limit.unwrap().rule);
        assert_eq!((&*before, &*since), (&*all[0].verdict.limit, "policer"));
    }

    #[test]
    fn no_more_than_everything_is_sent_again() {
        let mut record = healthy(&mut Random::seed_from_u64(1));
        record.result.directions[0].sent_bytes = Known::Value(1000);
        record.result.directions[0].retransmitted_bytes = Known::Value(3000);
        assert_eq!(retransmitted(&record), Some(75.0));
    }

    /// The limits said of a change, of tests with these.
    fn limits_of(before: &[&str], since: &[&str]) -> [String; 2] {
        let mut random = Random::seed_from_u64(1);
        let mut of = |limits: &[&str]| -> Vec<Record> {
            let record = |limit: &&str| {
                let mut record = healthy(&mut random);
                record.verdict.limit = (*limit).into();
                record
            };
            limits.iter().map(record).collect()
        };
        let said = differences([&of(before), &[], &of(since)], lasts);
        [said.before, said.since].map(|limit| limit.unwrap().rule)
    }

    #[test]
    fn verdicts_that_flip_between_two_limits_are_no_change() {
        let flipping = ["policer", "path-rate", "policer", "policer", "path-rate"].repeat(6);
        let said = limits_of(&flipping, &["path-rate", "path-rate", "policer", "path-rate"]);
        assert_eq!(said, ["policer", "policer"]);
        let said = limits_of(&flipping, &["shaper"; 5]);
        assert_eq!(said, ["policer", "shaper"]);
    }

    #[test]
    fn a_limit_that_only_one_side_has_is_said_of_this_side_however_few_tests_there_are() {
        assert_eq!(limits_of(&["policer"; 4], &["shaper"; 4]), ["policer", "shaper"]);
        assert_eq!(limits_of(&["policer"; 32], &["shaper"; 5]), ["policer", "shaper"]);
    }

    #[test]
    fn a_setting_that_changed_at_another_time_or_came_back_is_not_named() {
        let mut random = Random::seed_from_u64(1);
        let all: Vec<_> = (0..24).map(|_| healthy(&mut random)).collect();
        let said = |changed: &[usize]| {
            let mut all = all.clone();
            changed.iter().for_each(|test| put(&mut all[*test], "route.device", "wg0"));
            differences([&all[..16], &[], &all[16..]], lasts).changed.len()
        };
        let from = |first| (first..24).collect::<Vec<_>>();
        assert_eq!((said(&from(12)), said(&from(16)), said(&from(20))), (1, 1, 1));
        assert_eq!((said(&from(11)), said(&from(21)), said(&from(23))), (0, 0, 0));
        let also = |one: usize| std::iter::once(one).chain(16..24).collect::<Vec<_>>();
        assert_eq!((said(&[16, 17, 18]), said(&also(10)), said(&also(3))), (0, 0, 1));
    }

    #[test]
    fn without_records_nothing_is_said() {
        let (test, changed) = (Vec::new(), Vec::new());
        let nothing = Differences { before: None, since: None, test, changed };
        assert_eq!(differences([&[], &[], &[]], lasts), nothing);
    }
}
