//! The smallest token bucket with which a shaper gives its rate.
//!
//! A bucket of `B` bytes that fills with the rate `R` lets a frame of `L` bytes pass once it holds as many. If the timer that
//! lets the next frame go is late, tokens go on coming in, and what exceeds `B` is lost (net/sched/sch_tbf.c, `tbf_dequeue`). So a
//! bucket bridges a lateness of `(B - L) / R`. One that is smaller than a super-packet of segmentation offload cuts
//! it up, which costs CPU time (`tbf_segment`). A super-packet passes like one large frame: a bucket of just its size bridges
//! no lateness at all. Measured with 68130 bytes, both: 1.2 % of 1 Gbit/s and 1.3 to 2.5 % of 2 Gbit/s are lost, and at most
//! 0.5 % with what comes in within 8 µs more.

use goodput_model::CeilingLine;

use crate::lines::{Lines, number, rate, time};

/// A super-packet of segmentation offload as a qdisc counts it, bytes, if the device's is unknown: 64 KiB and the headers of
/// its 45 segments (`qdisc_pkt_len_init`, net/core/dev.c).
pub const SUPER_PACKET_BYTES: f64 = 70_000.0;
/// What the bucket brings in this time is enough if the lateness of timers is unknown, seconds: as much as sqm-scripts
/// gives its shapers (`get_burst` in functions.sh).
pub const USUAL_FILL_S: f64 = 0.001;
/// Mean lateness that high-resolution timers hardly exceed, seconds. Measured: 1 to 6 µs.
pub const PLAUSIBLE_LATENESS_S: f64 = 100e-6;
/// Share of the rate that late timers may cost.
pub const MAX_LOST_SHARE: f64 = 0.01;

/// What the size follows from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BucketNeeds {
    /// The shaper's rate, bits per second, above 0.
    pub rate: f64,
    /// The largest frame as the shaper counts it, bytes.
    pub frame: f64,
    /// The largest super-packet as the shaper counts it, bytes; that of one frame, if none is larger.
    pub super_packet: f64,
    /// Lateness that the bucket has to bridge after a frame, seconds, if it is known.
    pub lateness_s: Option<f64>,
    /// The same after a super-packet. It is less: a super-packet takes longer, so that the same share of its time is more.
    pub super_lateness_s: Option<f64>,
}

impl BucketNeeds {
    /// Bytes that are enough for the rate, whatever becomes of super-packets.
    pub fn for_rate(&self) -> f64 {
        match self.lateness_s {
            Some(late) => self.frame + self.rate / 8.0 * late,
            None => self.frame.max(self.rate / 8.0 * USUAL_FILL_S),
        }
    }

    /// Bytes that are enough for the rate and for super-packets.
    pub fn bytes(&self) -> f64 {
        self.for_rate().max(self.for_super_packets())
    }

    fn for_super_packets(&self) -> f64 {
        self.super_packet + self.rate / 8.0 * self.super_lateness_s.unwrap_or(0.0)
    }

    /// The same in whole bytes, with its arithmetic.
    pub fn worked_out(&self) -> (u64, Vec<CeilingLine>) {
        let (mut lines, frame, told) = (Lines::default(), number(self.frame), rate(self.rate));
        let (label, formula) = match self.lateness_s {
            Some(late) => (
                "a frame, and what comes in while a timer is late",
                format!("{frame} + {told} × {} / 8", time(late)),
            ),
            None => (
                "what comes in within 1 ms, and a frame at least",
                format!("the larger of {told} × {} / 8 and {frame}", time(USUAL_FILL_S)),
            ),
        };
        lines.add(label, formula, self.for_rate().ceil(), "bytes");
        if self.super_packet > self.frame {
            let segments = self.super_packet / self.frame;
            let late = self.super_lateness_s.filter(|late| *late > 0.0);
            let late = late.map(|late| format!(" + {told} × {} / 8", time(late)));
            let formula = format!("{} × {frame}{}", number(segments), late.unwrap_or_default());
            let bytes = self.for_super_packets().ceil();
            lines.add("a super-packet of segmentation offload", formula, bytes, "bytes");
        }
        let enough = lines.add("enough", "the larger", self.bytes().ceil(), "bytes");
        (enough as u64, lines.into_vec())
    }
}

/// The largest super-packet of a device as a qdisc counts it, bytes: as many whole segments as fit, each a frame (`tcp_tso_autosize`,
/// net/ipv4/tcp_output.c; `qdisc_pkt_len_init`, net/core/dev.c). One frame, if not even that fits.
pub fn super_packet(max_bytes: f64, max_segments: f64, payload: f64, frame: f64) -> f64 {
    (max_bytes / payload).floor().min(max_segments).max(1.0) * frame
}

/// How late timers are at most, as far as it matters, seconds: a bucket that bridges this loses at most
/// [`MAX_LOST_SHARE`] of its rate. `latenesses` in any order, each of a timer of `interval_s`, one after the other; `cycle_s` is
/// the time of one frame or super-packet at the rate. `None` without latenesses.
///
/// With the lateness `δ` of each timer and the bridged `x`, a frame takes `C + E[max(δ - x, 0)]` instead of its cycle `C`.
/// A timer that is later than its whole interval met a pause of the machine. However often a shaper's timers run,
/// each pause delays only one of them: `δ - x` is then lost of all the time in which timers were watched, not of each cycle.
pub fn lateness_to_bridge(latenesses: &[f64], interval_s: f64, cycle_s: f64) -> Option<f64> {
    let mut late: Vec<f64> = latenesses.to_vec();
    late.sort_by(|a, b| b.total_cmp(a));
    let watched_s: f64 = late.iter().map(|one| interval_s + one).sum();
    let cycles_s = cycle_s * late.len() as f64;
    let (mut lost, mut slope) = (0.0, 0.0);
    for (place, one) in late.iter().enumerate() {
        let of_s = if *one > interval_s { watched_s } else { cycles_s };
        lost += one / of_s;
        slope += 1.0 / of_s;
        // As far as those that exceed it are the ones up to here, `x` loses `lost - slope × x`.
        let bridged = (lost - MAX_LOST_SHARE) / slope;
        if late.get(place + 1).is_none_or(|next| *next <= bridged) {
            return Some(bridged.max(0.0));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(rate: f64, lateness_s: Option<f64>) -> BucketNeeds {
        let super_packet = 45.0 * 1514.0;
        BucketNeeds { rate, frame: 1514.0, super_packet, lateness_s, super_lateness_s: None }
    }

    #[test]
    fn a_super_packet_needs_room_for_late_timers_too() {
        let late = |late| BucketNeeds { super_lateness_s: Some(late), ..needs(1e9, Some(4e-5)) };
        assert_eq!(late(8e-6).bytes(), 69_130.0);
        assert_eq!(late(8e-6).worked_out().1[1].formula, "45 × 1514 + 1 Gbit/s × 8 µs / 8");
        assert_eq!(late(0.0).worked_out().1[1].formula, "45 × 1514");
    }

    /// Measured with tbf at 1 Gbit/s: 1600 bytes give 75 % of the ceiling, 10240 give 99 %.
    #[test]
    fn the_size_follows_from_the_rate_and_the_lateness() {
        assert_eq!(needs(1e9, Some(70e-6)).for_rate(), 1514.0 + 8750.0);
        assert_eq!(needs(1e9, Some(70e-6)).bytes(), 68_130.0);
        assert_eq!(needs(1e9, None).bytes(), 125_000.0);
        assert_eq!(needs(1e7, None).bytes(), 68_130.0);
        let (bytes, lines) = needs(1e10, Some(1e-4)).worked_out();
        assert_eq!(bytes, 126_514);
        let shown: Vec<_> = lines.iter().map(|line| line.formula.as_str()).collect();
        assert_eq!(shown, ["1514 + 10 Gbit/s × 100 µs / 8", "45 × 1514", "the larger"]);
    }

    #[test]
    fn a_super_packet_has_whole_segments() {
        assert_eq!(super_packet(65_536.0, 65_535.0, 1448.0, 1514.0), 45.0 * 1514.0);
        assert_eq!(super_packet(65_536.0, 1.0, 1448.0, 1514.0), 1514.0);
        assert_eq!(super_packet(100.0, 8.0, 1448.0, 1514.0), 1514.0);
    }

    #[test]
    fn what_is_bridged_leaves_the_allowed_excess() {
        let late: Vec<f64> = (0..1000).map(|n| f64::from(n) * 1e-7).collect();
        let cycle = 121e-6;
        let interval = 100e-6;
        let bridged = lateness_to_bridge(&late, interval, cycle).unwrap();
        let excess: f64 = late.iter().map(|one| (one - bridged).max(0.0)).sum();
        assert!((excess / 1000.0 - MAX_LOST_SHARE * cycle).abs() < 1e-12, "{bridged} {excess}");
        assert_eq!(lateness_to_bridge(&[1e-9, 2e-9], interval, cycle), Some(0.0));
        assert_eq!(lateness_to_bridge(&[], interval, cycle), None);
        let one = lateness_to_bridge(&[9e-5], interval, cycle).unwrap();
        assert!((one - (9e-5 - 1.21e-6)).abs() < 1e-12, "{one}");
    }

    /// A pause of 3 ms in half a second costs 0.6 % at any rate, and one of 8 ms costs 1 % if 3 ms are bridged.
    #[test]
    fn a_pause_counts_once_however_fast_the_shaper_is() {
        let watched = |pause: f64| {
            let usual = (0.5 - 100e-6 - pause) / 105e-6;
            let mut late = vec![5e-6; usual as usize];
            late.push(pause);
            late
        };
        for cycle in [6e-6, 12e-6, 121e-6] {
            let bridged = |pause| lateness_to_bridge(&watched(pause), 100e-6, cycle).unwrap();
            assert!(bridged(3e-3) <= 5e-6, "{}", bridged(3e-3));
            assert!((bridged(8e-3) - 3e-3).abs() < 1e-5, "{}", bridged(8e-3));
        }
    }
}
