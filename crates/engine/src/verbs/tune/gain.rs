//! Whether an arm is better than the baseline for the purpose of tuning.

use goodput_experiment::{Design, Obvious, obvious};
use goodput_model::{ArmResult, Comparison, Effect, Judgement, Purpose, Response};

/// How many responses may each prove a change by being better.
pub fn ways_to_win(purpose: Purpose) -> usize {
    if purpose == Purpose::Balanced { purpose.responses().len() } else { 1 }
}

/// Whether the second arm of `comparison`, made only to choose, is obviously better or worse for `purpose`. Once it was
/// looked at, its intervals count.
pub fn obviously(comparison: &Comparison, purpose: Purpose) -> Option<Obvious> {
    if reached_first_look(comparison, purpose) {
        return None;
    }
    let design = Design {
        responses: purpose.responses().to_vec(),
        threshold_percent: comparison.threshold_percent,
        ..design(purpose)
    };
    obvious(&design, &comparison.trials, 1)
}

fn design(purpose: Purpose) -> Design {
    Design { ways_to_win: ways_to_win(purpose), ..Design::default() }
}

/// Whether the second arm of `comparison` is proven to be no better: each wanted response makes no difference or is
/// worse; or that it is obviously worse. Without proof there is no reason to drop what helped before.
pub fn is_needless(comparison: &Comparison, purpose: Purpose) -> bool {
    let Some(arm) = comparison.arms.get(1) else { return false };
    if obviously(comparison, purpose) == Some(Obvious::Worse) {
        return true;
    }
    purpose.responses().iter().copied().take(ways_to_win(purpose)).all(|response| {
        against(arm, response).is_some_and(|Effect { judgement, .. }| {
            *judgement == Judgement::NoDifference || judgement.is_worse()
        })
    })
}

/// Whether `comparison` has as many blocks as its first look needs. With fewer it can't show anything.
pub fn reached_first_look(comparison: &Comparison, purpose: Purpose) -> bool {
    let first = design(purpose).looks().first() as usize;
    comparison.arms.get(1).is_some_and(|arm| arm.n >= first)
}

/// Whether the second arm of `comparison` is proven better for `purpose`: a wanted response is better, and nothing else
/// that counts was found worse, however little.
pub fn gains(comparison: &Comparison, purpose: Purpose) -> bool {
    let Some(arm) = comparison.arms.get(1) else { return false };
    let judged = purpose.responses();
    let sought = &judged[..ways_to_win(purpose)];
    let effect = |response: &Response| against(arm, *response);
    let is_worse = |effect: &Effect| effect.judgement.is_worse();
    sought.iter().filter_map(effect).any(|effect| effect.judgement == Judgement::Better)
        && !judged.iter().filter_map(effect).any(is_worse)
}

/// Whether more runs may still show that the second arm of `comparison` is better for `purpose`.
pub fn is_undecided(comparison: &Comparison, purpose: Purpose) -> bool {
    let Some(arm) = comparison.arms.get(1) else { return false };
    let judged = |response| against(arm, response).map(|effect| effect.judgement);
    purpose.responses().iter().copied().take(ways_to_win(purpose)).map(judged).any(|judgement| {
        matches!(judgement, Some(Judgement::Inconclusive | Judgement::BetterPerhapsBelowThreshold))
    })
}

fn against(arm: &ArmResult, response: Response) -> Option<&Effect> {
    let named = arm.responses.iter().find(|result| result.response == response);
    named.and_then(|result| result.against.as_ref())
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use goodput_model::{Known, ResponseResult};

    /// A comparison of two arms in which the responses are judged so.
    pub fn compared(judgements: &[(Response, Judgement)]) -> Comparison {
        let result = |(response, judgement): &(Response, Judgement)| ResponseResult {
            response: *response,
            median: Known::missing("not asked"),
            against: Some(Effect {
                percent: 10.0,
                low_percent: 5.0,
                high_percent: 15.0,
                confidence_percent: 95.0,
                n: 6,
                adjusted_for: Vec::new(),
                judgement: *judgement,
            }),
        };
        let base = ArmResult::new(vec!["a".into()]);
        let responses = judgements.iter().map(result).collect();
        let arms = vec![base.clone(), ArmResult { responses, ..base }];
        let responses = judgements.iter().map(|(response, _)| *response).collect();
        Comparison { responses, ..Comparison::new(vec!["chunk".parse().unwrap()], arms) }
    }

    #[test]
    fn only_what_is_shown_to_do_nothing_is_let_go() {
        use Judgement::{Better, Inconclusive, NoDifference, Worse, WorsePerhapsBelowThreshold};
        let needless = |throughput, cpu, purpose| {
            let judged = [
                (Response::Throughput, throughput),
                (Response::Cpu, cpu),
                (Response::Latency, NoDifference),
            ];
            is_needless(&compared(&judged), purpose)
        };
        assert!(needless(NoDifference, Better, Purpose::Throughput));
        assert!(!needless(Inconclusive, NoDifference, Purpose::Throughput));
        assert!(!needless(NoDifference, Better, Purpose::Balanced));
        assert!(needless(NoDifference, Worse, Purpose::Balanced));
        assert!(
            needless(WorsePerhapsBelowThreshold, Better, Purpose::Throughput),
            "a little worse"
        );
        assert!(needless(NoDifference, WorsePerhapsBelowThreshold, Purpose::Balanced));
        assert!(!is_needless(&compared(&[]), Purpose::Throughput), "nothing was read");
    }

    #[test]
    fn more_runs_may_decide_what_they_have_not_shown_yet() {
        use Judgement::{BetterPerhapsBelowThreshold, Inconclusive, NoDifference, Worse};
        let undecided = |throughput, cpu, purpose| {
            let judged = [(Response::Throughput, throughput), (Response::Cpu, cpu)];
            is_undecided(&compared(&judged), purpose)
        };
        assert!(undecided(Inconclusive, Worse, Purpose::Throughput));
        assert!(undecided(BetterPerhapsBelowThreshold, Worse, Purpose::Throughput));
        assert!(!undecided(NoDifference, Inconclusive, Purpose::Throughput));
        assert!(undecided(NoDifference, Inconclusive, Purpose::Balanced));
        assert!(!is_undecided(&compared(&[]), Purpose::Throughput), "nothing was read");
    }

    #[test]
    fn fewer_blocks_than_the_first_look_needs_show_nothing() {
        let with_blocks = |n| {
            let mut comparison = compared(&[(Response::Throughput, Judgement::Inconclusive)]);
            comparison.arms[1].n = n;
            comparison
        };
        let reached = |n, purpose| reached_first_look(&with_blocks(n), purpose);
        assert!(!reached(5, Purpose::Throughput) && reached(6, Purpose::Throughput));
        assert!(!reached(7, Purpose::Balanced) && reached(8, Purpose::Balanced), "three claims");
    }

    #[test]
    fn only_what_is_sought_counts_and_nothing_else_may_be_lost_for_it() {
        use Judgement::{Better, Inconclusive, NoDifference, Worse, WorsePerhapsBelowThreshold};
        let gains = |throughput, cpu, purpose| {
            let judged = [(Response::Throughput, throughput), (Response::Cpu, cpu)];
            gains(&compared(&judged), purpose)
        };
        assert!(gains(Better, Worse, Purpose::Throughput), "CPU was not asked about");
        assert!(!gains(Inconclusive, Better, Purpose::Throughput));
        assert!(gains(NoDifference, Better, Purpose::Cpu));
        assert!(!gains(Worse, Better, Purpose::Cpu), "less work that moves less");
        assert!(!gains(WorsePerhapsBelowThreshold, Better, Purpose::Cpu));
        assert!(!gains(Better, Worse, Purpose::Balanced));
        assert!(gains(Inconclusive, Better, Purpose::Balanced));
        assert!(!gains(Better, Better, Purpose::Latency), "no round trip was timed");
    }
}
