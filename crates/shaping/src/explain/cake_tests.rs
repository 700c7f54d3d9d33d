//! cake at the sender, compared with what was measured.

use goodput_model::{BitRate, CountedLayer, Known, Snapshot};

use super::counts;
use super::tests::{SHAPER, device, explained, ids, sender, tbf, test};
use crate::{Configured, Counts};

/// cake of 100 Mbit/s that counts from `from`, in this link layer.
fn cake(from: &str, overhead: u64, least: u64, layer: &str) -> Snapshot {
    let counts = [
        ("qdisc.rate_bits_per_s", 100_000_000),
        ("qdisc.overhead_bytes", overhead),
        ("qdisc.least_bytes", least),
    ];
    let mut facts =
        device("cake", &counts, &[("qdisc.counts_from", from), ("qdisc.link_layer", layer)]);
    facts.lacks("qdisc.burst_bytes", "cake has none");
    facts
}

#[test]
fn its_rate_is_held_against_what_was_seen() {
    let raw = cake("frame", 0, 0, "ethernet");
    let seen = explained(test(SHAPER, 1e8, 1e8), &raw, &raw);
    assert_eq!(ids(&seen), ["headers"], "{:#?}", seen.causes);
    let shaper = seen.shaper.value().unwrap();
    assert_eq!((shaper.kind.as_str(), shaper.rate_bits_per_s), ("cake", BitRate(1e8)));
    assert!(shaper.burst_bytes.value().is_none());
    let why = seen.enough_bucket.get().unwrap_err().to_string();
    assert!(why.starts_with("cake has no bucket") && seen.changes.is_empty(), "{why}");
    let less = explained(test(SHAPER, 5e7, 5e7), &raw, &raw);
    assert_eq!(ids(&less), ["second-shaper", "headers"], "{:#?}", less.causes);
    let more = explained(test(SHAPER, 2e8, 2e8), &raw, &raw);
    assert_eq!(ids(&more), ["ignored", "headers"], "{:#?}", more.causes);
}

#[test]
fn its_queue_manages_itself() {
    let long = || {
        let mut test = test(SHAPER, 1e8, 1e8);
        let Known::Value(train) = &mut test.train else { panic!("it has one") };
        let Known::Value(queue) = &mut train.queue else { panic!("it has one") };
        queue.longest_wait_s = 0.2;
        test
    };
    let has_long_queue = |facts: &Snapshot| {
        let seen = explained(long(), facts, facts);
        ids(&seen).contains(&"long-queue")
    };
    assert!(!has_long_queue(&cake("frame", 0, 0, "ethernet")));
    assert!(has_long_queue(&tbf(100_000_000, 100_000, 500_000)));
}

#[test]
fn what_it_counts_follows_from_its_overhead_and_its_link_layer() {
    let counted = |facts: &Snapshot| {
        let seen = explained(test(SHAPER, 1e8, 1e8), facts, facts);
        seen.shaper.value().unwrap().counted_frame_bytes.0
    };
    let rows = [
        (cake("frame", 0, 0, "ethernet"), 1514),
        (cake("packet", 0, 0, "ethernet"), 1500),
        (cake("packet", 38, 84, "ethernet"), 1538),
        (cake("packet", 40, 0, "atm"), 33 * 53),
        (cake("packet", 30, 0, "ptm"), 1530 + 24),
        (cake("packet", 0, 2000, "ethernet"), 2000),
    ];
    for (facts, bytes) in rows {
        assert_eq!(counted(&facts), bytes, "{facts:?}");
    }
    let atm = cake("packet", 40, 0, "atm");
    let seen = explained(test(SHAPER, 1e8 * 1514.0 / 1749.0, 8e7), &atm, &atm);
    let headers = seen.causes.iter().find(|cause| cause.id == "headers").unwrap();
    assert!(headers.text.starts_with("of 1749 bytes that count, 1448 are"), "{}", headers.text);
    let configured =
        Configured { rate: BitRate(1e8), tolerance_percent: 2.0, max_burst: None, counts: None };
    let packets = cake("packet", 0, 0, "ethernet");
    let layer = counts(&sender(&packets, &packets), &configured, 1500.0, None);
    assert_eq!(layer, Some(CountedLayer::Packet.into()));
    let cells = counts(&sender(&atm, &atm), &configured, 1500.0, None);
    let tcp_least = 1749.0;
    let expected =
        Counts::AsSet { train: 1749.0, train_least: 1749.0, tcp: 1749.0, tcp_least, layer: None };
    assert_eq!(cells, Some(expected));
}

#[test]
fn one_without_a_rate_shapes_nothing_and_says_why() {
    let mut facts = device("cake", &[], &[]);
    facts.lacks("qdisc.rate_bits_per_s", "its bandwidth is unlimited");
    let seen = explained(test(SHAPER, 1e8, 1e8), &facts, &facts);
    let Known::Missing(why) = &seen.shaper else { panic!("{:?}", seen.shaper) };
    assert!(why.missing.contains("its bandwidth is unlimited"), "{why}");
    assert_eq!(ids(&seen), ["elsewhere", "headers"], "{:#?}", seen.causes);
}
