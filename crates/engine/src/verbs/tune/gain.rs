//! Whether an arm is better than the baseline, for what tuning is to gain.

use goodput_model::{ArmResult, Comparison, Effect, Judgement, Purpose};

/// Whether the second arm of `comparison` is proven better for `purpose`.
pub fn gains(comparison: &Comparison, purpose: Purpose) -> bool {
    let Some(arm) = comparison.arms.get(1) else { return false };
    let judged = |effects: Vec<&Effect>, judgement| {
        effects.into_iter().any(|effect| effect.judgement == judgement)
    };
    judged(sought(arm, purpose), Judgement::Better)
        && !judged(kept_whole(arm, purpose), Judgement::Worse)
}

/// What is to get better.
fn sought(arm: &ArmResult, purpose: Purpose) -> Vec<&Effect> {
    match purpose {
        Purpose::Throughput => goodput(arm),
        Purpose::Latency => delays(arm),
        Purpose::Cpu => cpu(arm),
        Purpose::Balanced => [goodput(arm), cpu(arm), delays(arm)].concat(),
    }
}

/// What must not get worse for it.
fn kept_whole(arm: &ArmResult, purpose: Purpose) -> Vec<&Effect> {
    match purpose {
        Purpose::Throughput => Vec::new(),
        Purpose::Cpu => goodput(arm),
        Purpose::Latency => [goodput(arm), delays(arm)].concat(),
        Purpose::Balanced => [goodput(arm), cpu(arm), delays(arm)].concat(),
    }
}

fn goodput(arm: &ArmResult) -> Vec<&Effect> {
    arm.goodput.iter().collect()
}

fn cpu(arm: &ArmResult) -> Vec<&Effect> {
    arm.cpu.iter().collect()
}

fn delays(arm: &ArmResult) -> Vec<&Effect> {
    let ways = arm.latency.iter().flat_map(|latency| latency.ways());
    ways.filter_map(|(_, times)| times.against.as_ref()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effect(judgement: Judgement) -> Option<Effect> {
        let (percent, low_percent, high_percent) = (10.0, 5.0, 15.0);
        let confidence_percent = 95.0;
        Some(Effect {
            percent,
            low_percent,
            high_percent,
            confidence_percent,
            n: 6,
            adjusted_for: Vec::new(),
            judgement,
        })
    }

    fn compared(goodput: Judgement, cpu: Judgement) -> Comparison {
        let base = ArmResult { n: 6, ..ArmResult::new(vec!["a".into()]) };
        let arm = ArmResult { goodput: effect(goodput), cpu: effect(cpu), ..base.clone() };
        Comparison {
            settings: vec!["chunk".parse().unwrap()],
            arms: vec![base, arm],
            responses: Vec::new(),
            curve: None,
            factors: Vec::new(),
            trials: Vec::new(),
            threshold_percent: 3.0,
            stopped: String::new(),
        }
    }

    #[test]
    fn only_what_is_sought_counts_and_nothing_else_may_be_lost_for_it() {
        use Judgement::{Better, Inconclusive, NoDifference, Worse};
        let gains = |goodput, cpu, purpose| gains(&compared(goodput, cpu), purpose);
        assert!(gains(Better, Worse, Purpose::Throughput), "CPU was not asked about");
        assert!(!gains(Inconclusive, Better, Purpose::Throughput));
        assert!(gains(NoDifference, Better, Purpose::Cpu));
        assert!(!gains(Worse, Better, Purpose::Cpu), "less work that moves less");
        assert!(!gains(Better, Worse, Purpose::Balanced));
        assert!(gains(Inconclusive, Better, Purpose::Balanced));
        assert!(!gains(Better, Better, Purpose::Latency), "no round trip was timed");
    }
}
