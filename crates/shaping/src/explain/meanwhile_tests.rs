//! Traffic of others, a shaper that is changed, and what lies behind it.

use goodput_model::{Bytes, Confirmation, Estimate, Known, ShapingKind, ShapingTest, Snapshot};

use super::tests::{device, explained, sender, tbf, test};
use super::{Sender, explain, held_first, other_traffic};
use crate::behind::Behind;
use crate::configured::Configured;
use crate::counted::TcpRate;
use crate::judge::judge;
use crate::others::{Around, Counted};

const SHAPER: ShapingKind = ShapingKind::Shaper;
/// A train of this test, bytes of frames, which passes within a second.
const TRAIN_BYTES: u64 = 10_000 * 1514;

fn ids(test: &ShapingTest) -> Vec<&str> {
    test.causes.iter().map(|cause| cause.id.as_str()).collect()
}

fn with(mut facts: Snapshot, counts: &[(&str, u64)]) -> Snapshot {
    counts.iter().for_each(|(name, value)| facts.put(*name, *value));
    facts
}

fn around<'a>(before: &'a Snapshot, after: &'a Snapshot) -> Around<'a> {
    Around { sender: Counted { before, after }, receiver: None, seconds: 1.0 }
}

fn rate(bits: f64) -> Estimate {
    Estimate { value: bits, low: bits, high: bits }
}

/// The shaper of 100 Mbit/s counts 30 Mbit/s beside the datagrams' 70.
#[test]
fn what_others_take_is_no_fault_of_the_shaper() {
    let own = tbf(100_000_000, 1600, 500_000);
    let counted = |sent: u64| with(own.clone(), &[("qdisc.sent_bytes", sent), ("qdisc.drops", 0)]);
    let (before, after) = (counted(0), counted(TRAIN_BYTES + 3_750_000));
    let sender = Sender {
        around_train: Some(around(&before, &after)),
        around_tcp: Some(around(&before, &after)),
        arrived_bytes: Ok(TRAIN_BYTES * 1448 / 1514),
        ..sender(&own, &own)
    };
    let seen = test(SHAPER, 70e6, 70e6);
    let others = other_traffic(&sender, seen.train.value());
    assert!((others.train.clone().unwrap().bits_per_s / 30e6 - 1.0).abs() < 1e-3, "{others:?}");
    assert!((others.tcp.clone().unwrap().bits_per_s / 30e6 - 1.0).abs() < 1e-3, "{others:?}");

    let configured = Configured {
        rate: seen.configured_bits_per_s,
        tolerance_percent: 2.0,
        max_burst: None,
        counts: None,
    };
    let tcp = || {
        Ok(TcpRate {
            goodput: rate(70e6 * 1448.0 / 1514.0),
            payload: 1448.0,
            packet: 1500.0,
            window_s: None,
        })
    };
    let judged = judge(configured, seen.train.get().cloned(), tcp(), &others);
    assert_eq!(judged.confirmation, Confirmation::Inconclusive);
    let said = "datagrams get 70 Mbit/s, -30.0 %, but 30 Mbit/s of other traffic crossed tbf on eth0 meanwhile: test again without it";
    assert_eq!(judged.reasons[0], said);
    let alone = judge(
        configured,
        seen.train.get().cloned(),
        tcp(),
        &crate::others::OtherTraffic::default(),
    );
    assert_eq!(alone.confirmation, Confirmation::Missed);

    let explained = explain(seen, Ok(sender));
    assert_eq!(
        ids(&explained),
        ["other-traffic", "cut-super-packets", "headers"],
        "{explained:#?}"
    );
    assert!(explained.changes.is_empty(), "a larger bucket gives nothing back");
}

/// 20 Mbit/s of others don't explain a rate of 60; and what the shaper dropped of the train itself has not passed it.
#[test]
fn others_that_explain_too_little_excuse_nothing() {
    let own = tbf(100_000_000, 100_000, 500_000);
    let counted = |sent: u64, drops: u64| {
        with(own.clone(), &[("qdisc.sent_bytes", sent), ("qdisc.drops", drops)])
    };
    let (before, after) = (counted(0, 0), counted(TRAIN_BYTES / 2 + 2_500_000, 5000));
    let sender = Sender { around_train: Some(around(&before, &after)), ..sender(&own, &own) };
    let mut seen = test(SHAPER, 60e6, 60e6);
    let Known::Value(train) = &mut seen.train else { panic!("it has one") };
    train.lost = 5000;
    let others = other_traffic(&sender, seen.train.value());
    assert!((others.train.clone().unwrap().bits_per_s / 20e6 - 1.0).abs() < 1e-3, "{others:?}");
    let configured = Configured {
        rate: seen.configured_bits_per_s,
        tolerance_percent: 2.0,
        max_burst: None,
        counts: None,
    };
    let tcp = Ok(TcpRate { goodput: rate(57e6), payload: 1448.0, packet: 1500.0, window_s: None });
    assert_eq!(
        judge(configured, seen.train.get().cloned(), tcp, &others).confirmation,
        Confirmation::Missed
    );
}

/// What TCP had acknowledged by the last sample is less than what it sent until its end.
#[test]
fn what_a_foreign_receiver_does_not_report_is_no_traffic_of_others() {
    let own = tbf(100_000_000, 1600, 500_000);
    let counted = |sent: u64| with(own.clone(), &[("qdisc.sent_bytes", sent), ("qdisc.drops", 0)]);
    let (before, after) = (counted(0), counted(TRAIN_BYTES));
    let payload = TRAIN_BYTES * 1448 / 1514;
    let of = |arrived: u64, written_bytes: Option<u64>| {
        let sender = Sender {
            around_tcp: Some(around(&before, &after)),
            arrived_bytes: Ok(arrived),
            written_bytes,
            ..sender(&own, &own)
        };
        other_traffic(&sender, None).tcp
    };
    assert_eq!(of(payload * 95 / 100, Some(payload * 101 / 100)), None);
    assert!(of(payload * 95 / 100, None).is_some(), "a receiver that reports would have it");
    assert!(of(payload / 2, Some(payload / 2)).is_some(), "half of it is of others");
}

/// Others take 30 of 100 Mbit/s all the time: 45 for TCP is less than what it could have.
#[test]
fn a_lag_of_tcp_shows_beside_others() {
    let own = tbf(100_000_000, 100_000, 500_000);
    let counted = |sent: u64| with(own.clone(), &[("qdisc.sent_bytes", sent), ("qdisc.drops", 0)]);
    const OTHERS: u64 = 3_750_000;
    let (before, after) = (counted(0), counted(TRAIN_BYTES + OTHERS));
    let lags = |tcp: f64| {
        let own_of_tcp = (TRAIN_BYTES as f64 * tcp / 70e6) as u64;
        let after_tcp = counted(own_of_tcp + OTHERS);
        let sender = Sender {
            around_train: Some(around(&before, &after)),
            around_tcp: Some(around(&before, &after_tcp)),
            arrived_bytes: Ok(own_of_tcp * 1448 / 1514),
            ..sender(&own, &own)
        };
        let explained = explain(test(SHAPER, 70e6, tcp), Ok(sender));
        ids(&explained).contains(&"tcp-limit")
    };
    assert!(lags(45e6) && !lags(70e6));
}

/// Without a shaper here, the devices of both hosts say what else they carried.
#[test]
fn devices_count_where_no_shaper_does() {
    let counted = |sent: u64, received: u64| {
        device("noqueue", &[("link.tx_bytes", sent), ("link.rx_bytes", received)], &[])
    };
    let (near, later) = (counted(0, 0), counted(TRAIN_BYTES, 0));
    let (far, far_later) = (counted(0, 0), counted(0, TRAIN_BYTES + 5_000_000));
    let receiver = Some(Counted { before: &far, after: &far_later });
    let around = Around { receiver, ..around(&near, &later) };
    let sender = Sender { around_train: Some(around), ..sender(&near, &later) };
    let seen = test(SHAPER, 60e6, 60e6);
    let others = other_traffic(&sender, seen.train.value()).train.unwrap();
    // A policer behind the receiver's device drops what that has counted.
    let all = counted(0, TRAIN_BYTES);
    let receiver = Some(Counted { before: &far, after: &all });
    let dropped = Sender { around_train: Some(Around { receiver, ..around }), ..sender.clone() };
    let mut policed = test(ShapingKind::Policer, 60e6, 60e6);
    let Known::Value(train) = &mut policed.train else { panic!("it has one") };
    train.lost = 7000;
    assert_eq!(other_traffic(&dropped, policed.train.value()).train, None);
    let said = "eth0 of the host that receives carried 40 Mbit/s of other traffic meanwhile, which may cross the shaper";
    assert_eq!(others.words(), said);
}

/// The sender's own firewall drops 6000 datagrams, which its device never counts.
#[test]
fn what_the_sender_itself_drops_hides_no_traffic_of_others() {
    let counted = |sent: u64| device("noqueue", &[("link.tx_bytes", sent)], &[]);
    let (near, later) = (counted(0), counted(4000 * 1514 + 5_000_000));
    let sender = Sender { around_train: Some(around(&near, &later)), ..sender(&near, &later) };
    let mut policed = test(ShapingKind::Policer, 48e6, 48e6);
    let Known::Value(train) = &mut policed.train else { panic!("it has one") };
    (train.lost, train.refused) = (6000, 6000);
    let others = other_traffic(&sender, policed.train.value()).train.unwrap();
    assert!((others.bits_per_s / 40e6 - 1.0).abs() < 1e-3, "{others:?}");
}

/// The receiver's own firewall drops two thirds of a train, and the device has counted a little less than what was sent.
#[test]
fn what_the_receiver_itself_drops_is_no_traffic_of_others() {
    let near = device("noqueue", &[], &[]);
    let counted = |bytes: u64, came: u64, delivered: u64| {
        let counts = [
            ("link.rx_bytes", bytes),
            ("netstat.IpExt.InOctets", bytes * 1500 / 1514),
            ("snmp.Ip.InReceives", came),
            ("snmp.Ip.InDelivers", delivered),
        ];
        device("noqueue", &counts, &[])
    };
    let of = |delivered: u64| {
        let (far, later) = (counted(0, 0, 0), counted(TRAIN_BYTES * 98 / 100, 9800, delivered));
        let receiver = Some(Counted { before: &far, after: &later });
        let around = Around { receiver, ..around(&near, &near) };
        let sender = Sender { around_train: Some(around), ..sender(&near, &near) };
        let mut policed = test(ShapingKind::Policer, 30e6, 30e6);
        let Known::Value(train) = &mut policed.train else { panic!("it has one") };
        train.lost = 6600;
        other_traffic(&sender, policed.train.value()).train.is_some()
    };
    assert!(!of(3400), "the firewall dropped them");
    assert!(of(9800), "lost before, and the device carried other traffic");
}

/// A policer in the input hook of the receiver, and TCP, as measured on veth: 4430 segments in 300 packets, each counted with one
/// header.
#[test]
fn headers_that_a_virtual_device_does_not_count_hide_nothing_that_was_dropped_behind_it() {
    let near = device("noqueue", &[], &[]);
    let counted = |bytes: u64, packets: u64| {
        device("noqueue", &[("link.rx_bytes", bytes), ("link.rx_packets", packets)], &[])
    };
    let (far, later) = (counted(0, 0), counted(6_434_417, 300));
    let of = |arrived_bytes, resent_segments| {
        let receiver = Some(Counted { before: &far, after: &later });
        let around_tcp = Some(Around { receiver, ..around(&near, &near) });
        let arrived_bytes = Ok(arrived_bytes);
        let sender = Sender { around_tcp, arrived_bytes, resent_segments, ..sender(&near, &near) };
        other_traffic(&sender, None).tcp
    };
    assert_eq!(of(4_472_664, 1342), None);
    let others = of(4_472_664, 0).unwrap();
    assert!((others.bits_per_s / 16.2e6 - 1.0).abs() < 0.01, "{others:?}");
}

#[test]
fn a_shaper_that_was_changed_meanwhile_is_not_judged() {
    let (own, later) = (tbf(100_000_000, 100_000, 500_000), tbf(50_000_000, 100_000, 500_000));
    let sender = Sender { around_train: Some(around(&own, &later)), ..sender(&later, &later) };
    let seen = explain(test(SHAPER, 73e6, 50e6), Ok(sender));
    assert_eq!(seen.confirmation, Confirmation::Inconclusive);
    let said = "tbf on eth0 had rate 100 Mbit/s, then 50 Mbit/s: it was changed while it was measured; test again";
    assert_eq!(seen.reasons, [said]);
    assert!(seen.causes.is_empty() && seen.shaper.value().is_none());
}

/// The train waits in the own shaper of 100 Mbit/s. Of what left it, 40 % were lost.
#[test]
fn a_policer_behind_the_own_shaper_is_named_by_the_pauses() {
    let own = tbf(100_000_000, 100_000, 1_000_000);
    let (before, after) =
        (with(own.clone(), &[("qdisc.drops", 7)]), with(own.clone(), &[("qdisc.drops", 7)]));
    let seen = |behind| {
        let sender =
            Sender { around_train: Some(around(&before, &after)), behind, ..sender(&own, &own) };
        let mut test = test(SHAPER, 60e6, 2e6);
        let Known::Value(train) = &mut test.train else { panic!("it has one") };
        (train.rate_waits_per_call, train.lost) = (Known::Value(1.4), 4000);
        explain(test, Ok(sender))
    };
    let policed = seen(Some(Behind::Drops));
    assert!(policed.causes[0].text.ends_with("a policer is on the way"), "{policed:#?}");
    assert!(ids(&policed).contains(&"policed-bursts"), "{policed:#?}");
    let Known::Value(train) = &policed.train else { panic!("it has one") };
    let why = train.queue.value().unwrap().discipline.get().unwrap_err().to_string();
    assert_eq!(why, "the shaper itself dropped 0 of the 4000 datagrams that were lost");
    let queued = seen(Some(Behind::Waits));
    let said = "a second shaper, or a slower link, is on the way";
    assert!(queued.causes[0].text.ends_with(said), "{queued:#?}");
    assert!(!ids(&queued).contains(&"policed-bursts"), "{queued:#?}");
}

/// The own shaper lets 100 kB through at once, of which what is behind it takes 15 kB; 1.5 kB are enough for the rate.
#[test]
fn a_bucket_that_is_too_large_for_what_is_behind_it_is_to_be_smaller() {
    let seen = |burst: u64, takes: f64| {
        let own = tbf(100_000_000, burst, 1_000_000);
        let facts = with(own.clone(), &[("qdisc.drops", 0)]);
        let sender = Sender { around_train: Some(around(&facts, &facts)), ..sender(&own, &own) };
        let mut test = test(SHAPER, 1e8, 3e6);
        let Known::Value(train) = &mut test.train else { panic!("it has one") };
        train.bucket_bytes =
            Known::Value(Estimate { value: takes, low: takes - 1514.0, high: takes + 1514.0 });
        train.lost = 23;
        explain(test, Ok(sender))
    };
    let found = seen(100_000, 15e3);
    assert_eq!(ids(&found)[0], "dropped-bursts", "{found:#?}");
    let [change] = &found.changes[..] else { panic!("{:?}", found.changes) };
    let to: f64 = change.to.parse().unwrap();
    let enough = found.enough_bucket.value().unwrap().for_rate_bytes;
    assert!(to >= enough.0 as f64 && to <= 13_486.0, "{to}");
    assert!(found.commands[0].contains(&format!("burst {to:.0} ")), "{:?}", found.commands);
    let fits = seen(15_000, 15e3);
    assert!(!ids(&fits).contains(&"dropped-bursts"), "{fits:#?}");
    let none = explained(
        test(SHAPER, 1e8, 3e6),
        &tbf(100_000_000, 100_000, 1_000_000),
        &tbf(100_000_000, 100_000, 1_000_000),
    );
    assert!(!ids(&none).contains(&"dropped-bursts"), "nobody counted where they were lost");
    assert_eq!(Bytes(change.from.as_ref().unwrap().parse().unwrap()), Bytes(100_000));
}

#[test]
fn a_policer_of_packets_lets_super_packets_through_as_one() {
    let none = device("fq_codel", &[], &[]);
    let counts = |tcp| {
        ids(&explained(test(ShapingKind::Policer, 12e6, tcp), &none, &none))
            .contains(&"counts-packets")
    };
    assert!(counts(118e6) && !counts(13e6));
}

/// `prio` with a token bucket below one of its bands.
#[test]
fn a_shaper_below_another_discipline_is_no_shaper_elsewhere() {
    let facts = device("prio", &[], &[("qdisc.shapers_below", "tbf")]);
    let seen = explained(test(SHAPER, 50e6, 50e6), &facts, &facts);
    let said = &seen.causes[0].text;
    assert!(
        said.starts_with("eth0 of the near host may shape by tbf, which is below prio"),
        "{said}"
    );
    assert!(
        said.ends_with(": that holds the rate, or a router on the way, or the provider"),
        "{said}"
    );
}

/// Behind the own shaper of 100 Mbit/s, a policer of 120 drops what a late timer lets through at once.
#[test]
fn a_faster_policer_behind_the_own_shaper_is_no_rate_of_it() {
    let own = tbf(100_000_000, 70_000, 1_000_000);
    let facts = with(own.clone(), &[("qdisc.drops", 0)]);
    let sender = || Sender { around_train: Some(around(&facts, &facts)), ..sender(&own, &own) };
    let configured = Configured {
        rate: goodput_model::BitRate(1e8),
        tolerance_percent: 2.0,
        max_burst: None,
        counts: None,
    };
    let train = |rate: f64, waits: f64| {
        let Known::Value(mut train) = test(ShapingKind::Policer, rate, 3e6).train else { panic!() };
        (train.rate_waits_per_call, train.lost) = (Known::Value(waits), 900);
        held_first(train, &sender(), &configured)
    };
    let held = train(120e6, 1.4);
    let why = held.rate_bits_per_s.get().unwrap_err().to_string();
    assert!(why.starts_with("behind the shaper, a policer of a higher rate"), "{why}");
    assert!(train(60e6, 1.4).rate_bits_per_s.value().is_some(), "the slower one is what holds");
    assert!(train(120e6, 0.0).rate_bits_per_s.value().is_some(), "it does not pass the shaper");
    let tcp = Ok(TcpRate { goodput: rate(3e6), payload: 1448.0, packet: 1500.0, window_s: None });
    let judged = judge(configured, Ok(held), tcp, &crate::others::OtherTraffic::default());
    let seen = explain(judged, Ok(sender()));
    assert_eq!(ids(&seen)[0], "dropped-bursts", "{seen:#?}");
    assert!(!ids(&seen).contains(&"ignored"), "{seen:#?}");
    let [change] = &seen.changes[..] else { panic!("{:?}", seen.changes) };
    assert!(change.to.parse::<u64>().unwrap() < 70_000, "{change:?}");
}
