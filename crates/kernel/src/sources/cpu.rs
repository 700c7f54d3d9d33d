//! CPU time by use, per CPU and in total, and context switches (/proc/stat).

use goodput_model::{Missing, Snapshot};

use super::Source;
use crate::Context;
use crate::parse::stat::{self, CpuTicks};

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

fn put(snapshot: &mut Snapshot, prefix: &str, ticks: &CpuTicks) {
    let per_second = u128::from(rustix::param::clock_ticks_per_second().max(1));
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
        let us = u128::from(ticks) * 1_000_000 / per_second;
        snapshot.put(format!("{prefix}.{name}_us"), u64::try_from(us).unwrap_or(u64::MAX));
    }
}
