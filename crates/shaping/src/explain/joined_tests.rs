//! Datagrams and segments that leave the sender joined, as shapers count them.

use goodput_model::{BitRate, Known, ShapingTest, Snapshot};

use super::tests::{SHAPER, explained, ids, sender, tbf, test};
use super::{Sender, counts, explain};
use crate::{Configured, Counts};

/// From 233 Mbit/s on, the datagrams of a train leave joined.
fn joined(rate: f64, count: f64) -> ShapingTest {
    let mut test = test(SHAPER, rate, rate);
    let Known::Value(train) = &mut test.train else { panic!("it has one") };
    train.joined = Some(count);
    test
}

#[test]
fn joined_datagrams_that_pass_whole_have_the_overhead_once() {
    let configured =
        Configured { rate: BitRate(1e8), tolerance_percent: 2.0, max_burst: None, counts: None };
    let nothing = Snapshot::default();
    let of_train = |facts: &Snapshot, test: &ShapingTest| match counts(
        &sender(facts, &nothing),
        &configured,
        1500.0,
        test.train.value(),
    ) {
        Some(Counts::AsSet { train, .. }) => train,
        other => panic!("{other:?}"),
    };
    let with_overhead = |burst| {
        let mut facts = tbf(100_000_000, burst, 500_000);
        facts.put("qdisc.overhead_bytes", 40u64);
        facts
    };
    let (whole, cut) = (with_overhead(100_000), with_overhead(20_000));
    assert!((of_train(&whole, &joined(1e8, 40.0)) - 1515.0).abs() < 1e-9);
    assert!((of_train(&cut, &joined(1e8, 40.0)) - 1554.0).abs() < 1e-9, "tbf cuts them up");
    assert!((of_train(&whole, &test(SHAPER, 1e8, 1e8)) - 1554.0).abs() < 1e-9, "each left alone");
    let seen = explained(joined(99.9e6, 40.0), &whole, &nothing);
    assert_eq!(ids(&seen), ["counted-overhead", "headers"], "{:?}", seen.causes);
    assert!(seen.causes[0].text.contains("the datagrams left 40 at a time"), "{:?}", seen.causes);
}

/// The card of the sender cuts joined datagrams up before they come to a router.
#[test]
fn a_router_gets_joined_datagrams_one_by_one() {
    let mut facts = tbf(100_000_000, 100_000, 500_000);
    facts.put("qdisc.overhead_bytes", 40u64);
    let seen = |router, rate| {
        let sender = Sender { router, ..sender(&facts, &facts) };
        explain(joined(rate, 40.0), Ok(sender))
    };
    let at_router = seen(Some("ssh://r"), 1e8 * 1514.0 / 1554.0);
    assert_eq!(ids(&at_router), ["counted-overhead", "headers"], "{:?}", at_router.causes);
    let text = &at_router.causes[0].text;
    assert!(!text.contains("at a time") && text.ends_with("97.4 Mbit/s for frames"), "{text}");
    assert!(seen(None, 99.9e6).causes[0].text.contains("the datagrams left 40 at a time"));
}

/// A router behind veth, as measured: datagrams get 495.5 Mbit/s of frames from a tbf of 500 with an overhead of 40.
#[test]
fn joined_datagrams_may_come_whole_to_a_router() {
    let mut facts = tbf(100_000_000, 100_000, 500_000);
    facts.put("qdisc.overhead_bytes", 40u64);
    let sender = Sender { router: Some("ssh://r"), ..sender(&facts, &facts) };
    let set =
        Configured { rate: BitRate(1e8), tolerance_percent: 2.0, max_burst: None, counts: None };
    let of = |frames: f64, count| {
        let seen = joined(frames, count);
        let train = seen.train.get().cloned().unwrap();
        let counts = counts(&sender, &set, 1500.0, Some(&train)).unwrap();
        let rate = train.rate_bits_per_s.value().unwrap();
        counts.counted(rate, &train, set.rate).value / 1e8
    };
    assert!((of(99.1e6, 40.0) - 1.0).abs() < 0.01, "whole");
    assert!((of(1e8 * 1514.0 / 1554.0, 40.0) - 1.0).abs() < 0.01, "cut up by a card");
    assert!((of(99.1e6, 1.0) - 1.017).abs() < 0.001, "they left alone");
    assert!(of(93e6, 40.0) < 0.96);
}

/// `stab overhead 18` with a bucket of a whole super-packet: nothing is cut up.
#[test]
fn what_passes_a_table_of_sizes_whole_is_not_said_to_be_cut_up() {
    let said = |burst| {
        let mut facts = tbf(100_000_000, burst, 500_000);
        facts.put("qdisc.table.overhead_bytes", 18u64);
        facts.put("qdisc.table.link_layer", "ethernet");
        let seen = explained(test(SHAPER, 1e8, 1e8), &facts, &facts);
        seen.causes.iter().find(|cause| cause.id == "headers").unwrap().text.clone()
    };
    let whole = said(100_000);
    assert!(whole.contains("the table of sizes takes a super-packet with one header"), "{whole}");
    let cut = said(1550);
    assert!(cut.contains("what tbf cuts up of a super-packet"), "{cut}");
}
