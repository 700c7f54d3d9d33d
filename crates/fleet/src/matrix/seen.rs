//! What one record says of a pair: who sent to whom, and how fast. Or why it says nothing.

use std::fmt;

use goodput_model::{
    BitRate, DirectionResult, EndName, Kind, Known, Plan, Record, Sites, Transport, plain_char,
};
use jiff::Timestamp;
use serde::Serialize;

use super::part::Part;
use crate::mesh::{Mesh, host_of};

/// One test of one direction between two sites.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// Number of the record in the history.
    pub record: i64,
    /// The site that sent.
    pub sender: String,
    /// The site that received.
    pub receiver: String,
    /// When it began, seconds since 1970, by the clock of the host that made the record.
    pub at_s: f64,
    /// Goodput, above 0.
    pub goodput: BitRate,
    /// Smallest round-trip time, microseconds.
    pub rtt_us: Known<f64>,
    /// Id of the limiting rule, or `none`.
    pub limit: String,
    /// Where that limit was.
    pub limit_at: Part,
    /// Goodput as a share of what the agent of a site allowed (`--max-rate`), above 0; absent: none held it.
    pub share_of_limit: Option<f64>,
    /// Whether the test ended early: it has what came of a part of it.
    pub is_partial: bool,
}

/// Why a record says nothing of how fast a pair's path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unusable {
    /// It is no single test.
    NoTest,
    /// Both ends sent at once, each in the other's way.
    BothDirections,
    /// Datagrams, which go at the rate that was asked for.
    Datagrams,
    /// The test was asked to keep a rate.
    KeptRate,
    /// Files were at an end, which may be slower than the path.
    Files,
    /// The test ended early.
    Incomplete,
    /// Nothing arrived.
    NothingArrived,
    /// It names no host, or no time.
    Nameless,
    /// The host tested itself.
    OwnHost,
    /// One of the hosts or sites is not in the mesh file.
    NotInMesh,
    /// The mesh file has both sites, but no such pair.
    NoPair,
    /// It began days later than now, and the pair has other tests.
    Ahead,
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::NoTest => "not a single test",
            Self::BothDirections => "both directions at once",
            Self::Datagrams => "datagrams, at the rate that was asked for",
            Self::KeptRate => "held to a rate",
            Self::Files => "from or to files",
            Self::Incomplete => "ended early",
            Self::NothingArrived => "nothing arrived",
            Self::Nameless => "without a host's name or a time",
            Self::OwnHost => "a host with itself",
            Self::NotInMesh => "a host or site that the mesh file does not have",
            Self::NoPair => "a pair that the mesh file does not have",
            Self::Ahead => "later than now: a clock was ahead",
        })
    }
}

/// What the record with the number `id` says. With a mesh, the sites have its names, and only its pairs count; without one,
/// they have those that the fleet of the record gave them, or those of the hosts.
///
/// # Errors
/// Why the record says nothing.
pub fn seen(record: &Record, id: i64, mesh: Option<&Mesh>) -> Result<Observation, Unusable> {
    let direction = usable(record)?;
    let seen = observed(record, id, direction, ends(record, mesh)?)?;
    match mesh {
        Some(mesh) if !mesh.has_pair([&seen.sender, &seen.receiver]) => Err(Unusable::NoPair),
        _ => Ok(seen),
    }
}

/// The same for a test whose sites are known: `near` measured with `far`.
pub fn seen_between(
    record: &Record,
    id: i64,
    [near, far]: [&str; 2],
) -> Result<Observation, Unusable> {
    observed(record, id, usable(record)?, [plain(near), plain(far)])
}

fn observed(
    record: &Record,
    id: i64,
    direction: &DirectionResult,
    [near, far]: [String; 2],
) -> Result<Observation, Unusable> {
    let (sender, receiver) = match direction.sender {
        EndName::Near => (near, far),
        EndName::Far => (far, near),
    };
    let at: Timestamp = record.started.parse().map_err(|_| Unusable::Nameless)?;
    Ok(Observation {
        record: id,
        sender,
        receiver,
        at_s: at.as_second() as f64,
        goodput: direction.goodput_bits_per_s,
        rtt_us: direction.min_rtt_us.clone(),
        limit: plain(&record.verdict.limit),
        limit_at: Part::of(record.verdict.end, direction.sender),
        share_of_limit: share_of_limit(&record.plan, direction),
        is_partial: record.incomplete.is_some(),
    })
}

/// The only direction of a test that went as fast as it could, from memory to memory.
fn usable(record: &Record) -> Result<&DirectionResult, Unusable> {
    let plan = &record.plan;
    let direction = match &record.result.directions[..] {
        _ if record.kind != Kind::Test => return Err(Unusable::NoTest),
        [] => return Err(Unusable::NothingArrived),
        [only] => only,
        _ => return Err(Unusable::BothDirections),
    };
    if plan.transport == Transport::Udp {
        return Err(Unusable::Datagrams);
    }
    // What an agent allows, nobody asked for.
    let asked = plan.rate_bits_per_s.is_some() && plan.rate_limit_of.is_none();
    if asked || plan.socket.max_pacing_bits_per_s.is_some() {
        return Err(Unusable::KeptRate);
    }
    if has_files(record, plan) {
        return Err(Unusable::Files);
    }
    if direction.goodput_bits_per_s.0 > 0.0 { Ok(direction) } else { Err(Unusable::NothingArrived) }
}

/// How much of what an agent allowed it gave. From [`Plan::MIN_SHARE_OF_KEPT_RATE`] on, it stands at that limit, which the verdict
/// then names, too (`server-limit`).
fn share_of_limit(plan: &Plan, direction: &DirectionResult) -> Option<f64> {
    let limit = plan.rate_bits_per_s.filter(|_| plan.rate_limit_of.is_some())?;
    Some(direction.goodput_bits_per_s.0 / limit.0)
}

fn has_files(record: &Record, plan: &Plan) -> bool {
    let fetched = record.fetches.is_some() || plan.fetches.is_some();
    fetched || record.mount.is_some() || !plan.storage.is_memory()
}

/// The sites of the near and of the far end: those that the fleet named, or those of their hosts. After a change of the mesh
/// file, a host may be another site.
fn ends(record: &Record, mesh: Option<&Mesh>) -> Result<[String; 2], Unusable> {
    let Some(Sites { near, far }) = &record.sites else { return hosts(record, mesh) };
    let is_in = |name: &String| mesh.is_none_or(|mesh| mesh.sites.iter().any(|s| s.name == *name));
    if [near, far].into_iter().all(is_in) {
        Ok([plain(near), plain(far)])
    } else {
        Err(Unusable::NotInMesh)
    }
}

/// The sites of the near and of the far end, by the names of their hosts.
fn hosts(record: &Record, mesh: Option<&Mesh>) -> Result<[String; 2], Unusable> {
    let near = record.ends.near.value().map(|end| end.host.name.as_str()).unwrap_or_default();
    // A far end that is no goodput has the name of its program.
    let far = record.ends.far.value().filter(|end| end.host.is_goodput());
    let far = far.map_or_else(|| host_of(&record.target), |end| end.host.name.as_str());
    let names = match mesh {
        None => [near, far],
        Some(mesh) => in_mesh(mesh, near, far, &record.target).ok_or(Unusable::NotInMesh)?,
    };
    match names {
        names if names.contains(&"") => Err(Unusable::Nameless),
        [near, far] if near == far => Err(Unusable::OwnHost),
        names => Ok(names.map(plain)),
    }
}

/// A text that another host has chosen, as it can be shown.
fn plain(text: &str) -> String {
    text.chars().map(plain_char).collect()
}

/// The mesh's names of both ends: its targets are more certain than the names that hosts give themselves.
fn in_mesh<'a>(mesh: &'a Mesh, near: &str, far: &str, target: &str) -> Option<[&'a str; 2]> {
    let by_target = mesh.sites.iter().find(|site| site.target.as_deref() == Some(target));
    let by_host = || mesh.sites.iter().find(|site| site.host == far);
    // Who made the record runs goodput.
    let near = mesh.sites.iter().find(|site| site.host == near && !site.is_foreign)?;
    let far = by_target.or_else(by_host)?;
    Some([near.name.as_str(), far.name.as_str()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::{Bytes, Length};

    fn record() -> Record {
        let json = include_str!("../../../goodput/src/report/example/record.json");
        Record::from_json(json).unwrap()
    }

    fn pair(record: &Record) -> Result<(String, String, Part), Unusable> {
        seen(record, 7, None).map(|seen| (seen.sender, seen.receiver, seen.limit_at))
    }

    fn reversed() -> Record {
        let mut record = record();
        record.result.directions[0].sender = EndName::Far;
        record
    }

    #[test]
    fn the_record_says_who_sent_to_whom() {
        assert_eq!(pair(&record()), Ok(("laptop".into(), "nas".into(), Part::Sender)));
        assert_eq!(pair(&reversed()), Ok(("nas".into(), "laptop".into(), Part::Receiver)));
        let seen = seen(&record(), 7, None).unwrap();
        assert_eq!((seen.record, seen.limit.as_str()), (7, "shaper-burst"));
        assert!(seen.at_s > 1.7e9 && seen.goodput.0 > 4e8, "{seen:?}");
        let between = seen_between(&reversed(), 7, ["a", "b"]).unwrap();
        assert_eq!((between.sender.as_str(), between.receiver.as_str()), ("b", "a"));
    }

    #[test]
    fn a_name_that_would_paint_the_screen_is_plain() {
        let mut record = record();
        if let Known::Value(far) = &mut record.ends.far {
            far.host.name = "nas\x1b[2J".into();
        }
        assert_eq!(pair(&record).unwrap().1, "nas\u{fffd}[2J");
    }

    #[test]
    fn a_far_end_that_is_no_goodput_has_the_name_of_its_target() {
        let mut record = record();
        record.target = "iperf3://10.0.0.7:5201".into();
        if let Known::Value(far) = &mut record.ends.far {
            far.host.goodput.clear();
        }
        assert_eq!(pair(&record).unwrap().1, "10.0.0.7");
    }

    #[test]
    fn a_mesh_gives_the_names() {
        let text = "[site.home]\nhost = \"laptop\"\n[site.store]\ntarget = \"nas\"\n";
        let mesh = Mesh::parse("x", text).unwrap();
        let found = seen(&record(), 7, Some(&mesh)).unwrap();
        assert_eq!((found.sender.as_str(), found.receiver.as_str()), ("home", "store"));
        let server = "[site.laptop]\n[site.store]\nserver = \"iperf3://nas:5201\"\n";
        let mesh = Mesh::parse("x", server).unwrap();
        let mut foreign = record();
        foreign.ends.far = Known::missing("iperf3 says nothing of its host");
        for target in ["iperf3://nas:5201", "iperf3://nas"] {
            foreign.target = target.into();
            assert_eq!(seen(&foreign, 7, Some(&mesh)).unwrap().receiver, "store", "{target}");
        }
        let other = Mesh::parse("x", "[site.a]\ntarget = \"a\"\n[site.b]\n").unwrap();
        assert_eq!(seen(&record(), 7, Some(&other)), Err(Unusable::NotInMesh));
    }

    #[test]
    fn after_the_mesh_file_changed_only_its_sites_and_pairs_count() {
        let of = |text: &str, near: &str, far: &str| {
            let mesh = Mesh::parse("x", text).unwrap();
            let [near, far] = [near, far].map(String::from);
            let record = Record { sites: Some(Sites { near, far }), ..record() };
            seen(&record, 7, Some(&mesh)).map(|seen| (seen.sender, seen.receiver))
        };
        let ab = Ok(("a".to_string(), "b".to_string()));
        // The target of the record is now that of another site.
        let moved = "[site.a]\n[site.b]\ntarget = \"b\"\n[site.c]\ntarget = \"nas\"\n";
        assert_eq!(of(moved, "a", "b"), ab);
        assert_eq!(of(moved, "a", "old"), Err(Unusable::NotInMesh));
        let named = "[test]\npairs = \"named\"\ndirections = \"one\"\n[site.a]\n[site.b]\ntarget = \"b\"\n\
                     [site.c]\ntarget = \"c\"\n[[pair]]\nsites = [\"a\", \"b\"]\n";
        assert_eq!(of(named, "a", "b"), ab);
        assert_eq!(of(named, "b", "a"), Err(Unusable::NoPair), "only the first one sends");
        assert_eq!(of(named, "b", "c"), Err(Unusable::NoPair));
    }

    #[test]
    fn a_test_that_an_agent_s_limit_held_says_how_much_of_it_it_gave() {
        let at = |limit| {
            let mut record = record();
            (record.plan.rate_bits_per_s, record.plan.rate_limit_of) =
                (Some(BitRate(limit)), Some(EndName::Far));
            seen(&record, 7, None).unwrap().share_of_limit
        };
        let goodput = record().result.directions[0].goodput_bits_per_s.0;
        assert_eq!((at(goodput), at(2.0 * goodput)), (Some(1.0), Some(0.5)));
        assert_eq!(seen(&record(), 7, None).unwrap().share_of_limit, None);
    }

    #[test]
    fn a_test_that_ended_early_is_known_as_a_part() {
        let mut record = record();
        assert!(!seen(&record, 7, None).unwrap().is_partial);
        record.incomplete = Some("the budget was used up".into());
        assert!(seen(&record, 7, None).unwrap().is_partial);
    }

    #[test]
    fn what_says_nothing_of_the_path_is_named() {
        let with = |change: fn(&mut Record)| {
            let mut record = record();
            change(&mut record);
            pair(&record).unwrap_err()
        };
        type Case = (fn(&mut Record), Unusable);
        let cases: [Case; 7] = [
            (|record| record.kind = Kind::Compare, Unusable::NoTest),
            (|record| record.plan.transport = Transport::Udp, Unusable::Datagrams),
            (|record| record.plan.rate_bits_per_s = Some(BitRate(1e6)), Unusable::KeptRate),
            (|record| record.plan.fetches = Some(1), Unusable::Files),
            (|record| record.started = "soon".into(), Unusable::Nameless),
            (|record| record.ends.near = Known::missing("x"), Unusable::Nameless),
            (
                |record| record.result.directions[0].goodput_bits_per_s.0 = 0.0,
                Unusable::NothingArrived,
            ),
        ];
        for (change, why) in cases {
            assert_eq!(with(change), why);
        }
        let mut both = record();
        both.result.directions.push(both.result.directions[0].clone());
        assert_eq!(pair(&both), Err(Unusable::BothDirections));
        let mut own = record();
        if let (Known::Value(near), Known::Value(far)) = (&own.ends.near, &mut own.ends.far) {
            far.host.name.clone_from(&near.host.name);
        }
        assert_eq!(pair(&own), Err(Unusable::OwnHost));
        let mut bytes = record();
        bytes.plan.length = Length::Bytes(Bytes(7));
        assert!(pair(&bytes).is_ok());
    }
}
