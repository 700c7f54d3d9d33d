//! Whether a thread of a flow is held back by its CPU.

use goodput_model::{Confidence, Missing, Role};

use crate::finding::{Draft, percent};
use crate::names::{PROCESS_CPUS, PROCESS_NICE, PROCESS_POLICY};
use crate::thresholds::{
    LONG_PATH_S, MAX_WAIT_SHARE_OF_SLOW_THREAD, MIN_BUSY_SHARE_OF_ALL_CPUS,
    MIN_CPU_SHARE_OF_OWN_TURN, MIN_CPU_SHARE_OF_WALL_TIME, MIN_LIMITING_TIME_SHARE,
    MIN_STOPPED_TIME_SHARE, MIN_THROTTLED_TIME_SHARE,
};
use crate::view::{CpuTaker, Side, View};

/// CPU share that is high for one thread on a host with no CPU to spare.
const MIN_CPU_SHARE_ON_FULL_HOST: f64 = 0.25;
/// Share of the time waiting for a CPU above which a thread shares that CPU with others. Measured
/// on an idle host with a full CPU: up to 0.09.
pub const MIN_CPU_WAIT_SHARE: f64 = 0.2;

/// Share of samples without data left to send in TCP, below which the writer keeps up.
const MAX_DRY_TIME_SHARE: f64 = 0.1;

/// A flow's thread that wants more CPU than there is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CpuBound {
    /// Share of the time in which the thread had its turn: it ran or waited for a CPU. If the kernel
    /// does not report the wait, the thread waited neither for the socket nor on purpose.
    pub turn: f64,
    /// CPU time of the thread as a share of wall time.
    pub cpu: f64,
    /// Whether other threads use its CPU too, because the thread waited for it.
    pub shared: bool,
    /// Whether CPU was merely scarce and the thread needs much of one. The thread then also waits for
    /// the socket, because the other end waits for a CPU too.
    pub crowded: bool,
}

impl CpuBound {
    /// Confidence in the finding.
    pub fn confidence(&self) -> Confidence {
        match self.cpu {
            _ if self.crowded => Confidence::Possible,
            cpu if cpu >= MIN_CPU_SHARE_OF_WALL_TIME => Confidence::Certain,
            _ => Confidence::Likely,
        }
    }

    /// The name of the limit; `whose` is `sender` or `receiver`.
    pub fn summary(&self, whose: &str) -> String {
        match (self.shared, self.crowded) {
            (true, _) => format!("the {whose}'s CPU, shared with other threads"),
            (false, true) => format!("the {whose}'s CPUs, all busy"),
            (false, false) => format!("the {whose}'s CPU"),
        }
    }
}

/// The thread of `side`, if the CPU holds it back: it ran or waited for a CPU nearly all the time.
/// If the kernel does not report that wait, the thread hardly waits for anything, and spends its turn
/// on the CPU, or waiting for one on a host whose CPUs are all busy.
pub fn cpu_bound(side: &Side) -> Result<Option<CpuBound>, Missing> {
    let cpu = side.thread_cpu_share()?;
    let turn = 1.0 - side.blocked_share()? - side.paced_share()?;
    if is_throttled(side) {
        return Ok(None);
    }
    let busy = side.host_busy_share().is_ok_and(|busy| busy >= MIN_BUSY_SHARE_OF_ALL_CPUS);
    let hardly_waits = turn >= 1.0 - MAX_WAIT_SHARE_OF_SLOW_THREAD;
    let ready = cpu + side.cpu_wait_share().unwrap_or(0.0);
    let on_cpu = hardly_waits && ready >= MIN_CPU_SHARE_OF_OWN_TURN * turn;
    let (turn, shared, sure, scarce) = match (side.cpu_wait_share(), side.cpu_wanted_share()) {
        // Waiting for a CPU after a wake-up also counts as waiting for the socket.
        (Ok(wait), Ok(wanted)) if wait >= MIN_CPU_WAIT_SHARE && !leaves_data_behind(side) => (
            wanted.min(1.0),
            true,
            wanted >= 1.0 - MAX_WAIT_SHARE_OF_SLOW_THREAD,
            wanted >= MIN_LIMITING_TIME_SHARE,
        ),
        (Ok(_), Ok(_)) => (turn, false, on_cpu, busy && cpu >= MIN_LIMITING_TIME_SHARE),
        _ => (
            turn,
            false,
            on_cpu || hardly_waits && busy && cpu >= MIN_LIMITING_TIME_SHARE * turn,
            busy && cpu >= MIN_CPU_SHARE_ON_FULL_HOST,
        ),
    };
    Ok((sure || scarce).then_some(CpuBound { turn, cpu, shared, crowded: !sure }))
}

/// Whether a writer's socket has data to send whenever TCP may send some, so that the writer's late wake-ups hold
/// nothing back. On a short path, whatever sends that data waits for the same CPU.
fn leaves_data_behind(side: &Side) -> bool {
    let dry = side.app_limited_share();
    let long = side.min_rtt_s().is_ok_and(|rtt| rtt >= LONG_PATH_S);
    side.role == Role::Sender && long && dry.is_ok_and(|dry| dry < MAX_DRY_TIME_SHARE)
}

/// Share of the time in which the thread of `side` neither waited nor ran. If lack of a CPU is
/// known not to be the reason, the share in which its whole process did neither.
pub fn stopped_share(side: &Side) -> Result<f64, Missing> {
    let turn = 1.0 - side.blocked_share()? - side.paced_share()?;
    let wait = side.cpu_wait_share();
    let own = turn - side.thread_cpu_share()? - wait.as_ref().copied().unwrap_or(0.0);
    // A process that waits for CPUs also takes its samples late, as does any process on a host with
    // no CPU left.
    let crowded = side.host_busy_share().is_ok_and(|busy| busy >= MIN_BUSY_SHARE_OF_ALL_CPUS);
    let late = |wait: f64| side.paused_share().ok().filter(|late| !crowded && *late > wait);
    let whole = wait.ok().and_then(late);
    Ok(own.max(whole.unwrap_or(0.0)).max(0.0))
}

/// Confidence that something stops the thread of `side`, or that it waits inside the program.
/// If the kernel does not report the wait for a CPU, this is only possible while all CPUs of the host
/// are busy; a thread that gets much of a CPU is then left to [`cpu_bound`].
pub fn stopped(side: &Side) -> Result<Option<Confidence>, Missing> {
    if stopped_share(side)? < MIN_STOPPED_TIME_SHARE || is_throttled(side) {
        return Ok(None);
    }
    if side.cpu_wait_share().is_ok() {
        return Ok(Some(Confidence::Likely));
    }
    let busy = side.host_busy_share()? >= MIN_BUSY_SHARE_OF_ALL_CPUS;
    Ok(match busy {
        true if side.thread_cpu_share()? >= MIN_CPU_SHARE_ON_FULL_HOST => None,
        true => Some(Confidence::Possible),
        false => Some(Confidence::Likely),
    })
}

/// Whether a quota is known to throttle this side's process.
pub fn is_throttled(side: &Side) -> bool {
    side.throttled_share().is_ok_and(|share| share >= MIN_THROTTLED_TIME_SHARE)
}

/// Adds which threads and processes used a scarce CPU.
pub fn describe(draft: Draft, side: &Side) -> Draft {
    let place = side.place();
    let shared = side.cpu_wait_share().is_ok_and(|share| share >= MIN_CPU_WAIT_SHARE);
    let draft = match shared {
        true => draft.advice("give the thread a CPU of its own, with taskset(1) or a cpuset"),
        false => draft,
    };
    draft
        .saw_if(place, "cpu_wait_share", side.cpu_wait_share(), |share| {
            format!(
                "the flow's thread waited for a CPU {} of the time, ready to run (schedstat)",
                percent(share)
            )
        })
        .saw_if(place, "host_busy_share", side.host_busy_share(), |share| {
            format!("the host's CPUs were busy {} of the time (/proc/stat)", percent(share))
        })
        .saw_if(place, "softirq_share", side.softirq_share(), |share| {
            format!("softirqs took {} of the busiest CPU", percent(share))
        })
        .saw_if(place, PROCESS_CPUS, few_cpus(side), |cpus| {
            format!("the process may run on only {cpus:.0} of the host's CPUs")
        })
        .saw_if(place, PROCESS_NICE, low_priority(side), |nice| {
            format!("the process yields to others: its nice value is {nice:.0}")
        })
        .saw_if(place, PROCESS_POLICY, gives_way(side), |_| {
            "the process runs only when no other wants the CPU: its policy is SCHED_IDLE".into()
        })
}

/// Adds how much more the CPUs of `side` would carry without `taker`.
pub fn saw_room(draft: Draft, view: &View, side: &Side, taker: CpuTaker) -> Draft {
    draft.saw_if(side.place(), "cpu_room_ratio", view.cpu_room(side, taker), |times| match taker {
        CpuTaker::SingleSegments => format!(
            "packets could be {times:.1} times as long; how much of the CPU time goes with their number is not known here"
        ),
        _ => format!(
            "without that, the CPU would carry at most {times:.1} times as much at the present cost of a byte"
        ),
    })
}

/// CPUs that the process may use, if fewer than the host has.
fn few_cpus(side: &Side) -> Result<f64, Missing> {
    let cpus = side.count(PROCESS_CPUS)?;
    let all = f64::from(side.end()?.host.cpus);
    if cpus < all { Ok(cpus) } else { Err(Missing::because("it may use all")) }
}

/// Nice value of the process, if it yields to others.
fn low_priority(side: &Side) -> Result<f64, Missing> {
    let nice = side.number(PROCESS_NICE)?;
    if nice > 0.0 {
        Ok(nice)
    } else {
        Err(Missing::because("the process no longer yields to others"))
    }
}

/// 1 if the process runs only when no other process wants to.
fn gives_way(side: &Side) -> Result<f64, Missing> {
    let idle = side.text(PROCESS_POLICY)? == "idle";
    if idle { Ok(1.0) } else { Err(Missing::because("the process is scheduled like any other")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Case;

    /// The finding for a writer whose socket runs dry.
    fn writer(case: Case) -> Option<CpuBound> {
        let dry = case.tcp(|tcp, _| tcp.delivery_rate_app_limited = Some(1));
        cpu_bound(&View::new(&dry.evidence()).sender).unwrap()
    }

    #[test]
    fn a_writer_that_leaves_data_behind_holds_nothing_back() {
        let case = Case::healthy().writer(0.62, 0.0, 0.01).waiting(0.99, 0.01);
        assert_eq!(cpu_bound(&View::new(&case.evidence()).sender).unwrap(), None);
    }

    #[test]
    fn a_thread_that_waits_for_a_cpu_all_the_time_lacks_it() {
        // Nice 19 beside a busy loop, as measured: after a wake-up, waiting for a CPU counts as waiting for the socket.
        let bound = writer(Case::healthy().writer(0.62, 0.0, 0.01).waiting(0.99, 0.01)).unwrap();
        assert!(bound.shared && !bound.crowded, "{bound:?}");
        assert_eq!(bound.confidence(), Confidence::Likely);
    }

    #[test]
    fn a_thread_that_gets_its_cpu_soon_does_not_lack_it() {
        let near = goodput_model::EndName::Near;
        let case = Case::healthy().cpu(near, 0.1, 0.99).writer(0.7, 0.0, 0.3).waiting(0.05, 0.05);
        assert_eq!(writer(case), None);
    }

    #[test]
    fn a_short_wait_for_the_cpu_is_part_of_the_turn() {
        let case = || Case::healthy().writer(0.2, 0.0, 0.6);
        assert!(writer(case().waiting(0.15, 0.1)).is_some_and(|bound| !bound.crowded));
        assert_eq!(writer(case().waiting(0.01, 0.1)), None);
    }

    #[test]
    fn both_ends_on_scarce_cpus_are_possible() {
        let bound = writer(Case::healthy().writer(0.56, 0.0, 0.3).waiting(0.4, 0.4)).unwrap();
        assert!(bound.crowded, "{bound:?}");
        assert_eq!(bound.confidence(), Confidence::Possible);
    }

    #[test]
    fn who_waits_for_a_cpu_is_not_stopped() {
        let side = |case: Case| stopped(&View::new(&case.evidence()).sender).unwrap();
        let case = || Case::healthy().writer(0.2, 0.0, 0.1);
        assert_eq!(side(case().waiting(0.0, 0.0)), Some(Confidence::Likely));
        assert_eq!(side(case().waiting(0.6, 0.0)), None);
    }
}
