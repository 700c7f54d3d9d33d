//! Shapers that are set to another rate than the one that was asked about.

use goodput_model::{ShapingKind, ShapingTest, Snapshot};

use super::class_tests::htb;
use super::tests::{device, explained, sender, tbf, test};
use super::{Sender, TcpLimit, explain};

fn proposed(test: &ShapingTest) -> Vec<String> {
    let words = |(setting, to)| format!("{setting}={to}");
    test.changes.iter().map(|change| (&change.setting, &change.to)).map(words).collect()
}

/// 100 Mbit/s were asked about.
fn explained_at(rate: f64, before: &Snapshot, after: &Snapshot) -> ShapingTest {
    explained(test(ShapingKind::Shaper, rate, rate), before, after)
}

#[test]
fn a_shaper_of_another_rate_says_so() {
    let local = tbf(50_000_000, 100_000, 250_000);
    let seen = explained_at(50e6, &local, &local);
    let ids: Vec<_> = seen.causes.iter().map(|cause| cause.id.as_str()).collect();
    assert_eq!(ids, ["set-otherwise", "headers"]);
}

#[test]
fn the_rate_that_was_asked_about_is_proposed_with_what_it_needs() {
    let small = tbf(20_000_000, 5000, 125_000);
    let seen = explained_at(20e6, &small, &small);
    let limit = "qdisc.tbf.limit@eth0=375000";
    let all = ["qdisc.tbf.rate@eth0=100mbit", "qdisc.tbf.burst@eth0=68130", limit];
    assert_eq!(proposed(&seen), all);
    let command = "tc qdisc change dev eth0 root tbf rate 100mbit burst 68130 limit 375000";
    assert_eq!(seen.commands, [command]);
    assert_eq!(seen.networkd[2..], ["Rate=100M", "BurstBytes=68130", "LimitBytes=375000"]);
    // Enough for both already.
    let large = tbf(20_000_000, 100_000, 500_000);
    let seen = explained_at(20e6, &large, &large);
    assert_eq!(proposed(&seen), ["qdisc.tbf.rate@eth0=100mbit"]);
    let own = tbf(100_000_000, 100_000, 500_000);
    assert!(proposed(&explained_at(1e8, &own, &own)).is_empty());
}

#[test]
fn a_faster_shaper_in_front_of_the_one_that_was_asked_about_stays() {
    let faster = tbf(1_000_000_000, 2_000_000, 5_000_000);
    for gives in [100e6, 77e6] {
        let seen = explained_at(gives, &faster, &faster);
        assert_eq!(proposed(&seen), [""; 0], "{gives}");
        assert_eq!(seen.commands, [""; 0], "{gives}");
    }
    assert_eq!(proposed(&explained_at(1e9, &faster, &faster)), ["qdisc.tbf.rate@eth0=100mbit"]);
}

#[test]
fn a_class_gets_the_ceil_and_what_may_not_borrow_the_rate() {
    let class = |rate: u64, ceil: u64| {
        let facts = |sent| {
            let mut facts = htb(rate, ceil, sent);
            for what in ["overhead_bytes", "least_bytes"] {
                facts.put(format!("class.1:10.{what}"), 0u64);
            }
            facts.put("class.1:10.link_layer", "ethernet");
            facts.put("class.1:10.quantum_bytes", 20_000u64);
            facts
        };
        explained_at(ceil as f64, &facts(0), &facts(99))
    };
    let seen = class(20_000_000, 50_000_000);
    assert_eq!(proposed(&seen), ["qdisc.htb.ceil@eth0:1:10=100mbit"]);
    assert_eq!(seen.commands, ["goodput settings set qdisc.htb.ceil@eth0:1:10=100mbit"]);
    assert_eq!(seen.networkd[5..7], ["Rate=20M", "CeilRate=100M"]);
    let both = ["qdisc.htb.ceil@eth0:1:10=100mbit", "qdisc.htb.rate@eth0:1:10=100mbit"];
    assert_eq!(proposed(&class(50_000_000, 50_000_000)), both);
}

/// The root's ceil of 200 Mbit/s holds a class that may have 300.
#[test]
fn a_class_that_gets_too_much_is_held_where_the_lowest_ceil_is() {
    let facts = |sent| {
        let mut facts = htb(150_000_000, 300_000_000, sent);
        facts.put("class.1:1.rate_bits_per_s", 200_000_000u64);
        facts.put("class.1:1.ceil_bits_per_s", 200_000_000u64);
        facts
    };
    let seen = explained_at(2e8, &facts(0), &facts(99));
    let all = [
        "qdisc.htb.rate@eth0:1:10=100mbit",
        "qdisc.htb.ceil@eth0:1:1=100mbit",
        "qdisc.htb.rate@eth0:1:1=100mbit",
    ];
    assert_eq!(proposed(&seen), all);
    // Its lines are of one class.
    assert!(seen.networkd.is_empty() && seen.commands.len() == 3, "{seen:#?}");
}

#[test]
fn a_cake_gets_another_bandwidth() {
    let cake = device("cake", &[("qdisc.rate_bits_per_s", 20_000_000)], &[]);
    let seen = explained_at(20e6, &cake, &cake);
    assert_eq!(proposed(&seen), ["qdisc.cake.bandwidth@eth0=100mbit"]);
    assert_eq!(seen.commands, ["goodput settings set qdisc.cake.bandwidth@eth0=100mbit"]);
}

/// Datagrams at 430 Mbit/s met nothing.
#[test]
fn a_policer_that_only_tcp_meets_is_named_with_a_rate_to_test() {
    let none = device("fq_codel", &[], &[]);
    let seen = |rule: &str| {
        let words = "a policer on the path, at 453 Mbit/s".into();
        let tcp_limit = Some(TcpLimit { rule: rule.into(), words, is_of_host: false });
        let sender = Sender { tcp_limit, ..sender(&none, &none) };
        explain(test(ShapingKind::None, 4.3e8, 4.738e8), Ok(sender))
    };
    let policed = seen("policer");
    let texts: Vec<_> = policed.causes.iter().map(|cause| cause.text.as_str()).collect();
    let said = "datagrams at 430 Mbit/s showed no limit, but TCP meets a policer on the path, at 453 Mbit/s: test with --rate 474mbit";
    assert_eq!(texts[0], said);
    assert!(seen("path-loss").causes.iter().all(|cause| cause.id != "faster-policer"));
}
