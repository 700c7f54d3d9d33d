//! Classes of htb, compared with what was measured.

use goodput_model::{BitRate, ShapingKind, Snapshot};

use super::tests::{SHAPER, device, explained, ids, sender, tbf, test};
use super::{Sender, explain};

/// Classes 1:10 and 1:20 below 1:1; all traffic goes through 1:10.
pub(super) fn htb(rate: u64, ceil: u64, sent: u64) -> Snapshot {
    let mut facts = device("htb", &[], &[("class.1:1.parent", "root")]);
    for (class, rate, ceil, level) in
        [("1:1", 100_000_000, 100_000_000, 1), ("1:10", rate, ceil, 0), ("1:20", rate, ceil, 0)]
    {
        facts.put(format!("class.{class}.rate_bits_per_s"), rate);
        facts.put(format!("class.{class}.ceil_bits_per_s"), ceil);
        facts.put(format!("class.{class}.burst_bytes"), 100_000u64);
        facts.put(format!("class.{class}.cburst_bytes"), 100_000u64);
        facts.put(format!("class.{class}.level"), level as u64);
    }
    for class in ["1:10", "1:20"] {
        facts.put(format!("class.{class}.parent"), "1:1");
        facts.put(format!("class.{class}.sent_bytes"), if class == "1:10" { sent } else { 9 });
    }
    facts
}

#[test]
fn a_class_that_does_not_borrow_and_children_above_their_parent_are_named() {
    let (before, after) = (htb(60_000_000, 200_000_000, 0), htb(60_000_000, 200_000_000, 99));
    let seen = explained(test(SHAPER, 60e6, 60e6), &before, &after);
    let expected = ["never-borrows", "children-above-parent", "headers"];
    assert_eq!(ids(&seen), expected, "{:#?}", seen.causes);
    let shaper = seen.shaper.value().unwrap();
    assert_eq!(shaper.rate_bits_per_s, BitRate(1e8), "the root's ceil is the lowest");
    assert_eq!(shaper.class.as_deref(), Some("1:10"));
}

/// A class of htb sends on credit: a bucket below a frame drops nothing, and bridges late timers with all that it holds.
#[test]
fn a_bucket_of_htb_below_a_frame_drops_nothing() {
    let with_bucket = |sent| {
        let mut facts = htb(100_000_000, 100_000_000, sent);
        for what in ["burst_bytes", "cburst_bytes"] {
            facts.put(format!("class.1:10.{what}"), 1000u64);
        }
        facts
    };
    let seen = explained(test(SHAPER, 93e6, 92.8e6), &with_bucket(0), &with_bucket(99));
    assert!(!ids(&seen).contains(&"below-a-frame"), "{:#?}", seen.causes);
    assert_eq!(seen.causes[0].id, "late-timers", "{:#?}", seen.causes);
    assert!(seen.causes[0].text.contains("up to 80 µs late at 100 Mbit/s"), "{:?}", seen.causes[0]);
}

/// A class of a router, by what the classes 1:10 and 1:20 counted of a test that brought 1 MB.
#[test]
fn a_router_has_a_class_that_counted_the_test_and_no_command_of_goodput() {
    let at_router = |counted: [u64; 2]| {
        let facts = |counted: [u64; 2]| {
            let mut facts = htb(100_000_000, 100_000_000, counted[0]);
            facts.put("class.1:20.sent_bytes", counted[1]);
            for what in ["burst_bytes", "cburst_bytes"] {
                facts.put(format!("class.1:10.{what}"), 1000u64);
            }
            facts
        };
        let (before, after) = (facts([0, 0]), facts(counted));
        let sender = Sender { router: Some("ssh://r"), ..sender(&before, &after) };
        explain(test(SHAPER, 93e6, 92.8e6), Ok(sender))
    };
    for others in [20_000, 9_000_000] {
        let seen = at_router([1_040_000, others]);
        assert_eq!(seen.shaper.value().unwrap().class.as_deref(), Some("1:10"));
        assert!(ids(&seen).contains(&"late-timers") && seen.commands.is_empty(), "{seen:#?}");
    }
    let why = |counted| at_router(counted).shaper.get().unwrap_err().to_string();
    assert!(why([0, 9_000_000]).starts_with("no class of htb counted mainly"));
    let both = why([1_040_000, 1_900_000]);
    assert!(both.contains("each of the classes 1:10, 1:20 counted as much"), "{both}");
}

/// The counters of a class and of what went past all, before and after 1 MB of TCP.
#[test]
fn traffic_past_htb_is_named() {
    let facts = |direct: u64, default: &str| {
        let mut facts = htb(60_000_000, 100_000_000, 0);
        facts.put("class.direct_packets", direct);
        facts.put("class.default", default);
        facts
    };
    let explained = |direct: u64, default| {
        explained(
            test(ShapingKind::None, 4.3e8, 4e8),
            &facts(7, default),
            &facts(7 + direct, default),
        )
    };
    let seen = explained(9000, "1:99");
    assert_eq!(ids(&seen), ["past-htb", "headers"], "{:#?}", seen.causes);
    let text = &seen.causes[0].text;
    assert!(text.contains("its default 1:99 does not exist. htb sent 9000 packets past"), "{text}");
    assert!(explained(9000, "none").causes[0].text.contains("it has no default"));
    // Two packets of others carry no megabyte.
    assert!(!ids(&explained(2, "1:99")).contains(&"past-htb"));
}

#[test]
fn a_quantum_below_a_frame_and_a_peak_rate_are_named() {
    let facts = |sent| {
        let mut facts = htb(100_000_000, 100_000_000, sent);
        facts.put("class.1:10.quantum_bytes", 1000u64);
        facts
    };
    let seen = explained(test(SHAPER, 1e8, 1e8), &facts(0), &facts(99));
    assert!(ids(&seen).contains(&"small-quantum"), "{:#?}", seen.causes);
    let mut peak = tbf(100_000_000, 100_000, 500_000);
    peak.put("qdisc.peak_rate_bits_per_s", 110_000_000u64);
    let seen = explained(test(SHAPER, 93e6, 93e6), &peak, &peak);
    assert_eq!(ids(&seen), ["peak-rate", "headers"], "{:#?}", seen.causes);
    assert!(seen.networkd.is_empty() && seen.changes.is_empty());
    // A frame would have to be 134 µs late each time.
    let far = explained(test(SHAPER, 50e6, 50e6), &peak, &peak);
    assert_eq!(ids(&far), ["second-shaper", "headers"], "{:#?}", far.causes);
}

/// A class of htb as systemd-networkd has it.
#[test]
fn a_class_has_lines_of_networkd() {
    let with_bucket = |sent| {
        let mut facts = htb(60_000_000, 100_000_000, sent);
        for what in ["burst_bytes", "cburst_bytes"] {
            facts.put(format!("class.1:10.{what}"), 1000u64);
        }
        facts.put("class.1:10.quantum_bytes", 60_000u64);
        facts.put("class.1:10.overhead_bytes", 0u64);
        facts.put("class.1:10.least_bytes", 0u64);
        facts.put("class.1:10.link_layer", "ethernet");
        facts
    };
    let seen = explained(test(SHAPER, 93e6, 92.8e6), &with_bucket(0), &with_bucket(99));
    let lines = [
        "[HierarchyTokenBucketClass]",
        "Parent=1:1",
        "ClassId=1:10",
        "# Priority= was not read: add it if the class has one",
        "QuantumBytes=60000",
        "Rate=60M",
        "CeilRate=100M",
        "BufferBytes=68130",
        "CeilBufferBytes=68130",
    ];
    assert_eq!(seen.networkd, lines, "{:#?}", seen.changes);
    let with_overhead = |sent| {
        let mut facts = with_bucket(sent);
        facts.put("class.1:10.overhead_bytes", 8u64);
        facts
    };
    let seen = explained(test(SHAPER, 93e6, 92.8e6), &with_overhead(0), &with_overhead(99));
    assert!(seen.networkd.is_empty() && !seen.changes.is_empty(), "its lines would lose that");
}
