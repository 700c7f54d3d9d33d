//! Drops at the times of CoDel.
//!
//! Once the wait was above its target for a whole interval, CoDel drops one packet, and the next ones after the interval
//! divided by the square root of how many it dropped (RFC 8289, section 5.4). So the drops come ever more often, at times
//! that nothing else has. Linux's fq_codel begins with the whole interval, cake with its part for two; both then follow
//! the same law.

use crate::trace::Trace;

/// Smallest number of drops that shows the law: losses at random times fit fewer of them now and then.
const MIN_DROPS: usize = 10;
/// Largest difference of a drop's time from the law, as a share of the time from the first to the last. The kernel's
/// approximation of the square root and cake's other beginning make up to half of it.
const MAX_OFF: f64 = 0.08;
/// The first drop comes after an interval above the target. This is how far that time may be off, as shares of the interval:
/// when the queue came to the target is not known exactly.
const MIN_FIRST: f64 = 0.5;
const MAX_FIRST: f64 = 2.0;

/// The interval of CoDel, seconds, if all losses come at its times. `least_wait_s` is the shortest wait that shows a queue.
pub(crate) fn interval_s(trace: &Trace, least_wait_s: f64) -> Option<f64> {
    let times = times_of_drops(trace)?;
    let [first, .., last] = times[..] else { return None };
    let law: Vec<f64> = law().take(times.len()).collect();
    let whole = *law.last()?;
    let interval_s = (last - first) / whole;
    let off = |(time, due): (&f64, &f64)| ((time - first) / (last - first) - due / whole).abs();
    let fits = times.iter().zip(&law).all(|both| off(both) <= MAX_OFF);
    let waited = trace.came.iter().find(|came| came.wait_s >= least_wait_s)?;
    let before_first = (first - waited.came_s) / interval_s;
    let is_codel =
        times.len() >= MIN_DROPS && fits && (MIN_FIRST..=MAX_FIRST).contains(&before_first);
    is_codel.then_some(interval_s)
}

/// When each lost datagram was dropped, if that was at the head of the queue: right before the next one came. Seconds.
/// `None` if more were lost than came: CoDel drops far fewer.
fn times_of_drops(trace: &Trace) -> Option<Vec<f64>> {
    let mut times = Vec::new();
    for came in &trace.came {
        let lost = usize::try_from(came.lost_before).ok()?;
        if lost > trace.came.len() - times.len() {
            return None;
        }
        times.extend(std::iter::repeat_n(came.came_s, lost));
    }
    Some(times)
}

/// Times since the first drop, in intervals.
fn law() -> impl Iterator<Item = f64> {
    let steps = (1u32..).map(|count| 1.0 / f64::from(count).sqrt());
    std::iter::once(0.0).chain(steps.scan(0.0, |at, step| {
        *at += step;
        Some(*at)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Came;

    /// A standing queue from the beginning, 1000 arrivals a second, with drops at these times.
    fn standing(drops: &[f64]) -> Trace {
        let came = |n: u32| {
            let came_s = f64::from(n) / 1e3;
            let since = came_s - 1e-3;
            let lost_before =
                drops.iter().filter(|at| (since..came_s).contains(*at)).count() as u64;
            Came { sent_s: came_s - 0.02, came_s, wait_s: 0.02, lost_before }
        };
        Trace { came: (0..2000).map(came).collect(), frame: 1514.0 }
    }

    #[test]
    fn drops_at_the_times_of_the_law_have_its_interval() {
        for interval in [0.1, 0.03] {
            let drops: Vec<f64> = law().take(30).map(|at| interval * (1.0 + at)).collect();
            let seen = interval_s(&standing(&drops), 1e-3).unwrap();
            assert!((seen / interval - 1.0).abs() < 0.05, "{seen} {interval}");
        }
    }

    #[test]
    fn even_drops_a_late_beginning_and_few_drops_are_none() {
        let even: Vec<f64> = (1..20).map(|n| f64::from(n) * 0.1).collect();
        let late: Vec<f64> = law().take(30).map(|at| 0.5 + 0.1 * at).collect();
        let few: Vec<f64> = law().take(MIN_DROPS - 1).map(|at| 0.1 * (1.0 + at)).collect();
        for drops in [&even[..], &late, &few, &[]] {
            assert_eq!(interval_s(&standing(drops), 1e-3), None, "{drops:?}");
        }
    }
}
