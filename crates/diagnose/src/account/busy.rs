//! How much of each interval a connection was busy.

use goodput_model::{Missing, TcpInfo};

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

#[cfg(test)]
mod tests {
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
}
