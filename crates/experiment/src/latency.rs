//! Round trips under load, arm against baseline.

use goodput_model::{
    ArmLatency, Effect, Known, Latency, LoadedTimes, Missing, RoundTrips, Trial, median,
};

use crate::judge::{Criterion, Preference};
use crate::looks::Looks;
use crate::pairs::Runs;
use crate::sequential::{Standing, sequential};

/// Selects one way to time the round trips of a run.
type Read = fn(&Latency) -> &Known<RoundTrips>;

/// The times under load of one arm, and whether they distinguish it from the baseline.
#[derive(Debug, Clone)]
pub(crate) struct Loaded {
    pub(crate) times: ArmLatency,
    /// Whether a planned look has decided at least one of the timings.
    pub(crate) is_decided: bool,
}

/// The times under load of every arm against the baseline, `None` for arms without a probed run. The statistics are
/// those of goodput: paired log-ratios of the runs' medians within blocks, separately for each way to time.
pub(crate) fn arm_latencies(runs: &Runs, looks: Looks, threshold: f64) -> Vec<Option<Loaded>> {
    let ways: [Vec<(LoadedTimes, bool)>; 4] =
        WAYS.map(|read| loaded_times(runs, read, looks, threshold));
    let of_arm = |arm: usize| {
        if !runs.compared(arm).any(|trial| trial.latency.is_some()) {
            return None;
        }
        let [tcp_connect, udp_echo, tcp_rtt, unsent] = ways.each_ref().map(|arms| &arms[arm]);
        let is_decided = ways.iter().any(|arms| arms[arm].1);
        let [tcp_connect, udp_echo, tcp_rtt, unsent] =
            [tcp_connect, udp_echo, tcp_rtt, unsent].map(|(times, _)| times.clone());
        let times = ArmLatency { tcp_connect, udp_echo, tcp_rtt, unsent };
        Some(Loaded { times, is_decided })
    };
    (0..runs.candidates().end).map(of_arm).collect()
}

/// In the order of [`ArmLatency`].
const WAYS: [Read; 4] = [
    |latency| &latency.tcp_connect.loaded,
    |latency| &latency.udp_echo.loaded,
    |latency| &latency.tcp_rtt.loaded,
    |latency| &latency.unsent,
];

/// For every arm by one way to time, with whether it is decided.
fn loaded_times(
    runs: &Runs,
    read: Read,
    looks: Looks,
    threshold_percent: f64,
) -> Vec<(LoadedTimes, bool)> {
    let p50 = |trial: &Trial| positive(&times(trial, read).ok()?);
    let pairs: Vec<_> = runs.candidates().map(|arm| runs.pairs(arm, p50)).collect();
    let criterion = Criterion { threshold_percent, good: Preference::Down };
    let candidates = sequential(&pairs, looks, criterion);
    let all = std::iter::once(Standing::default()).chain(candidates).enumerate();
    all.map(|(arm, standing)| (summary(runs, arm, read, standing.effect), standing.is_decided))
        .collect()
}

fn summary(runs: &Runs, arm: usize, read: Read, against: Option<Effect>) -> LoadedTimes {
    let known: Vec<RoundTrips> =
        runs.compared(arm).filter_map(|trial| times(trial, read).ok()).collect();
    let why = runs.compared(arm).find_map(|trial| times(trial, read).err());
    let middle = |read: fn(&RoundTrips) -> f64| -> Known<f64> {
        let why = || why.clone().unwrap_or_else(not_probed);
        median(known.iter().map(read)).ok_or_else(why).into()
    };
    LoadedTimes {
        p50_us: middle(|trips| trips.p50_us),
        p99_us: middle(|trips| trips.p99_us),
        against,
    }
}

fn times(trial: &Trial, read: Read) -> Result<RoundTrips, Missing> {
    let latency = trial.latency.as_ref();
    latency.map_or_else(|| Err(not_probed()), |latency| read(latency).get().cloned())
}

/// A median that can be part of a ratio.
fn positive(trips: &RoundTrips) -> Option<f64> {
    Some(trips.p50_us).filter(|us| us.is_finite() && *us > 0.0)
}

fn not_probed() -> Missing {
    Missing::because("no counted run measured round trips")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::design::Design;
    use crate::pairs::tests::trial;
    use crate::{Step, TimeLeft, analyse};
    use goodput_model::{IdleAndLoaded, Judgement};

    fn trips(us: f64) -> Known<RoundTrips> {
        let lost = Known::Value(0);
        let (p90_us, p99_us, max_us) = (us, 2.0 * us, 3.0 * us);
        Known::Value(RoundTrips {
            n: 100,
            lost,
            min_us: us,
            p50_us: us,
            p90_us,
            p99_us,
            max_us,
            of_every: None,
        })
    }

    fn probed(block: u32, arm: usize, connect_us: f64) -> Trial {
        let missing = IdleAndLoaded::missing(&Missing::because("no echo"));
        let latency = Latency {
            tcp_connect: IdleAndLoaded { idle: trips(100.0), loaded: trips(connect_us) },
            udp_echo: missing.clone(),
            tcp_rtt: missing,
            unsent: trips(0.0),
            loaded_rpm: Known::missing("not asked"),
            idle_rpm: Known::missing("not asked"),
        };
        Trial { latency: Some(latency), ..trial(block, arm, 1e8) }
    }

    #[test]
    fn a_shorter_queue_is_better_and_what_is_not_known_says_why() {
        let us = |block: u32, arm: usize| [40_000.0, 900.0][arm] + f64::from(block);
        let trials: Vec<_> = (1..=6)
            .flat_map(|block| [0, 1].map(|arm| probed(block, arm, us(block, arm))))
            .collect();
        let arms = analyse(&Design::default(), &trials);
        let base = arms[0].latency.as_ref().unwrap();
        assert_eq!(base.tcp_connect.p50_us, Known::Value(40_003.5));
        assert_eq!(base.tcp_connect.against, None);
        let arm = arms[1].latency.as_ref().unwrap();
        let effect = arm.tcp_connect.against.as_ref().unwrap();
        assert_eq!((effect.judgement, effect.n), (Judgement::Better, 6));
        assert!(effect.percent < -97.0, "{effect:?}");
        assert_eq!(arm.udp_echo.p50_us, Known::missing("no echo"));
        // Zero divided by zero is not a ratio.
        assert_eq!((&arm.unsent.p50_us, &arm.unsent.against), (&Known::Value(0.0), &None));
    }

    #[test]
    fn it_goes_on_until_the_delay_is_reported_as_well() {
        let next = |us: fn(u32, usize) -> f64| {
            let trials: Vec<_> =
                (1..=6).flat_map(|b| [0, 1].map(|arm| probed(b, arm, us(b, arm)))).collect();
            Design::default().next(&trials, TimeLeft { runs: 100 })
        };
        assert!(matches!(next(|_, arm| [900.0, 100.0][arm]), Step::Stop(_)));
        let noise = next(|block, arm| 500.0 + 400.0 * f64::from((block + arm as u32) % 2));
        assert!(matches!(noise, Step::RunBlock { .. }), "{noise:?}");
    }

    #[test]
    fn runs_that_were_not_probed_have_none() {
        let trials = [trial(1, 0, 1.0), trial(1, 1, 1.0)];
        assert!(analyse(&Design::default(), &trials).iter().all(|arm| arm.latency.is_none()));
    }
}
