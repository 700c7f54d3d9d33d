//! Round-trip times, and the queue that lengthens them.

use std::collections::HashMap;

use goodput_model::{Missing, TcpInfo};

use super::{Side, positive};
use crate::bounded::Bounded;
use crate::fresh_trip::fresh_trip_us;
use crate::thresholds::{
    LATE_S, LONG_PATH_S, MIN_FULL_QUEUE_RTT_RATIO, MIN_LIKELY_QUEUE_RTT_RATIO,
};

/// The unit of timestamps (RFC 7323 section 5.4; `TCP_TS_HZ`, include/net/tcp.h), microseconds.
const MILLISECOND_US: f64 = 1000.0;

impl Side<'_> {
    /// Median smoothed round-trip time under load, seconds.
    pub fn rtt_s(&self) -> Result<f64, Missing> {
        positive(self.tcp_median("tcp_info.rtt", TcpInfo::rtt_us)? / 1e6, "tcp_info.rtt")
    }

    /// How long round trips under load wait beyond the shortest, seconds. Behind a queue that grows, the smoothed ones lag, so
    /// they are asked only if the kernel does not report how many acknowledgements came (Linux before 4.18).
    ///
    /// # Errors
    /// If fewer than six new round trips were seen.
    pub(super) fn queue_s(&self) -> Result<Bounded, Missing> {
        let trips_us = self.fresh_trips_us().or_else(|_| self.tcp_gauges(TcpInfo::rtt_us))?;
        let trips = Bounded::median(trips_us, "a new round trip (tcp_info rtt)")?;
        Ok(trips * 1e-6 - Bounded::new(self.min_rtt_s()?, 0.0))
    }

    /// The round trips that acknowledgements measured within the window, microseconds: one of each flow between two samples,
    /// if any came.
    fn fresh_trips_us(&self) -> Result<Vec<f64>, Missing> {
        let (mut earlier, mut trips_us) = (HashMap::new(), Vec::new());
        for flow in self.each()? {
            let tcp = flow.tcp.get()?;
            if let Some(before) = earlier.insert(flow.flow, tcp) {
                trips_us.extend(fresh_trip_us(before, tcp)?);
            }
        }
        Ok(trips_us)
    }

    /// Smallest round-trip time, seconds.
    pub fn min_rtt_s(&self) -> Result<f64, Missing> {
        let all = self.tcp_gauges(TcpInfo::min_rtt_us)?;
        let least = all.into_iter().reduce(f64::min).unwrap_or(0.0);
        let before = || {
            let series = self.tcp_series().unwrap_or_default();
            let all = series.into_iter().flatten();
            all.filter_map(|tcp| Some(tcp.min_rtt_us().ok()? as f64)).collect()
        };
        positive(not_cut_to_milliseconds(least, before) / 1e6, "tcp_info.min_rtt")
    }

    /// Round-trip time under load over the smallest one.
    pub fn rtt_inflation(&self) -> Result<f64, Missing> {
        Ok(self.rtt_s()? / self.min_rtt_s()?)
    }

    /// Whether data waits in a queue on the path all the time: the round-trip time is a quarter
    /// longer than the smallest, and by at least 1 ms, on a crowded host by more. Less may be merely
    /// scheduling at the hosts.
    pub fn queue_stands(&self) -> Result<bool, Missing> {
        let (loaded, base) = (self.rtt_s()?, self.min_rtt_s()?);
        Ok(loaded >= MIN_FULL_QUEUE_RTT_RATIO * base && loaded - base >= self.late_s())
    }

    /// Whether round trips, all of them or those under load, take longer than the hosts' own work and scheduling
    /// explain.
    pub fn waits_beyond_hosts(&self) -> bool {
        let base = self.min_rtt_s();
        let waits = base.clone().and_then(|base| Ok(self.rtt_s()? - base));
        base.is_ok_and(|base| base >= LONG_PATH_S) || waits.is_ok_and(|s| s >= 2.0 * LATE_S)
    }

    /// Whether data waits in a shorter queue than [`Self::queue_stands`] requires: a tenth longer and by the same
    /// time, too little to decide without a second witness.
    pub fn queue_shows(&self) -> Result<bool, Missing> {
        let (loaded, base) = (self.rtt_s()?, self.min_rtt_s()?);
        Ok(loaded >= MIN_LIKELY_QUEUE_RTT_RATIO * base && loaded - base >= self.late_s())
    }
}

/// The smallest round-trip time, microseconds. After a loss the kernel measures by timestamps, which count
/// whole milliseconds and so may read up to one too little (net/ipv4/tcp_input.c, `tcp_rtt_tsopt_us`). An earlier
/// measurement within that millisecond is nearer.
fn not_cut_to_milliseconds(least: f64, before: impl FnOnce() -> Vec<f64>) -> f64 {
    let is_whole = |us: f64| us >= MILLISECOND_US && us % MILLISECOND_US == 0.0;
    if !is_whole(least) {
        return least;
    }
    let within = |us: &f64| (least..least + MILLISECOND_US).contains(us) && !is_whole(*us);
    before().into_iter().filter(within).reduce(f64::min).unwrap_or(least)
}

#[cfg(test)]
mod tests {
    use crate::testing::Case;
    use crate::view::View;

    /// The smallest round trip of a flow that sampled these, microseconds.
    fn least(first: u64, rest: u64) -> f64 {
        let case = Case::path_loss().tcp(move |tcp, number| {
            tcp.min_rtt_us = Some(if number < 3 { first } else { rest });
        });
        View::new(&case.evidence()).sender.min_rtt_s().unwrap() * 1e6
    }

    #[test]
    fn a_round_trip_by_timestamps_is_not_taken_for_a_shorter_one() {
        assert_eq!(least(3838, 3000), 3838.0);
        assert_eq!(least(3838, 2000), 2000.0);
        assert_eq!(least(3838, 3100), 3100.0);
        assert_eq!(least(3000, 3000), 3000.0);
    }
}
