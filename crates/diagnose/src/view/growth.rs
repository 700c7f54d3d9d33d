//! Whether the round trip grows with the window: if so, the added data waits in a queue, and the queue's
//! service rate is the limit.

use goodput_model::{FlowSample, Missing};

use super::{Side, View, positive};

/// Correlation of the round-trip time with the window above which the window lengthens the round trip.
/// Measured: 0.98 to 1.00 at a queue that is never empty, -0.6 to 0.5 at loss by chance.
const MIN_RTT_WINDOW_CORRELATION: f64 = 0.9;
/// Service rate of the queue, derived from how fast the round trip grows, over the goodput. The smoothed
/// round-trip time lags behind a window that grows: 1.1 as measured.
const QUEUE_RATE_AGREES_RATIOS: std::ops::Range<f64> = 0.8..1.3;
/// Fewer samples prove nothing.
const MIN_SAMPLES: usize = 8;

impl View<'_> {
    /// Whether each segment added to the congestion window waits in a queue that is served at the
    /// goodput, so that a larger window gives no more.
    pub fn window_fills_a_queue(&self) -> Result<bool, Missing> {
        let (slope, correlation) = self.sender.round_trip_by_window()?;
        let served = 8.0 / positive(slope, "the growth of the round trip")?;
        Ok(correlation >= MIN_RTT_WINDOW_CORRELATION
            && QUEUE_RATE_AGREES_RATIOS.contains(&(served / self.goodput()?)))
    }
}

impl Side<'_> {
    /// Seconds of round trip per byte of window, all flows together, from the least-squares line
    /// through the samples; and the correlation of the two.
    fn round_trip_by_window(&self) -> Result<(f64, f64), Missing> {
        let point = |flow: &FlowSample| {
            let tcp = flow.tcp.get()?;
            let window = tcp.snd_cwnd_segments()?.saturating_mul(tcp.snd_mss_bytes()?);
            Ok((window as f64, tcp.rtt_us()? as f64 / 1e6))
        };
        let points = self.each()?.map(point).collect::<Result<Vec<_>, Missing>>()?;
        if points.len() < MIN_SAMPLES || self.flow_count()? > 1.0 {
            return Err(Missing::because("one flow and at least 8 samples are needed"));
        }
        let count = points.len() as f64;
        let (x, y) = points.iter().fold((0.0, 0.0), |sum, p| (sum.0 + p.0, sum.1 + p.1));
        let (x, y) = (x / count, y / count);
        let sum =
            |of: fn(f64, f64) -> f64| points.iter().map(|p| of(p.0 - x, p.1 - y)).sum::<f64>();
        let (xx, xy, yy) = (sum(|a, _| a * a), sum(|a, b| a * b), sum(|_, b| b * b));
        let both = positive((xx * yy).sqrt(), "the variation of window and round trip")?;
        Ok((xy / xx, xy / both))
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::Case;
    use crate::view::View;

    #[test]
    fn a_round_trip_that_grows_with_the_window_shows_a_queue() {
        // 100 Mbit/s at 10 ms with 60 kB of queue, as measured: 86 to 124 segments in 10.4 to 14.3 ms.
        let case = |each_us: u64| {
            Case::path_rate().tcp(move |tcp, number| {
                tcp.snd_cwnd_segments = Some(86 + number % 38);
                tcp.rtt_us = Some(10_400 + (number % 38) * each_us + number % 3);
            })
        };
        let fills = |each| View::new(&case(each).evidence()).window_fills_a_queue();
        assert_eq!(fills(110), Ok(true));
        assert_eq!(fills(1), Ok(false));
    }
}
