//! A wire does not wait for a CPU: the relay's threads run before everything else.

use std::num::NonZeroU64;

/// Lets the calling thread run as soon as a packet is there or due, before all ordinary threads, and wake without
/// slack. If something is refused, the relay still works, only less exactly.
///
/// It can't starve the machine: it works only for packets, which others must send, and the kernel withholds 5 % of the
/// time from real-time threads (sched(7)).
pub(super) fn go_first() {
    // The default slack of 50 us would be most of the error budget.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    let _ = real_time();
}

#[expect(
    unsafe_code,
    reason = "sched_setscheduler has no safe wrapper, and musl refuses to call it"
)]
fn real_time() -> bool {
    // struct sched_param of the kernel (include/uapi/linux/sched/types.h).
    let lowest: libc::c_int = 1;
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the number outlives the call; 0 is the calling thread.
    unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const lowest) == 0 }
}
