//! Classes of htb that give what they should, and those that don't.

use goodput_model::{BitRate, ClassAnswer, Confirmation, Estimate, Missing, ShapingTest, Snapshot};

use super::{ClassAsked, ClassSeen, classes};
use crate::configured::Configured;
use crate::counted::TcpRate;
use crate::explain::Sender;
use crate::explain::tests::{device, sender};

const CONFIGURED: Configured =
    Configured { rate: BitRate(1e8), tolerance_percent: 2.0, max_burst: None, counts: None };

/// A class of htb: its name, the class above, level, rate and ceil in Mbit/s.
type HtbClass = (&'static str, &'static str, u64, u64, u64);

const ROOT: HtbClass = ("1:1", "root", 1, 100, 100);
const EF: HtbClass = ("1:10", "1:1", 0, 20, 100);
const BE: HtbClass = ("1:20", "1:1", 0, 80, 100);

fn htb(classes: &[HtbClass]) -> Snapshot {
    let mut facts = device("htb", &[("class.direct_packets", 0)], &[]);
    for (name, parent, level, rate, ceil) in classes {
        let mut put = |what: &str, value: u64| facts.put(format!("class.{name}.{what}"), value);
        put("level", *level);
        put("rate_bits_per_s", rate * 1_000_000);
        put("ceil_bits_per_s", ceil * 1_000_000);
        put("burst_bytes", 100_000);
        put("cburst_bytes", 100_000);
        put("sent_bytes", 0);
        facts.put(format!("class.{name}.parent"), *parent);
    }
    facts
}

/// The same after traffic through a class.
fn after(before: &Snapshot, taken: &str) -> Snapshot {
    let mut facts = before.clone();
    facts.put(taken, 1_000_000u64);
    facts
}

/// TCP at this rate of frames, Mbit/s.
fn tcp(mbit: f64) -> Result<TcpRate, Missing> {
    let value = mbit * 1e6 * 1448.0 / 1514.0;
    let goodput = Estimate { value, low: value * 0.999, high: value * 1.001 };
    Ok(TcpRate { goodput, payload: 1448.0, packet: 1500.0, window_s: None })
}

/// `ef` of 20 Mbit/s and `be` of 80 in this tree: what each got alone and beside the other, and the counter that grew.
fn seen(tree: &[HtbClass], ef: (f64, f64, &str), be: (f64, f64, &str)) -> ShapingTest {
    let before = htb(tree);
    let [of_ef, of_be] = [ef, be].map(|(_, _, taken)| after(&before, taken));
    let class = |name: &str, rate: f64, (alone, beside, _): (f64, f64, &str), after| ClassSeen {
        asked: ClassAsked { name: name.into(), rate: BitRate(rate), ceil: None },
        alone: tcp(alone),
        beside: tcp(beside),
        datagrams: Err(Missing::because("no train")),
        sender: Ok(sender(&before, after)),
    };
    classes(CONFIGURED, &[class("ef", 2e7, ef, &of_ef), class("be", 8e7, be, &of_be)])
}

fn ids(test: &ShapingTest) -> Vec<&str> {
    test.causes.iter().map(|cause| cause.id.as_str()).collect()
}

fn answers(test: &ShapingTest) -> Vec<ClassAnswer> {
    test.classes.iter().map(|class| class.answer).collect()
}

const IN_EF: &str = "class.1:10.sent_bytes";
const IN_BE: &str = "class.1:20.sent_bytes";

#[test]
fn classes_that_get_their_rates_and_borrow_are_fine() {
    let test = seen(&[ROOT, EF, BE], (99.5, 20.1, IN_EF), (100.0, 79.8, IN_BE));
    assert_eq!(test.confirmation, Confirmation::Confirmed, "{test:#?}");
    assert!(test.reasons.is_empty() && test.causes.is_empty(), "{test:#?}");
    assert_eq!(test.classes[0].htb_class.value().map(String::as_str), Some("1:10"));
    assert_eq!(test.furthest_below(), Some(1));
}

#[test]
fn a_class_starves_while_another_has_more_than_its_rate() {
    let low = ("1:10", "1:1", 0, 1, 100);
    let test = seen(&[ROOT, low, BE], (99.0, 5.0, IN_EF), (99.0, 95.0, IN_BE));
    assert_eq!(answers(&test), [ClassAnswer::Starves, ClassAnswer::Gives]);
    assert_eq!(ids(&test), ["set-otherwise", "taken"]);
    let words =
        "ef starves: it gets 5 Mbit/s of its 20 Mbit/s beside the others, and 99 Mbit/s alone";
    assert_eq!(test.reasons[0], words);
    assert_eq!(test.confirmation, Confirmation::Missed);
    assert_eq!(test.furthest_below(), Some(0));
}

#[test]
fn a_class_without_a_class_above_never_borrows() {
    let (ef, be) = (("1:10", "root", 0, 20, 100), ("1:20", "root", 0, 80, 100));
    let test = seen(&[ef, be], (20.0, 20.0, IN_EF), (80.0, 80.0, IN_BE));
    assert_eq!(answers(&test), [ClassAnswer::BelowCeil; 2]);
    assert_eq!(ids(&test), ["never-borrows"; 2]);
    assert!(test.causes[0].text.contains("no class above it"), "{:#?}", test.causes);
}

#[test]
fn a_class_whose_ceil_is_its_rate_has_nothing_to_borrow() {
    let (ef, be) = (("1:10", "1:1", 0, 20, 20), ("1:20", "1:1", 0, 80, 80));
    let test = seen(&[ROOT, ef, be], (20.0, 20.0, IN_EF), (80.0, 80.0, IN_BE));
    assert_eq!(answers(&test), [ClassAnswer::Gives; 2], "{test:#?}");
}

#[test]
fn filters_that_don_t_tell_classes_apart_are_named() {
    let test = seen(&[ROOT, EF, BE], (100.0, 50.0, IN_BE), (100.0, 50.0, IN_BE));
    assert_eq!(ids(&test), ["same-class", "set-otherwise", "taken"]);
}

#[test]
fn packets_beside_htb_are_named() {
    let direct = "class.direct_packets";
    let test = seen(&[ROOT, EF, BE], (900.0, 500.0, direct), (900.0, 500.0, direct));
    assert_eq!(answers(&test), [ClassAnswer::TooFast; 2]);
    assert_eq!(ids(&test), ["unclassified"; 2]);
    assert!(test.reasons.iter().any(|why| why.contains("nothing holds the classes together")));
}

#[test]
fn packets_beside_the_htb_of_a_router_may_be_of_others() {
    let before = htb(&[ROOT, EF, BE]);
    let after = after(&before, "class.direct_packets");
    let class = |name: &str| ClassSeen {
        asked: ClassAsked { name: name.into(), rate: BitRate(5e7), ceil: None },
        alone: tcp(100.0),
        beside: tcp(50.0),
        datagrams: Err(Missing::because("no train")),
        sender: Ok(Sender { router: Some("ssh://r"), ..sender(&before, &after) }),
    };
    assert_eq!(ids(&classes(CONFIGURED, &[class("ef"), class("be")])), [""; 0]);
}

#[test]
fn children_above_their_parent_meet_a_slower_link() {
    let (inner, ef) = (("1:2", "1:1", 1, 50, 100), ("1:10", "1:2", 0, 20, 100));
    let test = seen(
        &[("1:1", "root", 2, 100, 100), inner, ef, ("1:20", "1:2", 0, 80, 100)],
        (90.0, 10.0, IN_EF),
        (90.0, 80.0, IN_BE),
    );
    assert_eq!(answers(&test)[0], ClassAnswer::Starves);
    assert_eq!(ids(&test), ["never-borrows", "children-above-parent", "narrower"]);
}

#[test]
fn what_limits_a_class_alone_is_named() {
    let test = seen(&[ROOT, EF, BE], (0.3, 0.3, IN_EF), (99.0, 99.7, IN_BE));
    assert_eq!(answers(&test), [ClassAnswer::TooSlow, ClassAnswer::Gives]);
    assert_eq!(ids(&test), ["tcp-limit"]);
    let words = "TCP of ef alone: what drops batches";
    assert_eq!(test.causes[0].text, words);
}

/// The other borrows what the class does not use.
#[test]
fn a_class_that_was_not_measured_beside_the_others_decides_nothing() {
    let before = htb(&[ROOT, EF, BE]);
    let [of_ef, of_be] = [IN_EF, IN_BE].map(|taken| after(&before, taken));
    let class = |name: &str, rate: f64, beside, after| ClassSeen {
        asked: ClassAsked { name: name.into(), rate: BitRate(rate), ceil: None },
        alone: tcp(99.0),
        beside,
        datagrams: Err(Missing::because("no train")),
        sender: Ok(sender(&before, after)),
    };
    let full = Err(Missing::because("the server is full"));
    let test =
        classes(CONFIGURED, &[class("ef", 2e7, full, &of_ef), class("be", 8e7, tcp(99.0), &of_be)]);
    assert_eq!(answers(&test), [ClassAnswer::Inconclusive; 2], "{test:#?}");
    assert_eq!(test.confirmation, Confirmation::Inconclusive);
    let why = "be: too inexact to decide: 99 Mbit/s alone, an unknown rate (ef was not measured at the same time) beside the \
               others";
    assert_eq!(test.reasons[1], why);
}

#[test]
fn a_class_that_takes_more_than_the_others_leave_is_too_fast() {
    let test = seen(&[ROOT, EF, BE], (99.0, 30.0, IN_EF), (99.0, 80.0, IN_BE));
    assert_eq!(answers(&test), [ClassAnswer::TooFast, ClassAnswer::Gives]);
    assert_eq!(test.classes[0].most_bits_per_s.0.round(), 2e7 + 8e7 * 0.001);
}

#[test]
fn a_shaper_elsewhere_is_seen_from_outside() {
    let before = device("fq", &[], &[]);
    let class = |name: &str, rate: f64| ClassSeen {
        asked: ClassAsked { name: name.into(), rate: BitRate(rate), ceil: None },
        alone: tcp(rate / 1e6),
        beside: tcp(rate / 1e6),
        datagrams: Err(Missing::because("no train")),
        sender: Ok(sender(&before, &before)),
    };
    let test = classes(CONFIGURED, &[class("ef", 2e7), class("be", 8e7)]);
    assert_eq!(test.confirmation, Confirmation::Confirmed, "{test:#?}");
    assert_eq!(ids(&test), ["elsewhere"]);
}

/// All classes have the same sender, and each that reports it will do.
#[test]
fn a_class_without_facts_of_the_sender_is_not_elsewhere() {
    let before = htb(&[ROOT, EF, BE]);
    let of_be = after(&before, IN_BE);
    let class = |name: &str, sender| ClassSeen {
        asked: ClassAsked { name: name.into(), rate: BitRate(5e7), ceil: None },
        alone: Err(Missing::because("its port was in use")),
        beside: Err(Missing::because("its port was in use")),
        datagrams: Err(Missing::because("no train")),
        sender,
    };
    let none = Err(Missing::because("its port was in use"));
    let test = classes(CONFIGURED, &[class("ef", none), class("be", Ok(sender(&before, &of_be)))]);
    assert_eq!(ids(&test), ["set-otherwise"], "{test:#?}");
}

#[test]
fn what_is_not_measured_decides_nothing() {
    let before = htb(&[ROOT, EF, BE]);
    let class = |name: &str, rate: f64| ClassSeen {
        asked: ClassAsked { name: name.into(), rate: BitRate(rate), ceil: None },
        alone: tcp(100.0),
        beside: Err(Missing::because("the server was busy")),
        datagrams: Err(Missing::because("the server was busy")),
        sender: Ok(sender(&before, &before)),
    };
    let test = classes(CONFIGURED, &[class("ef", 2e7), class("be", 8e7)]);
    assert_eq!(test.confirmation, Confirmation::Inconclusive);
    assert!(test.reasons[0].contains("the server was busy"), "{:?}", test.reasons);
    let rates = [2e7, 9e7].map(|rate| class("x", rate));
    assert_eq!(ids(&classes(CONFIGURED, &rates)), ["rates-above-whole"]);
}
