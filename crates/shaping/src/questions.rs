//! The few settings that decide whether a shaper gives its rate.

use goodput_model::{BitRate, Change, Confirmation, SettingRef, ShapingTest};

use crate::explain::{
    LIMIT, Sender, at, burst_at_most, is_bucket, is_set_otherwise, larger_bucket, made_by,
};
use crate::judge::confirmation;

/// A setting in question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Its name.
    pub setting: SettingRef,
    /// Its present value, and another one.
    pub values: [String; 2],
    /// What the test proposes for it, if it is one of the shaper.
    change: Option<Change>,
}

/// What to compare.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Questions {
    /// The settings.
    pub asked: Vec<Question>,
    /// Settings that are not compared: which, why, and what can be done.
    pub left_out: Vec<String>,
    /// Whether only all other values at once answer the question, not each combination.
    pub at_once: bool,
    /// Whether there is nothing to prove if nothing is asked: not so for a shaper that is set to another rate.
    pub may_be_none: bool,
}

impl Questions {
    fn none(why: String) -> Self {
        Self { asked: Vec::new(), left_out: vec![why], at_once: false, may_be_none: true }
    }
}

/// Segmentation offload on and off, the bucket as it is and as it is enough, and the limit if that is too short, of the end that
/// sends. Of a shaper that is set to another rate: that rate, and what goes with it. Nothing if TCP has the rate.
pub fn questions(test: &ShapingTest, sender: &Sender) -> Questions {
    if let Some(why) = has_its_rate(test) {
        return Questions::none(why);
    }
    if test.shaper.value().is_some_and(|shaper| is_set_otherwise(test, shaper)) {
        return of_rate(test);
    }
    let mut found =
        Questions { asked: Vec::new(), left_out: Vec::new(), at_once: false, may_be_none: true };
    for question in [Some(offload(sender)), Some(bucket(test, sender)), limit(test).map(Ok)] {
        match question {
            Some(Ok(question)) => found.asked.push(question),
            Some(Err(why)) => found.left_out.push(why),
            None => {}
        }
    }
    found
}

/// Why nothing is in question, if TCP has the rate.
fn has_its_rate(test: &ShapingTest) -> Option<String> {
    let (configured, tolerance) = (test.configured_bits_per_s, test.tolerance_percent);
    let tcp = test.tcp_bits_per_s.value()?;
    (confirmation(tcp, configured, tolerance) == Confirmation::Confirmed).then(|| {
        format!(
            "TCP gets {}, and {configured} ± {tolerance} % is wanted, so there is nothing to prove",
            BitRate(tcp.value)
        )
    })
}

/// The rate that the shaper is set to, and the one that was asked about, with the bucket and the limit that go with it.
fn of_rate(test: &ShapingTest) -> Questions {
    let asked: Vec<_> =
        test.changes.iter().map(|change| of_change(change.clone(), String::new)).collect();
    let why = match asked.is_empty() {
        true => {
            "the shaper is set to another rate; set that first: no other setting brings the rate wanted"
        }
        false => {
            "segmentation offload and the bucket alone are not compared: the shaper is set to another rate"
        }
    };
    Questions { asked, left_out: vec![why.into()], at_once: true, may_be_none: false }
}

fn offload(sender: &Sender) -> Result<Question, String> {
    let (now, device) = (sender.before.text("offload.tso"), sender.before.text("link.device"));
    let other = match now {
        Ok("on") => "off",
        _ => "on",
    };
    match (now, device) {
        (Ok(now), Ok(device)) => {
            let setting = SettingRef {
                end: sender.end,
                name: "offload.tso".into(),
                scope: Some(device.into()),
            };
            Ok(Question { setting, values: [now.into(), other.into()], change: None })
        }
        (Err(why), _) | (_, Err(why)) => {
            Err(format!("segmentation offload is not compared: {why}"))
        }
    }
}

fn bucket(test: &ShapingTest, sender: &Sender) -> Result<Question, String> {
    let shaper = test.shaper.get().map_err(|why| {
        format!("no bucket is compared: {why}; run goodput on the host that shapes, or set its bucket there")
    })?;
    let burst = shaper.burst_bytes.get().map_err(|why| format!("no bucket is compared: {why}"))?;
    let is_small = test
        .enough_bucket
        .value()
        .zip(burst_at_most(shaper))
        .is_some_and(|(enough, most)| most < enough.bytes.0 as f64);
    let proposed = test.changes.iter().find(|change| is_bucket(&change.setting)).cloned();
    let change = proposed.or_else(|| larger_bucket(test, sender).filter(|_| is_small));
    let change = change.ok_or_else(|| {
        format!(
            "the bucket of {burst} is not compared: it is enough for the rate and for super-packets"
        )
    })?;
    Ok(of_change(change, || burst.0.to_string()))
}

/// The limit that the test proposes.
fn limit(test: &ShapingTest) -> Option<Question> {
    let change = test.changes.iter().find(|change| change.setting.name == LIMIT)?;
    Some(of_change(change.clone(), String::new))
}

fn of_change(change: Change, now: impl FnOnce() -> String) -> Question {
    let from = change.from.clone().unwrap_or_else(now);
    let (setting, values) = (change.setting.clone(), [from, change.to.clone()]);
    Question { setting, values, change: Some(change) }
}

/// How to have some of the values that were compared, without goodput.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chosen {
    /// Commands of other programs.
    pub commands: Vec<String>,
    /// Lines of systemd.network(5).
    pub networkd: Vec<String>,
}

/// The same for the questions whose other value is wanted.
pub fn chosen(test: &ShapingTest, sender: &Sender, wanted: &[&Question]) -> Chosen {
    let changes: Vec<Change> = wanted.iter().filter_map(|one| one.change.clone()).collect();
    let offloads = wanted.iter().filter(|one| one.change.is_none()).map(|one| {
        let device = one.setting.scope.as_deref().unwrap_or_default();
        at(sender.end, format!("ethtool -K {device} tso {}", one.values[1]))
    });
    let (commands, networkd) = made_by(test, sender, &changes);
    Chosen { commands: offloads.chain(commands).collect(), networkd }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::tests::{device, explained, tbf, test};
    use goodput_model::{ShapingKind, Snapshot};

    /// A test of the rate to which a shaper is set, that datagrams and TCP miss.
    fn missed(facts: &Snapshot) -> ShapingTest {
        let rate = BitRate(facts.number("qdisc.rate_bits_per_s").unwrap_or(1e8));
        let test = test(ShapingKind::Shaper, 93e6, 93e6);
        explained(ShapingTest { configured_bits_per_s: rate, ..test }, facts, facts)
    }

    fn asked(facts: &Snapshot) -> (Vec<String>, Vec<String>) {
        let seen = missed(facts);
        let found = questions(&seen, &crate::explain::tests::sender(facts, facts));
        let words = |one: &Question| format!("{}={}", one.setting, one.values.join(","));
        (found.asked.iter().map(words).collect(), found.left_out)
    }

    #[test]
    fn offload_and_a_small_bucket_are_in_question() {
        let mut facts = tbf(100_000_000, 1600, 500_000);
        facts.put("offload.tso", "on");
        let expected = ["offload.tso@eth0=on,off", "qdisc.tbf.burst@eth0=1600,68130"];
        assert_eq!(asked(&facts), (expected.map(String::from).to_vec(), Vec::new()));
    }

    #[test]
    fn a_limit_that_is_too_short_is_in_question_and_all_is_set_at_once() {
        let mut facts = tbf(100_000_000, 1600, 5000);
        facts.put("offload.tso", "on");
        let seen = explained(test(ShapingKind::Shaper, 93e6, 1e6), &facts, &facts);
        let sender = crate::explain::tests::sender(&facts, &facts);
        let found = questions(&seen, &sender).asked;
        let [tso, burst, limit] = &found[..] else { panic!("{found:?}") };
        assert_eq!(limit.values, ["5000", "375000"]);
        let command = "tc qdisc change dev eth0 root tbf rate 100mbit burst 68130 limit 375000";
        assert_eq!(chosen(&seen, &sender, &[burst, limit]).commands, [command]);
        let alone = chosen(&seen, &sender, &[tso, limit]);
        let commands = [
            "ethtool -K eth0 tso off",
            "tc qdisc change dev eth0 root tbf rate 100mbit burst 1600 limit 375000",
        ];
        assert_eq!(alone.commands, commands);
        assert_eq!(alone.networkd[3], "BurstBytes=1600");
    }

    #[test]
    fn what_can_not_be_compared_says_why() {
        let (factors, left_out) = asked(&device("fq_codel", &[], &[("offload.tso", "off")]));
        assert_eq!(factors, ["offload.tso@eth0=off,on"]);
        assert!(left_out[0].contains("eth0 of the near host shapes nothing"), "{left_out:?}");
        let (factors, left_out) = asked(&tbf(100_000_000, 200_000, 1_000_000));
        assert!(factors.is_empty() && left_out[1].contains("is enough"), "{left_out:?}");
        // The kernel reports a bucket of the computed size in steps of 64 ns, here 1.6 bytes.
        let small = tbf(200_000_000, 1600, 1_000_000);
        let enough = missed(&small).enough_bucket.value().unwrap().bytes.0;
        let (factors, left_out) = asked(&tbf(200_000_000, enough - 1, 1_000_000));
        assert!(factors.is_empty() && left_out[1].contains("is enough"), "{left_out:?}");
    }

    #[test]
    fn nothing_is_in_question_if_tcp_has_the_rate() {
        let facts = tbf(100_000_000, 1600, 500_000);
        let seen = explained(test(ShapingKind::Shaper, 93e6, 98.5e6), &facts, &facts);
        let found = questions(&seen, &crate::explain::tests::sender(&facts, &facts));
        assert!(found.asked.is_empty() && found.may_be_none, "{found:?}");
        let said =
            "TCP gets 98.5 Mbit/s, and 100 Mbit/s ± 2 % is wanted, so there is nothing to prove";
        assert_eq!(found.left_out, [said]);
    }

    #[test]
    fn a_shaper_that_is_set_to_another_rate_is_asked_about_that_rate() {
        let mut facts = tbf(20_000_000, 1600, 500_000);
        facts.put("offload.tso", "on");
        let seen = explained(test(ShapingKind::Shaper, 20e6, 20e6), &facts, &facts);
        let sender = crate::explain::tests::sender(&facts, &facts);
        let found = questions(&seen, &sender);
        let words = |one: &Question| format!("{}={}", one.setting, one.values.join(","));
        let expected = ["qdisc.tbf.rate@eth0=20mbit,100mbit", "qdisc.tbf.burst@eth0=1600,68130"];
        assert_eq!(found.asked.iter().map(words).collect::<Vec<_>>(), expected);
        assert!(found.at_once && found.left_out[0].contains("another rate"), "{found:?}");
        let of_a_router = ShapingTest { changes: Vec::new(), ..seen.clone() };
        let none = questions(&of_a_router, &sender);
        assert!(none.asked.is_empty() && !none.may_be_none, "{none:?}");
        let all: Vec<_> = found.asked.iter().collect();
        let command = "tc qdisc change dev eth0 root tbf rate 100mbit burst 68130 limit 500000";
        assert_eq!(chosen(&seen, &sender, &all).commands, [command]);
    }
}
