//! Resource use of the process that moves the payload, all its threads together (our own by getrusage(2), another by
//! /proc/PID/stat), and the CPU time available to ours: CPUs, priority, scheduling policy (sched(7)).

use std::io;
use std::mem::MaybeUninit;

use goodput_model::{Missing, Snapshot};

use super::Source;
use crate::parse::process::parse_cpu;
use crate::{Context, Subject};

pub(super) struct Process;

impl Source for Process {
    fn id(&self) -> &'static str {
        "process"
    }

    fn summary(&self) -> &'static str {
        "CPU time, context switches, memory, CPUs and priority of goodput's process"
    }

    fn can_run(&self, context: &Context) -> Result<(), Missing> {
        context.process_file("stat").map(drop)
    }

    fn snapshot(&self, context: &Context, snapshot: &mut Snapshot) -> Result<(), Missing> {
        if let Subject::Process(_) = context.subject {
            return another(context, snapshot);
        }
        let usage = usage().map_err(|error| Missing::because(format!("getrusage: {error}")))?;
        let mut put = |name: &str, value: Option<u64>| match value {
            Some(value) => snapshot.put(format!("process.{name}"), value),
            None => snapshot.lacks(format!("process.{name}"), "the kernel gave a negative number"),
        };
        put("user_us", microseconds(usage.ru_utime));
        put("system_us", microseconds(usage.ru_stime));
        put("voluntary_switches", u64::try_from(usage.ru_nvcsw).ok());
        put("involuntary_switches", u64::try_from(usage.ru_nivcsw).ok());
        put("max_rss_bytes", u64::try_from(usage.ru_maxrss).ok().map(|kib| kib * 1024));
        scheduling(snapshot);
        Ok(())
    }

    fn lasts(&self, name: &str) -> bool {
        ["allowed_cpus", "nice", "policy"].contains(&name)
    }
}

/// Which CPUs may be used, and the process's priority.
fn scheduling(snapshot: &mut Snapshot) {
    match rustix::thread::sched_getaffinity(None) {
        Ok(cpus) => snapshot.put("process.allowed_cpus", u64::from(cpus.count())),
        Err(error) => {
            snapshot.lacks("process.allowed_cpus", format!("sched_getaffinity: {error}"));
        }
    }
    match rustix::process::getpriority_process(None) {
        Ok(nice) => snapshot.put("process.nice", f64::from(nice)),
        Err(error) => snapshot.lacks("process.nice", format!("getpriority: {error}")),
    }
    match policy() {
        Ok(policy) => snapshot.put("process.policy", policy),
        Err(error) => snapshot.lacks("process.policy", format!("sched_getscheduler: {error}")),
    }
}

#[expect(unsafe_code, reason = "rustix has no sched_getscheduler")]
fn policy() -> io::Result<String> {
    // SAFETY: the call takes a number and touches none of our memory.
    let policy = unsafe { libc::sched_getscheduler(0) };
    Ok(match policy & !libc::SCHED_RESET_ON_FORK {
        _ if policy < 0 => return Err(io::Error::last_os_error()),
        libc::SCHED_OTHER => "other".into(),
        libc::SCHED_BATCH => "batch".into(),
        libc::SCHED_IDLE => "idle".into(),
        libc::SCHED_FIFO => "fifo".into(),
        libc::SCHED_RR => "rr".into(),
        number => number.to_string(),
    })
}

/// CPU time of another program, in steps of a clock tick.
fn another(context: &Context, snapshot: &mut Snapshot) -> Result<(), Missing> {
    let file = context.process_file("stat")?;
    let (user, system) = parse_cpu(&context.root.read(&file)?)
        .ok_or_else(|| Missing::because(format!("/{file} has no CPU times")))?;
    let tick_us = 1_000_000 / rustix::param::clock_ticks_per_second().max(1);
    snapshot.put("process.user_us", user.saturating_mul(tick_us));
    snapshot.put("process.system_us", system.saturating_mul(tick_us));
    Ok(())
}

fn microseconds(time: libc::timeval) -> Option<u64> {
    let seconds = u64::try_from(time.tv_sec).ok()?;
    seconds.checked_mul(1_000_000)?.checked_add(u64::try_from(time.tv_usec).ok()?)
}

#[expect(unsafe_code, reason = "rustix has no getrusage")]
fn usage() -> io::Result<libc::rusage> {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` has room for the structure and lives through the call.
    if unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: zeros are a valid rusage, and the call filled it in.
    Ok(unsafe { usage.assume_init() })
}
