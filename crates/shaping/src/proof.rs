//! The few settings that decide whether a shaper gives its rate, and what a comparison of them shows.

use goodput_model::{
    ArmRate, BitRate, Change, Comparison, Known, Missing, SettingRef, ShapingProof, ShapingTest,
};

use crate::explain::{LIMIT, Sender, at, burst_at_most, is_bucket, larger_bucket, made_by};

/// Error of the interval of a median.
const INTERVAL_ERROR: f64 = 0.05;

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
}

/// Segmentation offload on and off, the bucket as it is and as it is enough, and the limit if that is too short, of the end that
/// sends.
pub fn questions(test: &ShapingTest, sender: &Sender) -> Questions {
    let mut found = Questions { asked: Vec::new(), left_out: Vec::new() };
    for question in [Some(offload(sender)), Some(bucket(test, sender)), limit(test).map(Ok)] {
        match question {
            Some(Ok(question)) => found.asked.push(question),
            Some(Err(why)) => found.left_out.push(why),
            None => {}
        }
    }
    found
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

/// What a comparison shows. `goodput` is the goodput of TCP in `test`, bits per second.
pub fn proof(
    test: &ShapingTest,
    goodput: f64,
    comparison: &Comparison,
    left_out: Vec<String>,
) -> ShapingProof {
    let nothing = || Missing::because("TCP got nothing through");
    let scale = test.tcp_bits_per_s.get().and_then(|tcp| match goodput > 0.0 {
        true => Ok(tcp.value / goodput),
        false => Err(nothing()),
    });
    let arms: Vec<ArmRate> =
        (0..comparison.arms.len()).map(|arm| rate(comparison, arm, &scale)).collect();
    let gives = (0..arms.len()).filter(|arm| gives(test, &arms[*arm])).min_by_key(|arm| {
        let values = comparison.arms[*arm].values.iter().zip(&comparison.arms[0].values);
        values.filter(|(value, base)| value != base).count()
    });
    ShapingProof {
        arms,
        gives,
        left_out,
        commands: Vec::new(),
        networkd: Vec::new(),
        permanent: Vec::new(),
    }
}

fn gives(test: &ShapingTest, rate: &ArmRate) -> bool {
    let off =
        rate.median_bits_per_s.value().map(|rate| rate.0 / test.configured_bits_per_s.0 - 1.0);
    off.is_some_and(|off| off.abs() <= test.tolerance_percent / 100.0)
}

/// TCP's rate in the runs of an arm that count, as the shaper counts it; `scale` converts goodput to this rate.
fn rate(comparison: &Comparison, arm: usize, scale: &Result<f64, Missing>) -> ArmRate {
    let scale = match scale {
        Ok(scale) => *scale,
        Err(why) => {
            let (median, interval) = (Known::Missing(why.clone()), Known::Missing(why.clone()));
            return ArmRate { median_bits_per_s: median, interval_bits_per_s: interval };
        }
    };
    let counted = comparison.trials.iter().filter(|t| t.arm == arm && t.discarded.is_none());
    let mut rates: Vec<f64> =
        counted.filter_map(|trial| Some(trial.goodput_bits_per_s.value()?.0 * scale)).collect();
    rates.sort_by(f64::total_cmp);
    let median = goodput_model::median(rates.iter().copied());
    let ends = lower_place(rates.len())
        .map(|place| [BitRate(rates[place]), BitRate(rates[rates.len() - 1 - place])]);
    let few = || match rates.len() {
        1 => Missing::because("one run is too few"),
        n => Missing::because(format!("{n} runs are too few")),
    };
    ArmRate {
        median_bits_per_s: median.map(BitRate).ok_or_else(few).into(),
        interval_bits_per_s: ends.ok_or_else(few).into(),
    }
}

/// The place, from 0, of the lower end of a distribution-free interval of the median among `n` sorted values: the number
/// of values below the median is distributed like the heads of a fair coin (Conover, Practical Nonparametric
/// Statistics, section 3.2). `None` if even the interval from the smallest to the largest is too narrow.
fn lower_place(n: usize) -> Option<usize> {
    let (mut probability, mut below) = (0.5f64.powi(i32::try_from(n).ok()?), 0.0);
    let mut place = None;
    for k in 0..n / 2 {
        below += probability;
        if 2.0 * below > INTERVAL_ERROR {
            break;
        }
        place = Some(k);
        probability *= (n - k) as f64 / (k + 1) as f64;
    }
    place
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::tests::{device, explained, tbf, test};
    use goodput_model::{ArmResult, ShapingKind, Snapshot, Trial};

    fn asked(facts: &Snapshot) -> (Vec<String>, Vec<String>) {
        let seen = explained(test(ShapingKind::Shaper, 93e6, 93e6), facts, facts);
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
        let seen = explained(test(ShapingKind::Shaper, 93e6, 93e6), &small, &small);
        let enough = seen.enough_bucket.value().unwrap().bytes.0;
        let (factors, left_out) = asked(&tbf(200_000_000, enough - 1, 1_000_000));
        assert!(factors.is_empty() && left_out[1].contains("is enough"), "{left_out:?}");
    }

    #[test]
    fn the_fewest_changes_that_give_the_rate_are_named() {
        let seen = test(ShapingKind::Shaper, 93e6, 93e6);
        let values = [["on", "1600"], ["on", "68130"], ["off", "1600"], ["off", "68130"]];
        let rates = [93e6, 99.5e6, 93e6, 99.6e6];
        let trials = (0..8u32).flat_map(|block| {
            let each = rates.iter().enumerate();
            each.map(move |(arm, rate)| {
                Trial::new(block, arm, Known::Value(BitRate(rate + f64::from(block) * 1e3)))
            })
        });
        let arms = values.map(|arm| ArmResult::new(arm.map(String::from).to_vec())).to_vec();
        let trials = trials.collect();
        let comparison = Comparison { trials, ..Comparison::new(Vec::new(), arms) };
        let shown = proof(&seen, 93e6, &comparison, Vec::new());
        assert_eq!(shown.gives, Some(1));
        let first = &shown.arms[0];
        assert_eq!(first.median_bits_per_s, Known::Value(BitRate(93_003_500.0)));
        assert_eq!(first.interval_bits_per_s, Known::Value([BitRate(93e6), BitRate(93_007_000.0)]));
    }

    /// Conover's table: with 6 values the extremes, with 10 the second from each end.
    #[test]
    fn the_interval_of_a_median_needs_six_values() {
        assert_eq!(
            [5, 6, 8, 9, 10, 20].map(lower_place),
            [None, Some(0), Some(0), Some(1), Some(1), Some(5)]
        );
    }
}
