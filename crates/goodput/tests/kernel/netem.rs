//! The lab, if the kernel emulates the link itself.

use goodput_lab::{Lab, Scenario};
use goodput_model::Record;
use goodput_netlink::{Netlink, Qdisc};
use libtest_mimic::{Failed, Trial};

use crate::program::measure;

/// Every test of this file.
pub fn all() -> Vec<Trial> {
    vec![
        Trial::test("netem::delays_both_ways", delays_both_ways),
        Trial::test("netem::loses_what_is_sent_again", loses_what_is_sent_again),
    ]
}

fn scenario(link: &str) -> Result<Scenario, Failed> {
    Ok(format!("name = \"x\"\ntitle = \"X.\"\n[link.path]\n{link}").parse()?)
}

/// Every netem of a lab; the lab has no relay of its own beside it.
fn netems(lab: &Lab) -> Result<Vec<Qdisc>, Failed> {
    let mut found = Vec::new();
    for host in lab.hosts() {
        for port in host.ports() {
            found.extend(host.within(|| {
                let mut netlink = Netlink::open()?;
                let index = netlink.link(&port.device)?.index;
                netlink.qdiscs(index)
            })??);
        }
    }
    found.retain(|qdisc| qdisc.kind == "netem");
    match (found.len(), lab.relay_counters().len()) {
        (0, relays) => Err(format!("no netem, {relays} relays").into()),
        (_, 0) => Ok(found),
        (_, relays) => Err(format!("netem, and {relays} relays").into()),
    }
}

/// The shortest round trip that TCP saw, microseconds.
fn shortest_us(record: &Record) -> Option<f64> {
    record.result.directions.first()?.min_rtt_us.value().copied()
}

/// Payload of one direction that came, bytes.
fn received(record: &Record) -> u64 {
    let ways = &record.result.directions;
    ways.iter().filter_map(|way| way.received_bytes.value()).sum()
}

fn delays_both_ways() -> Result<(), Failed> {
    let scenario = scenario("delay = \"15ms\"")?;
    let lab = Lab::up(&scenario)?;
    netems(&lab)?;
    let record = measure(&lab, &scenario, &["--bytes", "300K"])?;
    // No host is faster than its link; this one only may be slower.
    match (received(&record), shortest_us(&record)) {
        (300_000.., Some(us)) if us >= 30_000.0 => Ok(()),
        (bytes, us) => Err(format!("{bytes} bytes came, round trip {us:?} µs").into()),
    }
}

fn loses_what_is_sent_again() -> Result<(), Failed> {
    let scenario = scenario("loss = \"10%\"\nback = { loss = 0 }\ndelay = \"1ms\"")?;
    let lab = Lab::up(&scenario)?;
    // 2 MB are 1400 segments at least, unless some travel together: by chance all get through once in 10^6 runs
    // if even 130 packets do.
    let record = measure(&lab, &scenario, &["--bytes", "2M"])?;
    let drops: u64 = netems(&lab)?.iter().map(|netem| netem.stats.drops).sum();
    let again = record.result.directions.first().and_then(|way| way.retransmits.value().copied());
    match (received(&record) >= 2_000_000, again) {
        (true, Some(again)) if again > 0 && drops > 0 => Ok(()),
        (all, again) => Err(format!("all {all}, {drops} drops, {again:?} sent again").into()),
    }
}
