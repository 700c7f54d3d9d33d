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
/// What a queue should hold beyond one round trip, seconds of its rate: what keeps the device busy while TCP sends its next
/// burst.
const SPARE_S: f64 = 0.01;
/// Mean lateness that high-resolution timers hardly exceed, seconds. Measured: 1 to 6 µs.
pub const PLAUSIBLE_LATENESS_S: f64 = 100e-6;

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
        let (mut lines, frame, rate_text) = (Lines::default(), number(self.frame), rate(self.rate));
        let (label, formula) = match self.lateness_s {
            Some(late) => (
                "a frame, and what comes in while a timer is late",
                format!("{frame} + {rate_text} × {} / 8", time(late)),
            ),
            None => (
                "what comes in within 1 ms, and a frame at least",
                format!("the larger of {rate_text} × {} / 8 and {frame}", time(USUAL_FILL_S)),
            ),
        };
        lines.add(label, formula, self.for_rate().ceil(), "bytes");
        if self.super_packet > self.frame {
            let segments = self.super_packet / self.frame;
            let late = self.super_lateness_s.filter(|late| *late > 0.0);
            let late = late.map(|late| format!(" + {rate_text} × {} / 8", time(late)));
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

/// Bytes that the queue of a shaper should hold: a round trip and 10 ms of its rate, at least two super-packets. `rate` in bits
/// per second, `round_trip_s` the smallest round trip, in seconds.
pub fn queue_bytes(rate: f64, round_trip_s: f64) -> f64 {
    (rate / 8.0 * (round_trip_s + SPARE_S)).max(2.0 * SUPER_PACKET_BYTES)
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
    fn a_queue_holds_a_round_trip_and_a_burst() {
        assert_eq!(queue_bytes(1e8, 0.02), 375_000.0);
        assert_eq!(queue_bytes(1e6, 0.02), 140_000.0);
    }

    #[test]
    fn a_super_packet_has_whole_segments() {
        assert_eq!(super_packet(65_536.0, 65_535.0, 1448.0, 1514.0), 45.0 * 1514.0);
        assert_eq!(super_packet(65_536.0, 1.0, 1448.0, 1514.0), 1514.0);
        assert_eq!(super_packet(100.0, 8.0, 1448.0, 1514.0), 1514.0);
    }
}
