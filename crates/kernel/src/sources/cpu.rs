//! CPU time by use, per CPU and in total, and context switches (/proc/stat).

use goodput_model::{Missing, Snapshot};

use super::Source;
use crate::parse::stat::{self, CpuTicks};
use crate::{Context, Root};

const FILE: &str = "proc/stat";

pub(super) struct Cpu;

impl Source for Cpu {
    fn id(&self) -> &'static str {
        "cpu"
    }

    fn summary(&self) -> &'static str {
        "CPU time by use, per CPU and in total, and context switches"
    }

    fn can_run(&self, context: &Context) -> Result<(), Missing> {
        context.root.readable(FILE)
    }

    fn snapshot(&self, context: &Context, snapshot: &mut Snapshot) -> Result<(), Missing> {
        let stat = stat::parse(&context.root.read(FILE)?)?;
        snapshot.put("cpu.count", stat.cpus.len() as u64);
        snapshot.put("cpu.ctxt", stat.context_switches);
        put(snapshot, "cpu", &stat.total);
        for (number, ticks) in &stat.cpus {
            put(snapshot, &format!("cpu.{number}"), ticks);
        }
        Ok(())
    }
}

/// What all CPUs of this host have done since boot: all time that the kernel counted, the part in which they were not idle,
/// and of this the time in soft interrupts and the time that the hypervisor took, microseconds each, summed over the CPUs.
/// Before them the number of CPUs that are online.
///
/// # Errors
/// When /proc/stat can't be read.
pub fn host_busy(root: &Root) -> Result<(u32, [u64; 4]), Missing> {
    let stat = stat::parse(&root.read(FILE)?)?;
    let CpuTicks { user, nice, system, idle, iowait, irq, softirq, steal } = stat.total;
    let parts = [user, nice, system, irq, softirq, steal];
    let busy = parts.into_iter().fold(0, u64::saturating_add);
    let counted = busy.saturating_add(idle).saturating_add(iowait);
    let cpus = u32::try_from(stat.cpus.len()).unwrap_or(u32::MAX);
    Ok((cpus, [counted, busy, softirq, steal].map(microseconds)))
}

/// Clock ticks as a time.
fn microseconds(ticks: u64) -> u64 {
    let per_second = u128::from(rustix::param::clock_ticks_per_second().max(1));
    u64::try_from(u128::from(ticks) * 1_000_000 / per_second).unwrap_or(u64::MAX)
}

fn put(snapshot: &mut Snapshot, prefix: &str, ticks: &CpuTicks) {
    let uses = [
        ("user", ticks.user),
        ("nice", ticks.nice),
        ("system", ticks.system),
        ("idle", ticks.idle),
        ("iowait", ticks.iowait),
        ("irq", ticks.irq),
        ("softirq", ticks.softirq),
        ("steal", ticks.steal),
    ];
    for (name, ticks) in uses {
        snapshot.put(format!("{prefix}.{name}_us"), microseconds(ticks));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_busy_with_all_but_idling_and_waiting_for_disks() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("proc")).unwrap();
        let line = "1 2 4 1000 5000 8 16 32 0 0";
        let text = format!("cpu  {line}\ncpu0 {line}\nctxt 1\n");
        std::fs::write(folder.path().join(FILE), text).unwrap();
        let root = Root::at(folder.path());
        assert_eq!(host_busy(&root), Ok((1, [6063, 63, 16, 32].map(microseconds))));
        let nothing = tempfile::tempdir().unwrap();
        assert!(host_busy(&Root::at(nothing.path())).is_err());
    }
}
