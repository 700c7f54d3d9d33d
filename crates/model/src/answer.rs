//! What a command with several runs found out, in a line.

use crate::comparison::{ArmResult, Comparison};
use crate::difference::Difference;
use crate::effect::{Effect, Judgement};
use crate::rate_search::RateSearch;
use crate::record::{Kind, Record};
use crate::response::Response;
use crate::shaping::{Confirmation, ShapingTest};
use crate::tuning::Tuning;
use crate::units::{BitRate, PacketBytes};

/// With this begins the answer of a single run that is not whole; why follows.
pub const ONLY_A_PART: &str = "only a part: ";

/// What a comparison, a tuning or a search found. Of a command with one run, why it is only a part; `None` if it is whole:
/// then its answer is its goodput.
pub fn answer(record: &Record) -> Option<String> {
    match record.kind {
        Kind::Test | Kind::Attach => {
            record.incomplete.as_ref().map(|why| format!("{ONLY_A_PART}{why}"))
        }
        Kind::Compare => record.comparison.as_ref().map(compared),
        Kind::Tune => {
            record.tuning.as_ref().map(|tuning| tuned(tuning, record.comparison.as_ref()))
        }
        Kind::FindRate => Some(found(&record.rate_searches)).filter(|found| !found.is_empty()),
        Kind::Shaping => record.shaping.as_deref().map(shaped),
    }
}

/// The goodput that stands for a result in a list. Of several runs it is that of what the answer compares with or found, and
/// not that of the first run, which may be a warm-up.
pub fn listed_goodput(record: &Record) -> BitRate {
    let median = |arm: usize| {
        let arms = record.comparison.as_ref().map_or(&[][..], |comparison| &comparison.arms);
        arms.get(arm)?.goodput_bits_per_s.value().copied()
    };
    let has_kept = record.tuning.as_ref().is_some_and(|tuning| !tuning.proven.is_empty());
    let of_all = match record.kind {
        Kind::Test | Kind::Attach | Kind::Shaping => None,
        Kind::Compare => median(0),
        // With all that was kept.
        Kind::Tune if has_kept => median(1),
        Kind::Tune => median(0),
        Kind::FindRate => record.rate_searches.iter().find_map(|search| search.rate_bits_per_s),
    };
    of_all.unwrap_or(record.result.goodput_bits_per_s)
}

/// An arm's difference from the baseline; `None` of the baseline itself.
pub fn of_arm(comparison: &Comparison, arm: &ArmResult) -> Option<String> {
    let (effect, response) = (arm.primary()?, comparison.deciding());
    let judged = effect.judgement.in_words(["better", "worse"]);
    let words = effect.in_words(&judged, response.burden());
    Some(match response {
        Response::PerCpu => format!("{}: {words}", response.name()),
        _ => words,
    })
}

/// By how much the goodput of a second result differs from that of a first one, as a phrase, or why there is no ratio.
pub fn difference(first: &Record, second: &Record) -> String {
    let [from, to] = [first, second].map(|record| record.result.goodput_bits_per_s.0);
    let [one, other] = [first, second].map(|record| record.plan.traffic());
    if [first, second].into_iter().any(|record| !record.kind.is_single_run()) {
        return "no ratio: a result of several runs has its own answer".into();
    }
    if from <= 0.0 {
        return "the first result received nothing, so there is no ratio".into();
    }
    if one != other {
        return format!("no ratio: {one} and {other} can't be compared");
    }
    let difference = Difference((to / from - 1.0) * 100.0);
    format!("goodput {difference}; single runs prove nothing, `goodput compare` does")
}

/// The values of an arm, with the names of the settings: `chunk=1M flows=2`. The baseline that ran again says so.
pub fn arm_name(comparison: &Comparison, arm: &ArmResult) -> String {
    let settings = comparison.settings.iter().zip(&arm.values);
    let values: Vec<_> = settings.map(|(setting, value)| format!("{setting}={value}")).collect();
    let again = if comparison.is_again(arm) { " again" } else { "" };
    values.join(" ") + again
}

/// The only arm's difference; of several, that of the best one, if one is better.
fn compared(comparison: &Comparison) -> String {
    let arms = comparison.arms.get(1..).unwrap_or_default();
    if let [only] = arms {
        return of_arm(comparison, only).unwrap_or_else(|| comparison.why_unjudged(1).into());
    }
    let better = |arm: &&ArmResult| {
        arm.primary().is_some_and(|effect| effect.judgement == Judgement::Better)
    };
    let size = |arm: &&ArmResult| arm.primary().map_or(0.0, |effect: &Effect| effect.percent.abs());
    let best = arms.iter().filter(better).max_by(|a, b| size(a).total_cmp(&size(b)));
    let answer = match best.and_then(|best| Some((best, of_arm(comparison, best)?))) {
        Some((best, words)) => format!("{}: {words}", arm_name(comparison, best)),
        None => format!("none of {} arms is proven better", arms.len()),
    };
    match arms.iter().filter(|arm| arm.primary().is_none()).count() {
        0 => answer,
        open => format!("{answer}; {open} of {} arms not judged", arms.len()),
    }
}

fn tuned(tuning: &Tuning, comparison: Option<&Comparison>) -> String {
    if tuning.is_plan_only() {
        return "only a plan".into();
    }
    if tuning.proven.is_empty() {
        return tuning.nothing().into();
    }
    let changes = tuning.proven.iter().map(|change| format!("{}={}", change.setting, change.to));
    let changes = changes.collect::<Vec<_>>().join(", ");
    let together = comparison.and_then(|all| of_arm(all, all.arms.get(1)?));
    match together {
        Some(words) => format!("{changes}: {words}"),
        None => format!("{changes} proven"),
    }
}

fn found(searches: &[RateSearch]) -> String {
    let one = |search: &RateSearch| {
        let size = PacketBytes(search.datagram_bytes.0);
        match search.rate_bits_per_s {
            Some(rate) => format!("{rate} with datagrams of {size}"),
            None => format!("no rate with datagrams of {size}"),
        }
    };
    searches.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// Whether a shaper gives what was asked for: it may be set to something else.
pub fn shaped(shaping: &ShapingTest) -> String {
    let mut asked = shaping.configured_bits_per_s.to_string();
    if let Some(most) = shaping.max_burst_bytes {
        asked += &format!(" with bursts of {most} at most");
    }
    match shaping.confirmation {
        Confirmation::Confirmed => format!("the shaper gives {asked}"),
        Confirmation::Missed => format!("the shaper does not give {asked}"),
        Confirmation::Inconclusive => format!("whether the shaper gives {asked} is unknown"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::Trial;
    use crate::known::Known;

    /// The shaper may be set to 90 Mbit/s, or give the rate and too large a burst.
    #[test]
    fn a_shaper_is_held_against_what_was_asked_for() {
        let mut test = ShapingTest::of(BitRate(1e8));
        test.confirmation = Confirmation::Missed;
        assert_eq!(shaped(&test), "the shaper does not give 100 Mbit/s");
        test.max_burst_bytes = Some(crate::units::Bytes(20_000));
        let said = "the shaper does not give 100 Mbit/s with bursts of 20 kB at most";
        assert_eq!(shaped(&test), said);
        test.confirmation = Confirmation::Confirmed;
        assert_eq!(shaped(&test), "the shaper gives 100 Mbit/s with bursts of 20 kB at most");
    }

    fn arm(value: &str, percent: f64, judgement: Judgement) -> ArmResult {
        let goodput = Effect {
            percent,
            low_percent: percent - 1.0,
            high_percent: percent + 1.0,
            confidence_percent: 96.9,
            n: 6,
            adjusted_for: Vec::new(),
            judgement,
        };
        let goodput_bits_per_s = Known::Value(BitRate(1e6));
        ArmResult {
            goodput: Some(goodput),
            goodput_bits_per_s,
            ..ArmResult::new(vec![value.into()])
        }
    }

    fn comparison(arms: Vec<ArmResult>) -> Comparison {
        let base = ArmResult::new(vec!["128K".into()]);
        let arms = std::iter::once(base).chain(arms).collect();
        let stopped = "every arm was decided".into();
        Comparison { stopped, ..Comparison::new(vec!["chunk".parse().unwrap()], arms) }
    }

    #[test]
    fn a_list_shows_what_was_compared_and_not_the_warm_up() {
        let golden = include_str!("../../store/tests/golden/v1/compare.json");
        let mut record: Record = serde_json::from_str(golden).unwrap();
        record.result.goodput_bits_per_s = BitRate(1.0);
        let medians = [5e6, 7e6].map(BitRate);
        let arms = &mut record.comparison.as_mut().unwrap().arms;
        for (arm, median) in arms.iter_mut().zip(medians) {
            arm.goodput_bits_per_s = Known::Value(median);
        }
        assert_eq!(listed_goodput(&record), medians[0]);
        record.comparison.as_mut().unwrap().arms[0].goodput_bits_per_s =
            Known::missing("all failed");
        assert_eq!(listed_goodput(&record), BitRate(1.0));
        record.kind = Kind::Test;
        assert_eq!(listed_goodput(&record), BitRate(1.0));
    }

    #[test]
    fn one_arm_has_its_difference_and_of_several_the_best_one() {
        let same = arm("1M", -1.1, Judgement::NoDifference);
        assert_eq!(
            compared(&comparison(vec![same.clone()])),
            "no difference: -1.1 % (96.9 % interval -2.1 to -0.1 %, n = 6 pairs)"
        );
        let several = [10.0, 20.0].map(|percent| arm("2M", percent, Judgement::Better));
        let all = comparison(std::iter::once(same.clone()).chain(several).collect());
        assert!(compared(&all).starts_with("chunk=2M: better: +20.0 % ("), "{}", compared(&all));
        let none = comparison(vec![same.clone(), same]);
        assert_eq!(compared(&none), "none of 2 arms is proven better");
    }

    #[test]
    fn arms_that_were_left_out_are_counted_and_say_which_runs_they_had() {
        let left_out = ["2M", "4M"].map(|value| ArmResult::new(vec![value.into()]));
        let better = arm("1M", 20.0, Judgement::Better);
        let mut all = comparison(std::iter::once(better).chain(left_out).collect());
        let trial = |block, arm| Trial::new(block, arm, Known::Value(BitRate(1e6)));
        all.trials = vec![trial(0, 1), trial(0, 2), trial(1, 1)];
        let why = [1, 2, 3].map(|arm| all.why_unjudged(arm));
        assert_eq!(why, ["too few runs", "run in the warm-up alone", "never run"]);
        assert!(compared(&all).ends_with("; 2 of 3 arms not judged"), "{}", compared(&all));
    }

    #[test]
    fn the_baseline_that_ran_again_has_another_name_than_the_baseline() {
        let all = comparison(vec![arm("128K", 0.2, Judgement::NoDifference)]);
        let names: Vec<_> = all.arms.iter().map(|arm| arm_name(&all, arm)).collect();
        assert_eq!(names, ["chunk=128K", "chunk=128K again"]);
    }

    #[test]
    fn an_arm_that_lessens_a_burden_is_said_to() {
        use crate::comparison::ResponseResult;
        let mut all = comparison(vec![arm("1M", -82.9, Judgement::Better)]);
        all.responses = vec![Response::Latency];
        let against = all.arms[1].goodput.clone();
        let (response, median) = (Response::Latency, Known::Value(56_000.0));
        all.arms[1].responses = vec![ResponseResult { response, median, against }];
        assert_eq!(
            compared(&all),
            "better: 82.9 % less delay (96.9 % interval 81.9 to 83.9 % less, n = 6 pairs)"
        );
    }
}
