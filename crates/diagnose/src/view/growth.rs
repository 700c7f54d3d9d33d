//! Whether the round trip grows with the window: if so, the added data waits in a queue, and the queue's
//! service rate is the limit.

use goodput_model::{FlowSample, Missing, Sample};

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

impl<'a> Side<'a> {
    /// Seconds of round trip per byte of window, all flows together, from the least-squares line
    /// through the samples; and the correlation of the two. A queue that flows share delays each of them.
    fn round_trip_by_window(&self) -> Result<(f64, f64), Missing> {
        let flows = self.flow_count()?;
        let point = |of: Vec<&FlowSample>| -> Result<(f64, f64), Missing> {
            let (mut window, mut rtt_us) = (0.0, 0.0);
            for flow in &of {
                let tcp = flow.tcp.get()?;
                window += tcp.snd_cwnd_segments()?.saturating_mul(tcp.snd_mss_bytes()?) as f64;
                rtt_us += tcp.rtt_us()? as f64;
            }
            Ok((window, rtt_us / of.len() as f64 / 1e6))
        };
        let mine = |sample: &'a Sample| -> Vec<&'a FlowSample> {
            sample.flows.iter().filter(|flow| flow.role == self.role).collect()
        };
        let whole = self.samples()?.map(mine).filter(|of| of.len() as f64 == flows);
        let points = whole.map(point).collect::<Result<Vec<_>, Missing>>()?;
        if points.len() < MIN_SAMPLES {
            return Err(Missing::because("at least 8 samples of all flows are needed"));
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
    use std::sync::Arc;

    use goodput_model::{FlowSample, Known};

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

    /// As much is in flight of four flows together.
    #[test]
    fn the_windows_of_several_flows_fill_a_queue_together() {
        let fills = |all_us: u64| {
            let case = Case::path_rate().tcp(move |tcp, number| {
                tcp.snd_cwnd_segments = Some(20 + number % 38 / 2);
                tcp.rtt_us = Some(10_400 + (number % 38) / 2 * 4 * all_us + number % 3);
            });
            let mut evidence = case.evidence();
            let Known::Value(near) = &mut evidence.near else { panic!("the case has both ends") };
            for sample in &mut Arc::make_mut(near).samples {
                let Some(one) = sample.flows.pop() else { continue };
                sample.flows = (0..4).map(|flow| FlowSample { flow, ..one.clone() }).collect();
            }
            View::new(&evidence).window_fills_a_queue()
        };
        assert_eq!(fills(110), Ok(true));
        assert_eq!(fills(1), Ok(false));
    }
}
