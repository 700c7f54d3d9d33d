//! Which threads of goodput have used the CPU: those of the flows, or the other threads, which negotiate, observe and
//! report.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Result, bail};

use crate::bench::measure::BESIDE;
use crate::bench::measure::Values;

/// CPU time of every thread seen, at the time it was last seen.
#[derive(Debug, Default)]
pub struct Threads(BTreeMap<u32, Thread>);

#[derive(Debug)]
struct Thread {
    is_flow: bool,
    cpu_ns: u64,
}

impl Threads {
    /// Samples the threads of a process; none if it has ended.
    pub fn look(&mut self, process: u32) {
        let Ok(tasks) = fs::read_dir(format!("/proc/{process}/task")) else { return };
        for task in tasks.filter_map(Result::ok) {
            let id = task.file_name().to_str().and_then(|name| name.parse().ok());
            let read = |file: &str| fs::read_to_string(task.path().join(file)).ok();
            if let (Some(id), Some(thread)) = (id, thread(read("comm"), read("schedstat"))) {
                self.0.insert(id, thread);
            }
        }
    }

    /// The share of the threads beside the flows.
    pub fn values(&self) -> Result<Values> {
        let sum = |flows: bool| -> f64 {
            let threads = self.0.values().filter(|thread| thread.is_flow == flows);
            threads.map(|thread| thread.cpu_ns as f64).sum()
        };
        let (flows, beside) = (sum(true), sum(false));
        if flows == 0.0 {
            bail!("no thread of a flow was seen");
        }
        Ok(Values::from([(BESIDE.id.into(), 100.0 * beside / (flows + beside))]))
    }
}

/// A thread from its name, which starts with `flow-` for flows, and the first number of its schedstat, the time it has
/// had a CPU, nanoseconds (Documentation/scheduler/sched-stats.rst).
fn thread(name: Option<String>, schedstat: Option<String>) -> Option<Thread> {
    let cpu_ns = schedstat?.split_whitespace().next()?.parse().ok()?;
    Some(Thread { is_flow: name?.starts_with("flow-"), cpu_ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_are_distinguished_from_what_is_beside_them() {
        let mut threads = Threads::default();
        let lines =
            [("flow-0-send", "300 5 1"), ("goodput", "100 0 7"), ("flow-0-recv", "100 2 1")];
        for (id, (name, schedstat)) in lines.into_iter().enumerate() {
            threads.0.insert(id as u32, thread(Some(name.into()), Some(schedstat.into())).unwrap());
        }
        assert_eq!(threads.values().unwrap()[BESIDE.id], 20.0);
        assert!(thread(Some("goodput".into()), Some("many".into())).is_none());
    }

    #[test]
    fn our_own_threads_are_seen_and_none_is_of_a_flow() {
        let mut threads = Threads::default();
        threads.look(std::process::id());
        assert!(!threads.0.is_empty());
        assert!(threads.values().is_err());
    }
}
