//! What late timers cost the rate of a token bucket.
//!
//! A queueing discipline that lacks tokens for its next packet sleeps exactly as long as the missing ones take
//! (`qdisc_watchdog_schedule_ns` in `tbf_dequeue`, net/sched/sch_tbf.c, and in `htb_dequeue`, net/sched/sch_htb.c). That is the
//! time `C` of a packet at the rate, however large the bucket is, less what a late timer left over. A timer that is late by `δ` finds
//! tokens of `C + min(δ, x)` if the bucket bridges `x`; the rest is lost. It sends `1 + min(δ, x) / C` packets, in whole ones, and
//! what remains shortens the next sleep.
//!
//! How late a timer is depends on how long it ran: a CPU sleeps more deeply the longer nothing is due, and so does the
//! host of a virtual one. So latenesses here are those of timers that ran for `C`.

/// Share of the rate that late timers may cost.
pub const MAX_LOST_SHARE: f64 = 0.01;
/// How exactly the lateness to bridge is sought, seconds.
const STEP_S: f64 = 1e-9;

/// Share of its rate that a bucket loses which bridges `bridged_s`. `latenesses`, in any order, are those of timers that ran one
/// after the other, each for about `cycle_s`, the time of one packet at the rate. `None` without latenesses. All in seconds.
pub fn lost_share(latenesses: &[f64], cycle_s: f64, bridged_s: f64) -> Option<f64> {
    let (mut lost_s, mut sent_s) = (0.0, 0.0);
    for late in latenesses {
        let kept = late.min(bridged_s);
        lost_s += late - kept;
        sent_s += cycle_s * (1.0 + (kept / cycle_s).floor());
    }
    (!latenesses.is_empty()).then(|| lost_s / (lost_s + sent_s))
}

/// The least lateness, seconds, that a bucket has to bridge to lose at most [`MAX_LOST_SHARE`] of its rate. What it takes is
/// what [`lost_share`] takes. `None` without latenesses.
pub fn lateness_to_bridge(latenesses: &[f64], cycle_s: f64) -> Option<f64> {
    let is_enough =
        |bridged| lost_share(latenesses, cycle_s, bridged).map(|lost| lost <= MAX_LOST_SHARE);
    if is_enough(0.0)? {
        return Some(0.0);
    }
    // The more it bridges, the less it loses: nothing, if it bridges the latest.
    let (mut too_little, mut enough) = (0.0, latenesses.iter().copied().fold(0.0, f64::max));
    while enough - too_little > STEP_S {
        let middle = f64::midpoint(too_little, enough);
        if is_enough(middle)? { enough = middle } else { too_little = middle }
    }
    Some(enough)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `tbf_dequeue` with a queue that is never empty, in seconds of tokens: the share of the rate that it does not give.
    fn simulated(latenesses: &[f64], cycle_s: f64, bridged_s: f64) -> f64 {
        let (mut now, mut sent, mut tokens) = (0.0, 0.0, 0.0);
        for late in latenesses {
            let slept = cycle_s - tokens + late;
            now += slept;
            tokens = f64::min(tokens + slept, cycle_s + bridged_s);
            while tokens >= cycle_s {
                tokens -= cycle_s;
                sent += cycle_s;
            }
        }
        // What is left over is not lost.
        1.0 - (sent + tokens) / now
    }

    /// Latenesses from 0 to `most`, in no order.
    fn spread(most: f64) -> Vec<f64> {
        (0..997u32).map(|n| most * f64::from(n * 389 % 997) / 997.0).collect()
    }

    #[test]
    fn what_is_lost_is_what_a_token_bucket_loses() {
        for (most, cycle, bridged) in
            [(5e-6, 12.1e-6, 0.0), (3e-5, 12.1e-6, 2e-5), (3e-5, 545e-6, 0.0), (2e-3, 3e-6, 1e-3)]
        {
            let late = spread(most);
            let lost = lost_share(&late, cycle, bridged).unwrap();
            let truth = simulated(&late, cycle, bridged);
            // The simulation ends with less than one packet's tokens.
            assert!((lost - truth).abs() < 2.0 / late.len() as f64 * lost, "{lost} {truth}");
            assert!(lost > 0.0);
        }
    }

    #[test]
    fn what_is_bridged_leaves_the_allowed_loss_and_no_more() {
        let late = spread(1e-4);
        for cycle in [3e-6, 12.1e-6, 121e-6, 545e-6] {
            let bridged = lateness_to_bridge(&late, cycle).unwrap();
            let lost = |bridged| lost_share(&late, cycle, bridged).unwrap();
            assert!(lost(bridged) <= MAX_LOST_SHARE, "{cycle} {bridged}");
            assert!(lost(bridged - 2.0 * STEP_S) > MAX_LOST_SHARE, "{cycle} {bridged}");
        }
        assert_eq!(lateness_to_bridge(&[1e-9, 2e-9], 121e-6), Some(0.0));
        assert_eq!(lateness_to_bridge(&[], 121e-6), None);
    }

    /// Measured at 1 Gbit/s: timers of 545 µs that are 27 µs late cost a bucket of just a super-packet 3.7 to 4.7 %.
    #[test]
    fn late_timers_cost_a_super_packet_its_share() {
        let late = [27e-6; 100];
        let lost = lost_share(&late, 545e-6, 0.0).unwrap();
        assert!((lost - 27.0 / 572.0).abs() < 1e-9, "{lost}");
        let bridged = lateness_to_bridge(&late, 545e-6).unwrap();
        assert!((21e-6..22e-6).contains(&bridged), "{bridged}");
    }

    /// A pause of 3 ms in half a second costs 0.6 % at any rate, and one of 8 ms costs 1 % if 3 ms are bridged.
    #[test]
    fn a_pause_counts_once_however_fast_the_shaper_is() {
        for cycle in [6e-6, 12e-6, 121e-6] {
            let watched = |pause: f64| {
                let mut late = vec![0.0; ((0.5 - pause) / cycle) as usize];
                late.push(pause);
                lateness_to_bridge(&late, cycle).unwrap()
            };
            assert_eq!(watched(3e-3), 0.0);
            assert!((watched(8e-3) - 3e-3).abs() < cycle, "{}", watched(8e-3));
        }
    }
}
