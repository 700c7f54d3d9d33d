//! What our own process used, all its threads together (getrusage(2)).

use std::io;
use std::mem::MaybeUninit;

use goodput_model::{Missing, Snapshot};

use super::Source;
use crate::Context;

pub(super) struct Process;

impl Source for Process {
    fn id(&self) -> &'static str {
        "process"
    }

    fn summary(&self) -> &'static str {
        "CPU time, context switches and memory of our own process"
    }

    fn can_run(&self, _context: &Context) -> Result<(), Missing> {
        Ok(())
    }

    fn snapshot(&self, _context: &Context, snapshot: &mut Snapshot) -> Result<(), Missing> {
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
        Ok(())
    }
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
