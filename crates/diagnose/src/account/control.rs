//! What a congestion control that models the path was doing: looking for its rate, or keeping it.

use goodput_model::TcpInfo;

use super::interval::Control;

/// BBR's pipe is full once the rate grew by less than this for [`FULL_AFTER_ROUND_TRIPS`] round trips (net/ipv4/tcp_bbr.c,
/// `bbr_full_bw_thresh`, `bbr_full_bw_cnt`).
const GROWTH_RATIO: f64 = 1.25;
const FULL_AFTER_ROUND_TRIPS: f64 = 3.0;

/// Follows one flow from its start.
#[derive(Debug, Default)]
pub struct FullPipe {
    rate: f64,
    rounds: f64,
}

impl FullPipe {
    /// What the control did in an interval of this length that ended with `tcp`.
    pub fn after(&mut self, tcp: &TcpInfo, duration_us: f64) -> Control {
        if self.rounds >= FULL_AFTER_ROUND_TRIPS {
            return Control::Modelled;
        }
        let rate = tcp.delivery_rate_bytes_per_s.unwrap_or(0) as f64;
        match rate >= GROWTH_RATIO * self.rate && rate > 0.0 {
            true => *self = Self { rate, rounds: 0.0 },
            false => self.rounds += duration_us / tcp.rtt_us.unwrap_or(0).max(1) as f64,
        }
        Control::Probing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pipe_is_full_after_three_round_trips_without_growth() {
        let mut pipe = FullPipe::default();
        let mut after = |rate, ms: f64| {
            let tcp = TcpInfo {
                delivery_rate_bytes_per_s: Some(rate),
                rtt_us: Some(50_000),
                ..TcpInfo::default()
            };
            pipe.after(&tcp, ms * 1000.0)
        };
        assert_eq!(after(1_000, 50.0), Control::Probing);
        assert_eq!(after(2_000, 50.0), Control::Probing);
        assert_eq!(after(2_100, 100.0), Control::Probing);
        assert_eq!(after(2_100, 50.0), Control::Probing);
        assert_eq!(after(9_000, 50.0), Control::Modelled);
    }
}
