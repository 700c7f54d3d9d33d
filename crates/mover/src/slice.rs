//! Lets a paced thread run soon after it wakes, even if others want its CPU.

use std::mem;
use std::num::NonZeroU64;

/// Time slice that a paced thread requests, nanoseconds: the kernel's minimum. Its share of the CPU stays the same.
const SLICE_NS: u64 = 100_000;

/// Makes the calling thread's timers expire on time; by default they are up to 50 us late (PR_SET_TIMERSLACK in
/// prctl(2)). Also lets the thread run before threads of the same priority with longer slices, which would otherwise
/// keep it waiting for milliseconds. If the kernel refuses or does not know either, pieces leave later.
pub(crate) fn wake_soon() {
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    let _ = ask_for_short_slice();
}

/// Since Linux 6.12 `sched_runtime` of an ordinary thread is the length of its slice, and a thread with a shorter slice
/// runs first when it wakes (`__setparam_fair` and `PREEMPT_SHORT`, kernel/sched/fair.c); earlier kernels ignore it.
/// Needs no privilege. `None` if refused.
#[expect(unsafe_code, reason = "sched_setattr has no safe wrapper")]
fn ask_for_short_slice() -> Option<()> {
    // SAFETY: the structure is plain data, for which all zeros are valid.
    let mut attributes: libc::sched_attr = unsafe { mem::zeroed() };
    let size = mem::size_of::<libc::sched_attr>() as libc::c_uint;
    // SAFETY: the kernel writes at most `size` bytes to the structure, which lives longer than the call.
    let got = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) };
    let ordinary = [libc::SCHED_OTHER, libc::SCHED_BATCH].map(|policy| policy as u32);
    if got != 0 || !ordinary.contains(&attributes.sched_policy) {
        return None;
    }
    attributes.sched_runtime = SLICE_NS;
    // SAFETY: the kernel reads the structure, whose `size` field is set, and writes nothing.
    let set = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    (set == 0).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_expire_on_time() {
        // In its own thread, because the tests of a binary share theirs.
        let slack = std::thread::spawn(|| {
            wake_soon();
            rustix::thread::current_timer_slack()
        });
        assert_eq!(slack.join().ok(), Some(Ok(1)));
    }
}
