//! # What it means
//! Other programs on the host take the CPU that one end of the measurement needs.
//!
//! # Why it limits
//! A thread that waits for a CPU neither sends nor reads. A thread that paces wakes up late and
//! falls behind its rate. The network plays no part in this.
//!
//! # How it is seen
//! The kernel counts how long a flow's thread was ready and waited for a CPU: at least a fifth of
//! the time. Apart from that, the thread almost never waits for its socket, or it is behind its set
//! rate. And the host's CPU accounting shows that programs other than the two ends used more of its
//! CPUs than the ends did.
//!
//! # What to try
//! Measure while nothing else runs, or give goodput a CPU of its own.
//!
//! # When it is wrong
//! Programs in other containers and network namespaces of the same host count as others. So do
//! programs that only serve this traffic, such as a VPN or a proxy.
//!
//! # Source
//! Documentation/scheduler/sched-stats.rst (`/proc/PID/schedstat`); proc(5) (`/proc/stat`);
//! getrusage(2).

use goodput_model::{Confidence, Finding, Missing, Role};

use crate::account::{Part, held};
use crate::bounds::next_with_cpu_room;
use crate::cpu_bound::{MIN_CPU_WAIT_SHARE, cpu_bound, describe, is_throttled, saw_room};
use crate::elimination::reads_in_time;
use crate::finding::{Draft, rate};
use crate::others_on_cpu::{OthersOnCpu, is_behind_rate};
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::thresholds::{MIN_BUSY_SHARE_OF_ALL_CPUS, MIN_LIMITING_TIME_SHARE};
use crate::view::{CpuTaker, Side, View};

/// The rule.
pub const RULE: Rule = Rule {
    id: "cpu-contention",
    title: "Other programs take the host's CPU",
    refines: parts::HOSTS,
    depth: Depth::Root,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "cpu_wait_percent",
    witness_words: ("time waiting for a CPU", " %"),
    source: include_str!("cpu_contention.rs"),
};

/// The end that it holds more surely, or longer.
fn check(view: &View) -> Result<Option<Finding>, Missing> {
    let asked = view.sides().map(|side| at(view, side));
    let why = asked.iter().find_map(|found| found.as_ref().err().cloned());
    let held = |finding: &Finding| finding.share_percent.value().copied().unwrap_or(0.0);
    let found = asked.into_iter().flatten().flatten().reduce(|one, other| {
        let surer = one.confidence.cmp(&other.confidence).then(held(&one).total_cmp(&held(&other)));
        if surer.is_lt() { other } else { one }
    });
    match (found, why) {
        (None, Some(why)) => Err(why),
        (found, _) => Ok(found),
    }
}

fn at(view: &View, side: &Side) -> Result<Option<Finding>, Missing> {
    let wait = match side.cpu_wait_share() {
        Ok(wait) => wait,
        // Nobody waits for a CPU of a host that has some to spare.
        Err(_) if side.host_busy_share()? < MIN_BUSY_SHARE_OF_ALL_CPUS => return Ok(None),
        Err(why) => return Err(why),
    };
    let behind = side.role == Role::Sender && is_behind_rate(view)?;
    let paces = side.paced_share()? >= MIN_LIMITING_TIME_SHARE;
    let in_time = side.role == Role::Receiver && reads_in_time(view);
    let bound = cpu_bound(side)?.filter(|bound| bound.shared && !paces && !in_time);
    let stopped = view.sides().iter().any(|side| is_throttled(side));
    let limits = behind || bound.is_some();
    if wait < MIN_CPU_WAIT_SHARE || stopped || !limits || is_at_the_other_end(view, side) {
        return Ok(None);
    }
    let Some(OthersOnCpu { ours, others }) = OthersOnCpu::of(view, side)? else { return Ok(None) };
    let crowded = bound.is_some_and(|bound| bound.crowded);
    let confidence = if crowded && !behind { Confidence::Possible } else { Confidence::Likely };
    let role = if side.role == Role::Sender { "sender" } else { "receiver" };
    let summary = format!("the {role}'s CPU, taken by other programs");
    let place = side.place();
    let text = format!(
        "other programs used {others:.1} CPUs of the host, both ends of the measurement {ours:.1} (/proc/stat, getrusage)"
    );
    let draft = Draft::new(RULE.id, place, confidence, summary)
        .share(bound.map_or(wait, |bound| bound.turn))
        .saw(place, "others_cpus", others, text);
    let draft = match (behind, view.plan().rate_bits_per_s) {
        (true, Some(asked)) => {
            draft.saw_if(place, "sent_bits_per_s", side.payload_rate(), |sent| {
                format!("the sender sent {} of the requested {}", rate(sent), rate(asked.0))
            })
        }
        _ => draft,
    };
    let taker = CpuTaker::OtherPrograms;
    saw_room(describe(draft, side), view, side, taker)
        .predicted(next_with_cpu_room(view, side, RULE.id, taker))
        .advice("measure while nothing else runs on this host")
        .found()
}

/// Whether CPUs held the flows, but hardly this end's. Of datagrams the account says too little. Nor does it know for how long
/// another program's thread waited for a CPU: that time is the program's there, so only a wait at the other end tells.
fn is_at_the_other_end(view: &View, side: &Side) -> bool {
    let (own, other) = match side.role {
        Role::Sender => (parts::SENDING_HOST, &view.receiver),
        Role::Receiver => (parts::RECEIVING_HOST, &view.sender),
    };
    let is_nothing = |parts: &[Part]| held(view, parts).is_ok_and(|held| held.is_nothing());
    let other_waits = || other.cpu_wait_share().is_ok_and(|wait| wait >= MIN_CPU_WAIT_SHARE);
    let is_known = !side.is_watched() || other_waits();
    view.is_tcp() && is_known && is_nothing(&[own]) && !is_nothing(parts::HOSTS)
}

/// Share of the time in which the more hindered of the two threads waited for a CPU, percent.
fn witness(view: &View) -> Result<f64, Missing> {
    let waits = view.sides().map(|side| side.cpu_wait_share());
    let why = waits.iter().find_map(|wait| wait.as_ref().err().cloned());
    let most = waits.into_iter().flatten().reduce(f64::max);
    most.map(|share| share * 100.0)
        .ok_or_else(|| why.unwrap_or_else(|| Missing::because("neither end reports")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::EndName::{Far, Near};
    use goodput_model::{BitRate, Known};
    use std::sync::Arc;

    /// 4.2 s of two CPUs, of which `others` µs went to other programs.
    fn crowded(others: u64) -> Case {
        let case = Case::healthy().cpu(Near, 0.1, 0.99).writer(0.1, 0.0, 0.2).waiting(0.7, 0.0);
        let case = case.tcp(|tcp, _| tcp.delivery_rate_app_limited = Some(1));
        let case = case.grows(Near, "process.user_us", 200_000);
        let case = case.grows(Near, "process.system_us", 200_000);
        case.grows(Near, "cpu.0.user_us", others)
    }

    #[test]
    fn fires_where_others_run_and_the_writer_waits_for_a_cpu() {
        let finding = fires(&RULE, crowded(4_000_000));
        assert_eq!(finding.confidence, Confidence::Likely);
        assert!(finding.summary.contains("other programs"), "{}", finding.summary);
    }

    #[test]
    fn a_pace_that_falls_behind_is_not_its_own_purpose() {
        let paced = |asked: f64| {
            let case = crowded(4_000_000).goodput(2.2e6).writer(0.0, 0.98, 0.01).waiting(0.6, 0.0);
            case.plan(|plan| plan.rate_bits_per_s = Some(BitRate(asked)))
        };
        let finding = fires(&RULE, paced(5e6));
        assert!(finding.evidence.iter().any(|w| w.text.contains("of the requested 5 Mbit/s")));
        quiet(&RULE, paced(2.2e6));
    }

    #[test]
    fn a_wait_for_ones_own_threads_and_a_short_one_are_quiet() {
        quiet(&RULE, crowded(4_000_000).grows(Near, "process.user_us", 12_000_000));
        quiet(&RULE, crowded(4_000_000).waiting(0.1, 0.0));
    }

    #[test]
    fn a_reader_that_leaves_the_window_open_holds_nothing_back() {
        let late = |closed: f64| {
            let case =
                Case::path_rate().waiting(0.0, 0.7).reader(0.4, 0.0, 0.1).cpu(Far, 0.1, 0.99);
            let case = case.grows(Far, "process.user_us", 200_000).shares(1.0, closed, 0.0);
            let case = case.grows(Far, "process.system_us", 200_000);
            case.grows(Far, "cpu.0.user_us", 4_000_000)
        };
        quiet(&RULE, late(0.0));
        assert_eq!(fires(&RULE, late(0.5)).end, goodput_model::Place::Far);
        // The writer's CPU held all that CPUs held.
        let writes = late(0.5).writer(0.05, 0.0, 0.9).tcp(|tcp, _| tcp.rtt_us = tcp.min_rtt_us);
        quiet(&RULE, writes);
    }

    /// Another program's writer that waits for a CPU, and a reader that is behind for a tenth of the time.
    #[test]
    fn what_the_account_does_not_know_of_a_thread_does_not_acquit_its_cpu() {
        let found = |reader_waits| {
            let case = crowded(4_000_000).writer(0.1, 0.0, 0.0).waiting(0.8, reader_waits);
            let case = case.send_queue(0.1).reader(0.02, 0.0, 0.9).queued(500_000);
            let mut evidence = case.evidence();
            let (Known::Value(near), Known::Value(far)) = (&mut evidence.near, &mut evidence.far)
            else {
                panic!("the case has both ends")
            };
            for flow in Arc::make_mut(near).samples.iter_mut().flat_map(|one| &mut one.flows) {
                flow.blocked_us = Known::missing("another program's");
            }
            let keeps_up = Arc::make_mut(far).samples.iter_mut().take(36);
            for flow in keeps_up.flat_map(|one| &mut one.flows) {
                flow.queued_bytes = Known::Value(0);
            }
            let view = View::new(&evidence);
            at(&view, &view.sender).unwrap().map(|finding| finding.end)
        };
        assert_eq!(found(0.0), Some(goodput_model::Place::Near));
        // Then the reader's CPU is asked.
        assert_eq!(found(0.7), None);
    }

    #[test]
    fn cannot_tell_without_the_wait() {
        cannot_tell(&RULE, Case::empty());
        cannot_tell(&RULE, crowded(4_000_000).without(Near, "process").without_far());
    }
}
