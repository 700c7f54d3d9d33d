//! How a flow's own thread spent an interval.

use goodput_model::{FlowSample, Known, Missing};

use super::share::Share;

/// Times of one thread within an interval, microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Work {
    /// It waited for its socket.
    pub blocked_us: f64,
    /// It waited on purpose, to hold a rate.
    pub paced_us: f64,
    /// It waited for its source or sink.
    pub stored_us: f64,
    /// It ran.
    pub ran_us: f64,
    /// It was ready to run and waited for a CPU.
    pub waited_us: f64,
    /// A quota kept it from running.
    pub throttled_us: f64,
}

impl Work {
    /// What a thread did between two samples; what this kernel or thread does not report counts as nothing.
    ///
    /// # Errors
    /// If neither its waiting nor its CPU time is known.
    pub fn between(from: &FlowSample, to: &FlowSample) -> Result<Self, Missing> {
        let grown = |read: fn(&FlowSample) -> &Known<u64>| {
            let (from, to) = (*read(from).get()?, *read(to).get()?);
            let ran_back = || Missing::because("a counter of a flow's thread ran backwards");
            to.checked_sub(from).map(|grown| grown as f64).ok_or_else(ran_back)
        };
        let known = |read: fn(&FlowSample) -> &Known<u64>| grown(read).unwrap_or(0.0);
        let (blocked_us, ran_us) = (grown(|flow| &flow.blocked_us)?, grown(|flow| &flow.cpu_us)?);
        // A thread that waits for a CPU after it was woken counts as blocked too.
        let waited_us = known(|flow| &flow.cpu_wait_us);
        Ok(Self {
            blocked_us: (blocked_us - waited_us).max(0.0),
            paced_us: known(|flow| &flow.paced_us),
            stored_us: known(|flow| &flow.source_us) + known(|flow| &flow.sink_us),
            ran_us,
            waited_us,
            throttled_us: 0.0,
        })
    }

    /// The same over a time that is longer by this ratio.
    pub fn scaled(self, ratio: f64) -> Self {
        Self {
            blocked_us: self.blocked_us * ratio,
            paced_us: self.paced_us * ratio,
            stored_us: self.stored_us * ratio,
            ran_us: self.ran_us * ratio,
            waited_us: self.waited_us * ratio,
            throttled_us: self.throttled_us * ratio,
        }
    }

    /// The same if a quota kept it from running this long, in the time of which it reports nothing.
    pub fn throttled(self, throttled_us: f64, duration_us: f64) -> Self {
        let throttled_us = throttled_us.min(self.unreported_us(duration_us));
        Self { throttled_us, ..self }
    }

    /// Time in which it neither ran nor waited, microseconds.
    fn unreported_us(&self, duration_us: f64) -> f64 {
        let known_us =
            self.paced_us + self.stored_us + self.ran_us + self.waited_us + self.throttled_us;
        (duration_us - self.blocked_us - known_us).max(0.0)
    }

    /// How the thread's own turn divides over the time in which it did not wait for its socket, shares of 1. What is left
    /// of `duration_us` it neither ran nor waited, so it was the program's.
    pub fn own_split(&self, duration_us: f64) -> Share {
        let application = self.paced_us + self.stored_us + self.unreported_us(duration_us);
        let host = self.ran_us + self.waited_us + self.throttled_us;
        match application + host {
            all if all > 0.0 => Share { application: application / all, host: host / all },
            _ => Share { application: 1.0, host: 0.0 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_thread_does_not_report_is_the_programs() {
        let paced = Work { paced_us: 90.0, ran_us: 10.0, ..Work::default() };
        assert_eq!(paced.own_split(100.0), Share { application: 0.9, host: 0.1 });
        let idle = Work { ran_us: 10.0, ..Work::default() };
        assert_eq!(idle.own_split(100.0), Share { application: 0.9, host: 0.1 });
        let throttled =
            Work { waited_us: 5.0, throttled_us: 80.0, ran_us: 15.0, ..Work::default() };
        assert_eq!(throttled.own_split(100.0), Share { application: 0.0, host: 1.0 });
        let blocked = Work { blocked_us: 99.0, ran_us: 1.0, ..Work::default() };
        assert_eq!(blocked.own_split(100.0), Share { application: 0.0, host: 1.0 });
    }
}
