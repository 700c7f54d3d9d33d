//! Round trips under load, arm against baseline.

use goodput_model::{
    ArmLatency, Effect, Judgement, Known, Latency, LoadedTimes, Missing, RoundTrips, median,
};

use crate::judge::{Preference, effect};
use crate::pairs::Block;

/// The times of one run by one way to time them.
type Read = fn(&Latency) -> &Known<RoundTrips>;

/// The times under load of `arm` in `blocks`, against the baseline if it is not that itself; `None`
/// where no run was probed. The statistics are those of goodput: paired log-ratios of the runs' medians
/// within blocks, at the `level` of the look, for each way to time on its own.
pub(crate) fn arm_latency(
    blocks: &[Block],
    arm: usize,
    level: f64,
    threshold_percent: f64,
) -> Option<ArmLatency> {
    if !blocks.iter().any(|block| block[arm].latency.is_some()) {
        return None;
    }
    let times = |read| loaded_times(blocks, arm, read, level, threshold_percent);
    Some(ArmLatency {
        tcp_connect: times(|latency| &latency.tcp_connect.loaded),
        udp_echo: times(|latency| &latency.udp_echo.loaded),
        tcp_rtt: times(|latency| &latency.tcp_rtt.loaded),
        unsent: times(|latency| &latency.unsent),
    })
}

/// Whether one of the timings has distinguished an arm from the baseline, or shown that there is no
/// difference.
pub(crate) fn is_decided(latency: &ArmLatency) -> bool {
    let judged = |effect: &Effect| effect.judgement != Judgement::Inconclusive;
    latency.ways().iter().any(|(_, times)| times.against.as_ref().is_some_and(judged))
}

fn loaded_times(
    blocks: &[Block],
    arm: usize,
    read: Read,
    level: f64,
    threshold_percent: f64,
) -> LoadedTimes {
    let times = |arm: usize| {
        move |block: &Block| -> Result<RoundTrips, Missing> {
            let latency = block[arm].latency.as_ref();
            latency.map_or_else(|| Err(not_probed()), |latency| read(latency).get().cloned())
        }
    };
    let known: Vec<RoundTrips> = blocks.iter().filter_map(|b| times(arm)(b).ok()).collect();
    let why = blocks.iter().find_map(|block| times(arm)(block).err()).unwrap_or_else(not_probed);
    let middle = |read: fn(&RoundTrips) -> f64| -> Known<f64> {
        median(known.iter().map(read)).ok_or_else(|| why.clone()).into()
    };
    let p50 = |arm: usize| move |block: &Block| positive(&times(arm)(block).ok()?);
    let ratio = |block: &Block| Some(p50(arm)(block)?.ln() - p50(0)(block)?.ln());
    let ratios: Vec<f64> = blocks.iter().filter_map(ratio).collect();
    LoadedTimes {
        p50_us: middle(|trips| trips.p50_us),
        p99_us: middle(|trips| trips.p99_us),
        against: (arm > 0)
            .then(|| effect(&ratios, level, threshold_percent, Preference::Down))
            .flatten(),
    }
}

/// A median that a ratio can be made of.
fn positive(trips: &RoundTrips) -> Option<f64> {
    Some(trips.p50_us).filter(|us| us.is_finite() && *us > 0.0)
}

fn not_probed() -> Missing {
    Missing::because("no counted run was probed")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::design::Design;
    use crate::pairs::tests::trial;
    use crate::{Step, TimeLeft, analyse};
    use goodput_model::{IdleAndLoaded, Trial};

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
        // Nothing over nothing is no ratio.
        assert_eq!((&arm.unsent.p50_us, &arm.unsent.against), (&Known::Value(0.0), &None));
    }

    #[test]
    fn it_goes_on_until_the_delay_is_told_as_well() {
        let next = |us: fn(u32, usize) -> f64| {
            let trials: Vec<_> =
                (1..=6).flat_map(|b| [0, 1].map(|arm| probed(b, arm, us(b, arm)))).collect();
            Design::default().next(&trials, TimeLeft { blocks: 100 })
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
