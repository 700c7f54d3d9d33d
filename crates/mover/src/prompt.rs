//! Prompt scheduling for threads that control flows: they must run when they have work, even if hundreds of flows keep
//! all processors busy. Otherwise every step of a control exchange waits for its turn, and a test of a thousand flows
//! takes many seconds to end.

use std::io;

/// Time slice, nanoseconds: the kernel's minimum (`__setparam_fair` in kernel/sched/syscalls.c, Linux 6.12; older
/// kernels ignore it).
const SLICE_NS: u64 = 100_000;
/// Nice value relative to flows, if permitted (setpriority(2)).
const NICE_STEP: i32 = -10;

/// Makes the calling thread run soon after it wakes: with a short time slice, which puts it before threads with the
/// usual one, and with a higher priority if permitted (CAP_SYS_NICE). Threads that it starts inherit neither. Fails if
/// the kernel or a filter of system calls refuses both.
pub fn run_promptly() -> io::Result<()> {
    let own = rustix::process::getpriority_process(None)?;
    set(own.min(NICE_STEP)).or_else(|_| set(own))
}

/// sched_setattr(2) of the calling thread.
#[expect(unsafe_code, reason = "a system call that the C library does not wrap")]
fn set(nice: i32) -> io::Result<()> {
    let attributes = libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: libc::SCHED_OTHER as u32,
        sched_flags: libc::SCHED_FLAG_RESET_ON_FORK as u64,
        sched_nice: nice,
        sched_priority: 0,
        sched_runtime: SLICE_NS,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: the kernel reads as much of the structure as its size says; the structure outlives the call.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_it_starts_has_the_usual_priority() {
        std::thread::spawn(|| {
            run_promptly().unwrap();
            let of_child = || rustix::process::getpriority_process(None).unwrap();
            let child = std::thread::spawn(of_child).join().unwrap();
            assert_eq!(child, of_child().max(0));
        })
        .join()
        .unwrap();
    }
}
