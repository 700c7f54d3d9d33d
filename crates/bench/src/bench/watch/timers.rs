//! How many high-resolution timers the kernel served during a run: congestion controls that pace, such as bbr, use a
//! timer for each packet if no queueing discipline paces for them (`tcp_pacing_check`, net/ipv4/tcp_output.c of Linux
//! 6.18).

use std::fs;
use std::time::Instant;

use anyhow::{Context, Result};

use crate::bench::measure::TIMERS;
use crate::bench::measure::Values;

/// The count at the beginning.
#[derive(Debug)]
pub struct Timers {
    from: Instant,
    before: f64,
}

impl Timers {
    /// Starts to count.
    pub fn start() -> Result<Self> {
        Ok(Self { from: Instant::now(), before: served()? })
    }

    /// Timers per second, for all programs of the machine.
    pub fn values(&self) -> Result<Values> {
        let per_s = (served()? - self.before) / self.from.elapsed().as_secs_f64();
        Ok(Values::from([(TIMERS.id.into(), per_s)]))
    }
}

fn served() -> Result<f64> {
    let text = fs::read_to_string("/proc/softirqs").context("read /proc/softirqs")?;
    sum(&text).context("/proc/softirqs has no line of HRTIMER")
}

/// The sum over all CPUs of the line `HRTIMER` (proc(5)).
fn sum(softirqs: &str) -> Option<f64> {
    let line = softirqs.lines().find_map(|line| line.trim().strip_prefix("HRTIMER:"))?;
    line.split_whitespace().map(|count| count.parse::<f64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timers_of_all_cpus_count() {
        let text =
            "       CPU0       CPU1\n  TIMER:   5   6\nHRTIMER:   20    3\n    RCU:   1   1\n";
        assert_eq!(sum(text), Some(23.0));
        assert_eq!(sum("HRTIMER: many\n"), None);
        assert_eq!(sum("TIMER: 1\n"), None);
    }
}
