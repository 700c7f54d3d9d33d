//! TCP that was measured for too short a time to be judged by itself: the datagrams then decide.

use goodput_model::{BitRate, Estimate, Shaping};

use crate::configured::Configured;
use crate::counted::TcpRate;

/// Segments that TCP sends, or lacks, at once: an initial window (RFC 6928).
const WINDOW_SEGMENTS: f64 = 10.0;
/// Share of the tolerance that one such window may be of a mean, unless the path is slow.
const MAX_WINDOW_SHARE: f64 = 0.5;

/// By how much the mean rate of TCP may differ from a shaper's rate without saying anything of the shaper, bits per second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Brief {
    /// In both directions: a window of TCP, and the queue, which it overruns and has to fill again. That matters on a slow path
    /// only, where few segments pass in the few seconds that a test may take.
    lump: f64,
    /// What the bucket may have saved up before.
    saved_up: f64,
}

impl Brief {
    /// What the time in which `tcp` was measured makes of its mean.
    pub(crate) fn of(configured: &Configured, tcp: &TcpRate, train: Option<&Shaping>) -> Self {
        let Some(window_s) = tcp.window_s.filter(|window_s| *window_s > 0.0) else {
            return Self::default();
        };
        let in_window = |bytes: f64| bytes.max(0.0) * 8.0 / window_s;
        let window = in_window(WINDOW_SEGMENTS * tcp.packet);
        let tolerated = configured.rate.0 * configured.tolerance_percent / 100.0;
        let is_slow = window > MAX_WINDOW_SHARE * tolerated;
        let queue = train.and_then(|train| train.queue.value());
        let queued = queue.map_or(0.0, |queue| in_window(queue.bytes.0 as f64));
        let bucket = train.and_then(|train| train.bucket_bytes.value());
        Self {
            lump: if is_slow { window + queued } else { 0.0 },
            saved_up: bucket.map_or(0.0, |bucket| in_window(bucket.high)),
        }
    }

    /// Why a rate of TCP beyond the tolerance decides nothing, if the time explains it. `rate` is in what the shaper counts, and too
    /// inexactly known to decide by itself.
    pub(crate) fn explains(&self, configured: &Configured, rate: &Estimate) -> Option<String> {
        let beyond = rate.value - configured.rate.0;
        let tolerated = configured.rate.0 * configured.tolerance_percent / 100.0;
        let is_lump = beyond.abs() <= tolerated + self.lump;
        if self.lump > 0.0 && is_lump {
            return Some("too few segments came in this time to judge TCP".into());
        }
        let is_saved = beyond > 0.0 && beyond <= tolerated + self.lump + self.saved_up;
        let saved_up = BitRate(self.saved_up);
        is_saved.then(|| format!("of which up to {saved_up} may have been saved up in the bucket"))
    }
}

#[cfg(test)]
mod tests {
    use goodput_model::{
        Bytes, Confirmation, Known, Missing, ShapingKind, ShapingQueue, ShapingTest,
    };

    use super::*;
    use crate::judge::judge;
    use crate::judge::tests::train;
    use crate::others::OtherTraffic;

    /// A shaper that gives datagrams its rate, and TCP of so many seconds in a test of it.
    fn judged(shaped: Shaping, rate: f64, of_frames: [f64; 3], window_s: f64) -> ShapingTest {
        let configured = Configured {
            rate: BitRate(rate),
            tolerance_percent: 2.0,
            max_burst: None,
            counts: None,
        };
        let [low, value, high] = of_frames.map(|bits| bits * 1448.0 / 1514.0);
        let goodput = Estimate { value, low, high };
        let window_s = Some(window_s);
        let tcp = TcpRate { goodput, payload: 1448.0, packet: 1500.0, window_s };
        judge(configured, Ok(shaped), Ok(tcp), &OtherTraffic::default())
    }

    fn queued(rate: f64, bytes: u64) -> Shaping {
        let queue = ShapingQueue {
            longest_wait_s: bytes as f64 * 8.0 / rate,
            bytes: Bytes(bytes),
            discipline: Known::missing("not asked"),
            between_flows: Known::missing("not asked"),
        };
        Shaping { queue: Known::Value(queue), ..train(rate) }
    }

    /// As measured behind tbf: 1 Mbit/s with 50 ms of queue, and 2.5 Mbit/s with 400 ms, which TCP overran.
    #[test]
    fn a_shaper_that_is_too_slow_for_a_short_tcp_is_judged_by_datagrams() {
        let slow = judged(queued(1e6, 21_200), 1e6, [893.8e3, 975.9e3, 1.02e6], 1.2);
        assert_eq!(slow.confirmation, Confirmation::Confirmed, "{:?}", slow.reasons);
        assert!(slow.reasons[1].contains("-2.4 %: too few segments"), "{:?}", slow.reasons);
        let deep = judged(queued(2.5e6, 125_000), 2.5e6, [1.49e6, 2.17e6, 2.84e6], 2.0);
        assert_eq!(deep.confirmation, Confirmation::Confirmed, "{:?}", deep.reasons);
    }

    #[test]
    fn a_slow_shaper_is_not_excused_by_more_than_its_queue_and_a_window() {
        let short = judged(queued(1.5e6, 5600), 1.5e6, [1.11e6, 1.21e6, 1.29e6], 2.0);
        assert_eq!(short.confirmation, Confirmation::Missed, "{:?}", short.reasons);
        let far_off = judged(queued(1e6, 9000), 1e6, [0.5e6, 0.8e6, 1.1e6], 2.0);
        assert_eq!(far_off.confirmation, Confirmation::Inconclusive, "{:?}", far_off.reasons);
        let mut unknown = queued(1e6, 21_200);
        unknown.rate_bits_per_s = Known::Missing(Missing::because("too little came"));
        let unknown = judged(unknown, 1e6, [893.8e3, 975.9e3, 1.02e6], 1.2);
        assert_eq!(unknown.confirmation, Confirmation::Inconclusive, "{:?}", unknown.reasons);
    }

    /// 77 or 96 of 100 Mbit/s: hundreds of segments pass in a tenth of a second.
    #[test]
    fn on_a_fast_path_tcp_has_to_show_the_rate() {
        let fast = judged(queued(1e8, 625_000), 1e8, [94e6, 96e6, 98.5e6], 2.0);
        assert_eq!(fast.confirmation, Confirmation::Inconclusive, "{:?}", fast.reasons);
    }

    /// A limit of nftables of 10 Mbit/s holds a second of it, as measured: TCP got 10.4 Mbit/s in 2.3 s.
    #[test]
    fn what_a_policer_had_saved_up_does_not_leave_the_answer_open() {
        let policed = |depth: f64| Shaping {
            kind: ShapingKind::Policer,
            bucket_bytes: Known::Value(Estimate { value: depth, low: depth, high: depth }),
            queue: Known::missing("datagrams did not wait"),
            ..train(10e6)
        };
        let of = |depth| judged(policed(depth), 10e6, [9.7e6, 10.4e6, 11.2e6], 2.3);
        let deep = of(1.32e6);
        assert_eq!(deep.confirmation, Confirmation::Confirmed, "{:?}", deep.reasons);
        assert!(deep.reasons[1].contains("saved up in the bucket"), "{:?}", deep.reasons);
        assert_eq!(of(15e3).confirmation, Confirmation::Inconclusive);
        let short = judged(policed(1.32e6), 10e6, [8e6, 9e6, 10e6], 2.3);
        assert_eq!(short.confirmation, Confirmation::Inconclusive, "{:?}", short.reasons);
    }
}
