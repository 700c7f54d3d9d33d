//! The outermost queueing discipline of the path's device: its limits and its counters.

use std::collections::BTreeSet;

use goodput_model::{Fact, Missing, Snapshot};
use goodput_netlink::{
    Cake, CakeCells, HtbClass, Netlink, Qdisc, QdiscOptions, QdiscStats, RateSpec, SizeCount, Tbf,
};

use super::Source;
use crate::Context;
use crate::context::missing;

/// A counter of a queueing discipline: its name, and its value.
type Counter = (&'static str, fn(&QdiscStats) -> u64);

/// What a queueing discipline counts, and how much it holds at the moment.
const COUNTERS: [Counter; 6] = [
    ("sent_bytes", |stats| stats.bytes),
    ("sent_packets", |stats| stats.packets),
    ("drops", |stats| stats.drops),
    ("overlimits", |stats| stats.overlimits),
    ("requeues", |stats| stats.requeues),
    ("backlog_bytes", |stats| stats.backlog_bytes),
];

pub(super) struct QdiscSource;

impl Source for QdiscSource {
    fn id(&self) -> &'static str {
        "qdisc"
    }

    fn summary(&self) -> &'static str {
        "the path's queueing discipline: rate, burst, limit, drops and backlog"
    }

    fn can_run(&self, context: &Context) -> Result<(), Missing> {
        context.device_name().map(drop)
    }

    fn snapshot(&self, context: &Context, snapshot: &mut Snapshot) -> Result<(), Missing> {
        let (device, mut netlink, qdiscs) = context.qdiscs()?;
        shapers_below(snapshot, &qdiscs);
        let inside = inside_bucket(&qdiscs).cloned();
        let root = qdiscs.into_iter().find(Qdisc::is_root);
        let root =
            root.ok_or_else(|| Missing::because(format!("{device} has no qdisc; is it up?")))?;
        snapshot.put("qdisc.kind", root.kind.as_str());
        counters(snapshot, &root.stats);
        match netlink.size_count(&root) {
            Ok(count) => sizes(snapshot, count),
            Err(why) => snapshot.lacks("qdisc.table", missing(why).missing),
        }
        match &root.options {
            QdiscOptions::Tbf(tbf) => {
                bucket(snapshot, tbf);
                queue_inside(snapshot, inside.as_ref());
            }
            QdiscOptions::Bfifo { limit_bytes } => {
                no_rate(snapshot, &root.kind);
                snapshot.put("qdisc.limit_bytes", u64::from(*limit_bytes));
            }
            QdiscOptions::Other(options) if root.kind == "cake" => cake(snapshot, options),
            _ if root.kind == "htb" => classes(snapshot, &mut netlink, root.index),
            _ => {
                no_rate(snapshot, &root.kind);
                snapshot.lacks("qdisc.limit_bytes", "this kind has no limit in bytes");
            }
        }
        Ok(())
    }

    fn lasts(&self, name: &str) -> bool {
        !COUNTERS.iter().any(|(counter, _)| *counter == name)
    }
}

fn counters(snapshot: &mut Snapshot, stats: &QdiscStats) {
    for (name, value) in COUNTERS {
        snapshot.put(format!("qdisc.{name}"), value(stats));
    }
}

/// Disciplines below the outermost one that hold a rate. Only their kinds are read.
fn shapers_below(snapshot: &mut Snapshot, qdiscs: &[Qdisc]) {
    const SHAPERS: [&str; 5] = ["cake", "hfsc", "htb", "netem", "tbf"];
    let below = qdiscs.iter().filter(|qdisc| !qdisc.is_root() && !qdisc.is_hook());
    let kinds: BTreeSet<&str> = below.map(|qdisc| qdisc.kind.as_str()).collect();
    let shapers: Vec<&str> = kinds.into_iter().filter(|kind| SHAPERS.contains(kind)).collect();
    match shapers.is_empty() {
        true => snapshot.lacks("qdisc.shapers_below", "none is below the outermost discipline"),
        false => snapshot.put("qdisc.shapers_below", shapers.join(", ")),
    }
}

/// How a table of sizes has packets counted, in the discipline, its classes and its counters.
fn sizes(snapshot: &mut Snapshot, count: SizeCount) {
    let table = match count {
        SizeCount::ByTable(table) => table,
        SizeCount::AsTheyAre => {
            return snapshot.lacks("qdisc.table", "packets count as they are");
        }
        SizeCount::ByUnknownTable => {
            let why = "the kernel reports the table of sizes in an unknown layout";
            return snapshot.lacks("qdisc.table", why);
        }
    };
    let overhead = table.overhead_bytes;
    let overhead = u64::try_from(overhead).map_or(Fact::Real(overhead.into()), Fact::Count);
    snapshot.put("qdisc.table.overhead_bytes", overhead);
    snapshot.put("qdisc.table.least_bytes", u64::from(table.least_bytes));
    let layer = if table.counts_cells { "atm" } else { "ethernet" };
    snapshot.put("qdisc.table.link_layer", layer);
}

fn bucket(snapshot: &mut Snapshot, tbf: &Tbf) {
    snapshot.put("qdisc.rate_bits_per_s", bits(tbf.rate_bytes_per_s));
    snapshot.put("qdisc.burst_bytes", u64::from(tbf.burst_bytes));
    snapshot.put("qdisc.limit_bytes", u64::from(tbf.limit_bytes));
    match tbf.peak_rate_bytes_per_s {
        Some(peak) => snapshot.put("qdisc.peak_rate_bits_per_s", bits(peak)),
        None => snapshot.lacks("qdisc.peak_rate_bits_per_s", "the bucket has no peak rate"),
    }
    counting(snapshot, "qdisc", tbf.counting());
}

/// The discipline that someone put into a token bucket which is the root, in place of the queue that the bucket makes itself.
fn inside_bucket(qdiscs: &[Qdisc]) -> Option<&Qdisc> {
    let root = qdiscs.iter().find(|qdisc| qdisc.is_root() && qdisc.kind == "tbf")?;
    let is_inside = |qdisc: &&Qdisc| {
        !qdisc.is_root() && !qdisc.is_hook() && qdisc.parent >> 16 == root.handle >> 16
    };
    qdiscs.iter().find(is_inside)
}

/// What the queue of a token bucket holds, if it is another discipline: the bucket's own limit is of the queue that it made itself
/// (net/sched/sch_tbf.c, `tbf_change` and `tbf_graft`).
fn queue_inside(snapshot: &mut Snapshot, inside: Option<&Qdisc>) {
    const LIMIT: &str = "qdisc.limit_bytes";
    match inside.map(|qdisc| (&qdisc.kind, &qdisc.options)) {
        None => {}
        Some((_, QdiscOptions::Bfifo { limit_bytes })) => {
            snapshot.put(LIMIT, u64::from(*limit_bytes));
        }
        Some((kind, _)) => {
            snapshot.facts.remove(LIMIT);
            snapshot.lacks(LIMIT, format!("{kind} is its queue, and its own limit is unused"));
        }
    }
}

/// What a shaper counts beside a packet's own bytes.
pub(super) fn counting(snapshot: &mut Snapshot, of: &str, spec: RateSpec) {
    snapshot.put(format!("{of}.overhead_bytes"), u64::from(spec.overhead_bytes()));
    snapshot.put(format!("{of}.least_bytes"), u64::from(spec.least_bytes()));
    let layer = if spec.counts_cells() { "atm" } else { "ethernet" };
    snapshot.put(format!("{of}.link_layer"), layer);
}

/// What cake shapes to. It has no bucket: it counts when the next packet may leave.
fn cake(snapshot: &mut Snapshot, options: &[u8]) {
    snapshot.lacks("qdisc.burst_bytes", "cake has none");
    snapshot.lacks("qdisc.limit_bytes", "cake limits the memory of its packets, not their bytes");
    let Some(cake) = Cake::parse(options) else {
        return snapshot.lacks("qdisc.rate_bits_per_s", "this cake reports its rate differently");
    };
    match cake.rate_bytes_per_s {
        Some(_) if cake.sets_rate => {
            snapshot.lacks("qdisc.rate_bits_per_s", "cake sets it by what comes in");
        }
        Some(rate) => snapshot.put("qdisc.rate_bits_per_s", bits(rate)),
        None => snapshot.lacks("qdisc.rate_bits_per_s", "its bandwidth is unlimited"),
    }
    // As cake has it: added to the IP packet, or to the frame.
    snapshot.put("qdisc.counts_from", if cake.counts_frames { "frame" } else { "packet" });
    let overhead = cake.overhead_bytes;
    let overhead = u64::try_from(overhead).map_or(Fact::Real(overhead.into()), Fact::Count);
    snapshot.put("qdisc.overhead_bytes", overhead);
    snapshot.put("qdisc.least_bytes", u64::from(cake.least_bytes));
    let layer = match cake.cells {
        CakeCells::None => "ethernet",
        CakeCells::Atm => "atm",
        CakeCells::Ptm => "ptm",
    };
    snapshot.put("qdisc.link_layer", layer);
}

fn no_rate(snapshot: &mut Snapshot, kind: &str) {
    for name in ["rate_bits_per_s", "burst_bytes"] {
        snapshot.lacks(format!("qdisc.{name}"), format!("{kind} has none"));
    }
}

/// For htb, the class that has sent the most bytes since it exists; it is assumed to be the path's.
fn classes(snapshot: &mut Snapshot, netlink: &mut Netlink, index: u32) {
    snapshot.lacks("qdisc.limit_bytes", "htb has no limit in bytes");
    match busiest(netlink, index) {
        Ok((handle, class)) => {
            snapshot.put("qdisc.class", format!("{:x}:{:x}", handle >> 16, handle & 0xffff));
            snapshot.put("qdisc.rate_bits_per_s", bits(class.rate_bytes_per_s));
            snapshot.put("qdisc.ceil_bits_per_s", bits(class.ceil_bytes_per_s));
            snapshot.put("qdisc.burst_bytes", u64::from(class.burst_bytes));
        }
        Err(why) => {
            for name in ["class", "rate_bits_per_s", "ceil_bits_per_s", "burst_bytes"] {
                snapshot.lacks(format!("qdisc.{name}"), why.to_string());
            }
        }
    }
}

fn busiest(netlink: &mut Netlink, index: u32) -> Result<(u32, HtbClass), Missing> {
    let classes = netlink.classes(index).map_err(missing)?;
    classes
        .iter()
        .filter_map(|class| class.htb.map(|htb| (class, htb)))
        .filter(|(_, htb)| htb.level == 0)
        .max_by_key(|(class, _)| class.stats.bytes)
        .map(|(class, htb)| (class.handle, htb))
        .ok_or_else(|| Missing::because("htb has no class"))
}

fn bits(bytes: u64) -> u64 {
    bytes.saturating_mul(8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapers_below_another_discipline_are_named() {
        let qdisc = |kind: &str, parent: u32| {
            let options = QdiscOptions::Other(Vec::new());
            Qdisc { parent, ..Qdisc::root(1, kind, options) }
        };
        let named = |qdiscs: &[Qdisc]| {
            let mut snapshot = Snapshot::default();
            shapers_below(&mut snapshot, qdiscs);
            snapshot.text("qdisc.shapers_below").map(str::to_owned).ok()
        };
        let (root, hook) = (qdisc("tbf", Qdisc::ROOT), qdisc("clsact", 0xFFFF_FFF1));
        assert_eq!(named(&[root.clone(), hook.clone(), qdisc("bfifo", 0x0001_0001)]), None);
        let both = [root, hook, qdisc("tbf", 0x0001_0002), qdisc("tbf", 0x0001_0003)];
        assert_eq!(named(&both).as_deref(), Some("tbf"));
    }

    #[test]
    fn the_limit_of_a_bucket_is_that_of_the_queue_inside() {
        let root =
            Qdisc { handle: 0x0001_0000, ..Qdisc::root(1, "tbf", QdiscOptions::Other(Vec::new())) };
        let inside =
            |kind: &str, parent, options| Qdisc { parent, ..Qdisc::root(1, kind, options) };
        let limit = |child: Option<Qdisc>| {
            let mut snapshot = Snapshot::default();
            snapshot.put("qdisc.limit_bytes", 20_000u64);
            let all: Vec<Qdisc> = [root.clone()].into_iter().chain(child).collect();
            queue_inside(&mut snapshot, inside_bucket(&all));
            snapshot.count("qdisc.limit_bytes").map_err(|why| why.to_string())
        };
        assert_eq!(limit(None), Ok(20_000));
        let other = QdiscOptions::Other(Vec::new());
        let fair = limit(Some(inside("fq_codel", 0x0001_0001, other.clone())));
        assert!(fair.as_ref().is_err_and(|why| why.contains("fq_codel is its queue")), "{fair:?}");
        let bytes = QdiscOptions::Bfifo { limit_bytes: 7 };
        assert_eq!(limit(Some(inside("bfifo", 0x0001_0001, bytes))), Ok(7));
        let elsewhere = [("clsact", 0xFFFF_FFF1), ("pfifo", 0x0002_0001)];
        for (kind, parent) in elsewhere {
            assert_eq!(limit(Some(inside(kind, parent, other.clone()))), Ok(20_000), "{kind}");
        }
    }

    #[test]
    fn a_table_of_sizes_has_facts_of_its_own() {
        let mut snapshot = Snapshot::default();
        sizes(&mut snapshot, SizeCount::ByUnknownTable);
        let unknown = snapshot.text("qdisc.table").unwrap_err().to_string();
        assert!(unknown.contains("unknown layout"), "{unknown}");
        sizes(&mut snapshot, SizeCount::AsTheyAre);
        assert!(snapshot.text("qdisc.table.link_layer").is_err());
        let table =
            goodput_netlink::SizeTable { overhead_bytes: -4, least_bytes: 64, counts_cells: true };
        sizes(&mut snapshot, SizeCount::ByTable(table));
        assert_eq!(snapshot.number("qdisc.table.overhead_bytes"), Ok(-4.0));
        assert_eq!(snapshot.count("qdisc.table.least_bytes"), Ok(64));
        assert_eq!(snapshot.text("qdisc.table.link_layer"), Ok("atm"));
    }
}
