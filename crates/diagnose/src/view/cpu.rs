//! What a host's CPUs did between the two snapshots.
//!
//! The snapshots span slightly more than the samples, so every share is a share of the time that the
//! CPU accounting itself reports.

use goodput_model::{Missing, Snapshot};

use super::{Side, View, positive};
use crate::names::{CPU_KINDS, PROCESS_SYSTEM_US, PROCESS_USER_US, QUOTA, THROTTLED_US};
use crate::thresholds::LATE_S;

/// Share of a host's CPU time above which other programs use most of it. Measured: up to 0.55 by the other
/// end and the relay of the lab, at least 0.75 on a machine that builds.
const MIN_OTHERS_CPU_SHARE: f64 = 0.65;
/// What scheduling adds to a round trip on a host with CPUs to spare, seconds.
const ON_TIME_S: f64 = 0.001;

/// Time of one CPU between the two snapshots, microseconds.
struct CpuTime {
    number: u32,
    total: f64,
    interrupts: f64,
    idle: f64,
    stolen: f64,
    programs: f64,
}

impl View<'_> {
    /// How much late scheduling on the busier of both hosts may add to a round trip, seconds; at least what round trips were
    /// measured to vary by on the idle path.
    pub fn late_s(&self) -> f64 {
        let idle_s = self.idle_jitter_s().unwrap_or(0.0);
        self.sides().map(|side| side.late_s()).into_iter().fold(idle_s, f64::max)
    }
}

impl Side<'_> {
    /// Interrupts and softirqs on the CPU that has most of them, as a share of its time.
    pub fn softirq_share(&self) -> Result<f64, Missing> {
        let shares = self.cpus()?.into_iter().map(|cpu| cpu.interrupts / cpu.total);
        Ok(shares.fold(0.0, f64::max))
    }

    /// Everything but idle on the CPU that has most interrupts and softirqs, as a share of its time.
    pub fn softirq_cpu_busy_share(&self) -> Result<f64, Missing> {
        let most = self
            .cpus()?
            .into_iter()
            .max_by(|a, b| (a.interrupts / a.total).total_cmp(&(b.interrupts / b.total)));
        Ok(most.map_or(0.0, |cpu| 1.0 - cpu.idle / cpu.total))
    }

    /// Time between the two snapshots, seconds, as the CPU accounting shows it.
    pub fn span_s(&self) -> Result<f64, Missing> {
        Ok(self.cpus()?.iter().map(|cpu| cpu.total).fold(0.0, f64::max) / 1e6)
    }

    /// Each CPU by number, with the share of its time that interrupts and softirqs took.
    pub fn interrupt_shares(&self) -> Result<Vec<(u32, f64)>, Missing> {
        let cpus = self.cpus()?.into_iter();
        Ok(cpus.map(|cpu| (cpu.number, cpu.interrupts / cpu.total)).collect())
    }

    /// Everything but idle on all CPUs together, as a share of their time.
    pub fn host_busy_share(&self) -> Result<f64, Missing> {
        let cpus = self.cpus()?;
        let total: f64 = cpus.iter().map(|cpu| cpu.total).sum();
        Ok(1.0 - cpus.iter().map(|cpu| cpu.idle).sum::<f64>() / total)
    }

    /// CPU time of all programs of the host together, in CPUs: 1 is one CPU all the time. Kernel work for
    /// programs is included, interrupts are not.
    pub fn programs_cpus(&self) -> Result<f64, Missing> {
        Ok(self.cpus()?.iter().map(|cpu| cpu.programs / cpu.total).sum())
    }

    /// CPU time of this end's own process, in CPUs (getrusage(2)).
    pub fn process_cpus(&self) -> Result<f64, Missing> {
        let spent = self.grown(PROCESS_USER_US)? + self.grown(PROCESS_SYSTEM_US)?;
        Ok(spent as f64 / 1e6 / self.span_s()?)
    }

    /// Whether other programs use most of the host's CPUs, so that goodput is scheduled late.
    pub fn is_crowded(&self) -> bool {
        let others = || {
            let (all, own) = (self.programs_cpus()?, self.process_cpus()?);
            Ok::<_, Missing>((all - own) / self.cpus()?.len() as f64)
        };
        others().is_ok_and(|share| share >= MIN_OTHERS_CPU_SHARE)
    }

    /// How much late scheduling on this host may add to a round trip, seconds.
    pub fn late_s(&self) -> f64 {
        if self.is_crowded() { LATE_S } else { ON_TIME_S }
    }

    /// Share of the time in which the host's CPUs had work but the hypervisor ran others.
    pub fn steal_share(&self) -> Result<f64, Missing> {
        let cpus = self.cpus()?;
        let sum = |part: fn(&CpuTime) -> f64| cpus.iter().map(part).sum::<f64>();
        let busy = sum(|cpu| cpu.total) - sum(|cpu| cpu.idle);
        Ok(if busy > 0.0 { sum(|cpu| cpu.stolen) / busy } else { 0.0 })
    }

    /// Time that a CPU quota throttled the process, as a share of the time between the snapshots.
    /// Above 1 if several CPUs were held back at once (cgroup v1 adds them up).
    pub fn throttled_share(&self) -> Result<f64, Missing> {
        let throttled = match self.grown(THROTTLED_US) {
            Ok(throttled) => throttled as f64,
            Err(_) if self.has_no_quota()? => return Ok(0.0),
            Err(why) => return Err(why),
        };
        let elapsed = self.cpus()?.iter().map(|cpu| cpu.total).fold(0.0, f64::max);
        Ok(throttled / elapsed)
    }

    /// Whether the host reported before and after that no quota applies.
    fn has_no_quota(&self) -> Result<bool, Missing> {
        let end = self.end()?;
        Ok([&end.before, &end.after].iter().all(|facts| facts.text(QUOTA) == Ok("none")))
    }

    /// Each CPU on which time passed; never empty.
    fn cpus(&self) -> Result<Vec<CpuTime>, Missing> {
        let end = self.end()?;
        // CPUs that are off leave gaps in the numbers.
        let number = |name: &String| -> Option<u32> {
            name.strip_prefix("cpu.")?.strip_suffix(".idle_us")?.parse().ok()
        };
        let numbers: Vec<u32> = end.before.facts.keys().filter_map(number).collect();
        if numbers.is_empty() {
            // Asks for a fact only to get the host's own reason for its absence.
            end.before.get("cpu.0.idle_us")?;
        }
        numbers.into_iter().map(|n| CpuTime::between(&end.before, &end.after, n)).collect()
    }
}

impl CpuTime {
    fn between(before: &Snapshot, after: &Snapshot, number: u32) -> Result<Self, Missing> {
        let grown = |kind: &str| {
            let name = format!("cpu.{number}.{kind}_us");
            match kind {
                // The only kind that may fall (proc_stat(5)): a waiting thread may be woken on another CPU.
                "iowait" => Ok(after.count(&name)?.saturating_sub(before.count(&name)?) as f64),
                _ => Ok(before.grown(after, &name)? as f64),
            }
        };
        let mut total = 0.0;
        for kind in CPU_KINDS {
            total += grown(kind)?;
        }
        Ok(Self {
            number,
            total: positive(total, "the CPU time between the snapshots")?,
            interrupts: grown("irq")? + grown("softirq")?,
            idle: grown("idle")? + grown("iowait")?,
            stolen: grown("steal")?,
            programs: grown("user")? + grown("nice")? + grown("system")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use goodput_model::EndName::Near;

    use crate::testing::Case;
    use crate::view::View;

    #[test]
    fn a_wait_for_storage_that_falls_leaves_the_rest_of_the_time_known() {
        let fell = Case::healthy().cpu(Near, 0.2, 0.5).fact(Near, "cpu.0.iowait_us", 1_000u64);
        let mut evidence = fell.evidence();
        let goodput_model::Known::Value(near) = &mut evidence.near else { panic!("it has it") };
        std::sync::Arc::make_mut(near).after.put("cpu.0.iowait_us", 500u64);
        assert!(View::new(&evidence).sender.softirq_share().is_ok());
    }
}
