//! A host's counts, read before and after a run.

use goodput_model::Known;

use crate::error::RemoteError;

/// CPU time of all CPUs since the start, in a unit of the system's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuTime {
    /// All of it.
    pub total: u64,
    /// Idle time.
    pub idle: u64,
}

impl CpuTime {
    /// The used and the whole time since an earlier reading; `None` if the counter went back or no time passed.
    fn used_since(before: &Self, after: &Self) -> Option<(u64, u64)> {
        let total = after.total.checked_sub(before.total).filter(|total| *total > 0)?;
        let idle = after.idle.checked_sub(before.idle).filter(|idle| *idle <= total)?;
        Some((total - idle, total))
    }
}

/// Packets of a device since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packets {
    /// Received.
    pub received: u64,
    /// Dropped while they were received or sent, damaged ones included.
    pub dropped: u64,
}

/// A host's counts since its start. Anything that it does not count, or does not print, is missing.
#[derive(Debug, Clone, PartialEq)]
pub struct Counters {
    /// CPU time.
    pub cpu: Known<CpuTime>,
    /// Units of that time in a second of one CPU.
    pub cpu_ticks_per_s: Known<u64>,
    /// Interrupts of the device.
    pub interrupts: Known<u64>,
    /// Packets of the device.
    pub packets: Known<Packets>,
}

/// A host's counts between two readings.
#[derive(Debug, Clone, PartialEq)]
pub struct Counted {
    /// CPU use of the whole host, percent of all its CPUs: everything but idle.
    pub cpu_percent: Known<f64>,
    /// CPU time of the whole host, seconds of all its CPUs: everything but idle.
    pub cpu_s: Known<f64>,
    /// Interrupts of the device per second.
    pub interrupts_per_s: Known<f64>,
    /// Packets that the device received per second.
    pub packets_per_s: Known<f64>,
    /// Packets that the device dropped.
    pub dropped: Known<u64>,
}

impl Counters {
    /// Nothing is known.
    pub fn missing(why: &str) -> Self {
        Self {
            cpu: Known::missing(why.to_owned()),
            cpu_ticks_per_s: Known::missing(why.to_owned()),
            interrupts: Known::missing(why.to_owned()),
            packets: Known::missing(why.to_owned()),
        }
    }

    /// The counts of the `seconds` since `before`.
    pub fn since(&self, before: &Self, seconds: f64) -> Counted {
        let rate = |count: u64| (seconds > 0.0).then(|| count as f64 / seconds);
        let used = grown(&before.cpu, &self.cpu, CpuTime::used_since);
        Counted {
            cpu_percent: used.clone().map(|(used, total)| used as f64 / total as f64 * 100.0),
            cpu_s: match (used, &self.cpu_ticks_per_s) {
                (Known::Value((used, _)), Known::Value(ticks)) if *ticks > 0 => {
                    Known::Value(used as f64 / *ticks as f64)
                }
                (Known::Missing(why), _) => Known::Missing(why),
                (_, Known::Missing(why)) => Known::Missing(why.clone()),
                _ => Known::missing("its clock has no ticks"),
            },
            interrupts_per_s: grown(&before.interrupts, &self.interrupts, |before, after| {
                rate(after.checked_sub(*before)?)
            }),
            packets_per_s: grown(&before.packets, &self.packets, |before, after| {
                rate(after.received.checked_sub(before.received)?)
            }),
            dropped: grown(&before.packets, &self.packets, |before, after| {
                after.dropped.checked_sub(before.dropped)
            }),
        }
    }
}

/// `difference` of two readings; it is `None` if the counter went back or no time passed.
fn grown<T, D>(
    before: &Known<T>,
    after: &Known<T>,
    difference: impl FnOnce(&T, &T) -> Option<D>,
) -> Known<D> {
    match (before, after) {
        (Known::Missing(why), _) | (_, Known::Missing(why)) => Known::Missing(why.clone()),
        (Known::Value(before), Known::Value(after)) => match difference(before, after) {
            Some(difference) => Known::Value(difference),
            None => Known::missing("the counter was set back during the run"),
        },
    }
}

/// Whatever a program did not report is missing, with its reason.
pub(crate) fn known<T>(read: Result<T, RemoteError>) -> Result<Known<T>, RemoteError> {
    match read {
        Ok(value) => Ok(Known::Value(value)),
        Err(
            error @ (RemoteError::NoProgram { .. }
            | RemoteError::NotUnderstood { .. }
            | RemoteError::NotPermitted { .. }
            | RemoteError::Failed { .. }
            | RemoteError::CouldNot { .. }),
        ) => Ok(Known::missing(error.to_string())),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(total: u64, idle: u64, count: u64) -> Counters {
        Counters {
            cpu: Known::Value(CpuTime { total, idle }),
            cpu_ticks_per_s: Known::Value(100),
            interrupts: Known::Value(count),
            packets: Known::Value(Packets { received: count, dropped: count / 10 }),
        }
    }

    #[test]
    fn differences_are_rates_and_shares() {
        let counted = counters(2000, 1260, 5000).since(&counters(1000, 1000, 1000), 2.0);
        assert_eq!(counted.cpu_percent, Known::Value(74.0));
        assert_eq!(counted.cpu_s, Known::Value(7.4), "of 740 ticks");
        assert_eq!(counted.interrupts_per_s, Known::Value(2000.0));
        assert_eq!(counted.packets_per_s, Known::Value(2000.0));
        assert_eq!(counted.dropped, Known::Value(400));
    }

    #[test]
    fn a_counter_that_went_back_or_is_not_there_gives_no_number() {
        let back = counters(10, 5, 1).since(&counters(20, 5, 2), 1.0);
        assert!(back.cpu_percent.value().is_none() && back.interrupts_per_s.value().is_none());
        let none = counters(10, 5, 1).since(&Counters::missing("no such program"), 1.0);
        assert_eq!(none.dropped, Known::missing("no such program"));
        assert_eq!(none.cpu_s, Known::missing("no such program"));
        let idle_clock = counters(10, 5, 1).since(&counters(10, 5, 1), 0.0);
        assert!(
            idle_clock.cpu_percent.value().is_none() && idle_clock.packets_per_s.value().is_none()
        );
    }
}
