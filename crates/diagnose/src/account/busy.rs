//! How much of each interval a connection was busy.

use std::collections::HashMap;

use goodput_model::{FlowSample, Missing, TcpInfo};

use super::full_path::MIN_SHARE_OF_FULL;
use super::pair::Pair;

/// The kernel counts that time in jiffies of 1 to 10 ms (net/ipv4/tcp_output.c, `tcp_chrono_set`), so an interval may seem
/// busy for longer than it lasts, and the next one for less. What is too much in one is carried into the next; without
/// that, each interval that is short of a jiffy seems partly idle, and none makes up for it.
#[derive(Debug, Default)]
pub struct Busy {
    carried_us: f64,
}

impl Busy {
    /// The busy time of an interval of this length between two samples, microseconds, at most its length.
    ///
    /// # Errors
    /// If the kernel does not report it.
    pub fn within(
        &mut self,
        from: &TcpInfo,
        to: &TcpInfo,
        duration_us: f64,
    ) -> Result<f64, Missing> {
        let grown = to.busy_us()?.saturating_sub(from.busy_us()?) as f64;
        let busy_us = (grown + self.carried_us).min(duration_us);
        self.carried_us += grown - busy_us;
        Ok(busy_us)
    }
}

/// How long each flow was busy between the samples of each pair, in the order of the pairs and of the flows in them.
pub struct BusyTimes(Vec<Vec<Result<f64, Missing>>>);

impl BusyTimes {
    /// Of all pairs, in the order of time.
    pub fn of(pairs: &[Pair]) -> Self {
        let mut flows = HashMap::<u16, Busy>::new();
        let mut within = |pair: &Pair, (from, to): &(&FlowSample, &FlowSample)| {
            let busy = flows.entry(to.flow).or_default();
            busy.within(from.tcp.get()?, to.tcp.get()?, pair.lasts_s() * 1e6)
        };
        let of_pair = |pair: &Pair| pair.flows.iter().map(|both| within(pair, both)).collect();
        Self(pairs.iter().map(of_pair).collect())
    }

    /// Of the flows of the pair of this number, microseconds, at most its length; or why the kernel does not report a flow's
    /// time.
    pub fn of_pair(&self, number: usize) -> &[Result<f64, Missing>] {
        &self.0[number]
    }

    /// Whether the flows may have kept the path busy: one or the other had something on its way for as much of the time as a
    /// full path is. If a flow does not report it, they may. `stopped_share`: part of the time in which something stopped the
    /// process that feeds them all, 0 to 1.
    pub fn may_fill(&self, number: usize, pair: &Pair, stopped_share: f64) -> bool {
        let lasts_us = pair.lasts_s() * 1e6;
        let share = |busy_us: &Result<f64, Missing>| Some(busy_us.as_ref().ok()? / lasts_us);
        let shares: Option<Vec<f64>> = self.of_pair(number).iter().map(share).collect();
        shares.is_none_or(|shares| any_busy_share(&shares, stopped_share) >= MIN_SHARE_OF_FULL)
    }
}

/// Largest part of the time in which one or the other flow may have had something on its way, if these are the parts of each.
/// Flows may take turns. But while their process is stopped, all of them run dry, and their idle times are the same.
fn any_busy_share(shares: &[f64], stopped_share: f64) -> f64 {
    let busiest = shares.iter().copied().fold(0.0, f64::max);
    let all_idle = stopped_share.min(1.0 - busiest);
    shares.iter().sum::<f64>().min(1.0 - all_idle)
}

#[cfg(test)]
mod tests {
    use goodput_model::{Known, Role};

    use super::*;

    #[test]
    fn a_connection_that_is_always_busy_is_never_idle_between_jiffies() {
        let at = |ms: u64| TcpInfo { busy_us: Some(ms * 1000), ..TcpInfo::default() };
        let mut busy = Busy::default();
        // 50 ms each, counted by jiffies of 4 ms.
        let counts = [0, 52, 100, 152, 200].map(at);
        let within = counts.windows(2).map(|two| busy.within(&two[0], &two[1], 50_000.0).unwrap());
        assert_eq!(within.collect::<Vec<_>>(), [50_000.0; 4]);
    }

    #[test]
    fn what_is_idle_stays_idle() {
        let at = |ms: u64| TcpInfo { busy_us: Some(ms * 1000), ..TcpInfo::default() };
        assert_eq!(Busy::default().within(&at(0), &at(12), 50_000.0), Ok(12_000.0));
        assert!(Busy::default().within(&TcpInfo::default(), &at(0), 1.0).is_err());
    }

    /// Whether this many flows may fill a path, each of which is busy for this many of 100 ms, if their process is stopped for
    /// this part of them.
    fn may_fill(count: u16, busy_ms: Option<u64>, stopped_share: f64) -> bool {
        let sample = |flow, busy_us| {
            let tcp = Known::Value(TcpInfo { busy_us, ..TcpInfo::default() });
            FlowSample { tcp, ..FlowSample::unreported(flow, Role::Sender, 0, "") }
        };
        let busy_us = busy_ms.map(|ms| ms * 1000);
        let both = |flow| (sample(flow, busy_us.map(|_| 0)), sample(flow, busy_us));
        let flows: Vec<_> = (0..count).map(both).collect();
        let flows = flows.iter().map(|(from, to)| (from, to)).collect();
        let pairs = [Pair { from_s: 1.0, to_s: 1.1, flows }];
        BusyTimes::of(&pairs).may_fill(0, &pairs[0], stopped_share)
    }

    #[test]
    fn few_flows_that_are_seldom_busy_fill_no_path() {
        let alone = |busy_ms| may_fill(1, Some(busy_ms), 0.0);
        assert!(alone(100) && alone(96) && !alone(90));
        assert!(!may_fill(4, Some(15), 0.0) && may_fill(64, Some(30), 0.0));
        assert!(may_fill(4, None, 0.0));
    }

    #[test]
    fn flows_that_take_turns_may_fill_the_path() {
        assert!(may_fill(4, Some(25), 0.0));
        // A stop that is hardly felt does not tell when each of them is idle.
        assert!(may_fill(4, Some(25), 0.01));
    }

    #[test]
    fn flows_of_a_stopped_process_are_idle_together() {
        assert!(!may_fill(32, Some(15), 0.85) && !may_fill(4, Some(50), 0.5));
        // What the socket holds outlasts the stop.
        assert!(may_fill(4, Some(100), 0.5));
        // For cgroup v1, several CPUs are stopped for more than all of the time.
        assert!(!may_fill(4, Some(30), 1.0));
    }
}
