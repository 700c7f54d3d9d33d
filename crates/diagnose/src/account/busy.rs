//! How much of each interval a connection was busy.

use std::collections::HashMap;

use goodput_model::{Missing, TcpInfo};

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

/// How long each flow was busy between the samples of each pair.
pub struct BusyTimes(HashMap<(usize, u16), Result<f64, Missing>>);

impl BusyTimes {
    /// Of all pairs, in the order of time.
    pub fn of(pairs: &[Pair]) -> Self {
        let (mut flows, mut times) = (HashMap::<u16, Busy>::new(), HashMap::new());
        for (number, pair) in pairs.iter().enumerate() {
            for (from, to) in &pair.flows {
                let busy = flows.entry(to.flow).or_default();
                let tcp = from.tcp.get().and_then(|from| Ok((from, to.tcp.get()?)));
                let within = tcp.and_then(|(a, b)| busy.within(a, b, pair.lasts_s() * 1e6));
                times.insert((number, to.flow), within);
            }
        }
        Self(times)
    }

    /// Of one flow in the pair of this number, microseconds, at most its length.
    ///
    /// # Errors
    /// If the kernel does not report it.
    pub fn of_flow(&self, number: usize, flow: u16) -> Result<f64, Missing> {
        let unknown = || Err(Missing::because("the flow was not sampled twice"));
        self.0.get(&(number, flow)).cloned().unwrap_or_else(unknown)
    }

    /// Whether the flows may have kept the path busy: one or the other had something on its way for as much of the time as a
    /// full path is, if each of them is idle whenever it likes. If a flow does not report it, they may.
    pub fn may_fill(&self, number: usize, pair: &Pair) -> bool {
        let lasts_us = pair.lasts_s() * 1e6;
        let idle = |flow: u16| Some(1.0 - self.of_flow(number, flow).ok()? / lasts_us);
        let all_idle: Option<f64> = pair.flows.iter().map(|(_, to)| idle(to.flow)).product();
        all_idle.is_none_or(|idle| 1.0 - idle >= MIN_SHARE_OF_FULL)
    }
}

#[cfg(test)]
mod tests {
    use goodput_model::{FlowSample, Known, Role};

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

    /// Whether this many flows may fill a path, each of which is busy for this many of 100 ms.
    fn may_fill(count: u16, busy_ms: Option<u64>) -> bool {
        let sample = |flow, busy_us| {
            let tcp = Known::Value(TcpInfo { busy_us, ..TcpInfo::default() });
            FlowSample { tcp, ..FlowSample::unreported(flow, Role::Sender, 0, "") }
        };
        let busy_us = busy_ms.map(|ms| ms * 1000);
        let both = |flow| (sample(flow, busy_us.map(|_| 0)), sample(flow, busy_us));
        let flows: Vec<_> = (0..count).map(both).collect();
        let flows = flows.iter().map(|(from, to)| (from, to)).collect();
        let pairs = [Pair { from_s: 1.0, to_s: 1.1, flows }];
        BusyTimes::of(&pairs).may_fill(0, &pairs[0])
    }

    #[test]
    fn few_flows_that_are_seldom_busy_fill_no_path() {
        assert!(may_fill(1, Some(100)) && may_fill(1, Some(96)) && !may_fill(1, Some(90)));
        // Of four that send for 15 ms, one sends for half of the time.
        assert!(!may_fill(4, Some(15)) && may_fill(64, Some(30)));
        assert!(may_fill(4, None));
    }
}
