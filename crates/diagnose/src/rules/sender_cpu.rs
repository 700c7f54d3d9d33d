//! # What it means
//! The sender's CPU is full: it can't produce, copy and send any faster.
//!
//! # Why it limits
//! One flow is one thread, and one thread has one CPU.
//!
//! # How it is seen
//! The writer almost never waits for space in its send buffer, and is running on a CPU. Or it is ready to
//! run and waits for a CPU that other threads use; if the kernel does not report that wait, all
//! CPUs of the host are busy. Or one CPU does nothing but softirqs.
//!
//! # What to try
//! A mover that copies less, larger chunks, more flows. If other threads use the CPU: a CPU of its
//! own for goodput.
//!
//! # When it is wrong
//! If both ends share the CPUs, as in a lab, each slows the other down. goodput then names the end
//! that waits less. If both wait for scarce CPUs, the finding is only possible.
//!
//! # Source
//! proc(5) (`/proc/stat`); Documentation/scheduler/sched-stats.rst; Documentation/networking/segmentation-offloads.rst; sendfile(2).

use goodput_model::{Change, Confidence, Finding, Missing};

use crate::bounds::next_after;
use crate::change::of_host;
use crate::cpu_bound::{CpuBound, cpu_bound, describe, is_throttled};
use crate::finding::Draft;
use crate::names::OFFLOAD_TSO;
use crate::offers::cheaper_mover;
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::thresholds::MIN_CPU_SHARE_OF_WALL_TIME;
use crate::view::View;

/// The rule.
pub const RULE: Rule = Rule {
    id: "sender-cpu",
    title: "The sender's CPU is full",
    refines: &[parts::SENDING_HOST],
    depth: Depth::Limiter,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "sender_cpu_us_per_mb",
    witness_words: ("CPU time of the sender per MB", " µs"),
    source: include_str!("sender_cpu.rs"),
};

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    match cpu_bound(&view.sender)? {
        // While a quota stops the other end, it is not the wait for a CPU that counts.
        Some(bound) if bound.shared && is_throttled(&view.receiver) => Ok(None),
        Some(bound) => thread(view, bound).found(),
        None if softirqs_fill(view) => softirqs(view).found(),
        None => Ok(None),
    }
}

fn thread(view: &View, bound: CpuBound) -> Draft {
    // Of datagrams that got lost, a faster CPU would only send more.
    let lost = view.sends_too_much();
    let confidence = if lost { Confidence::Possible } else { bound.confidence() };
    draft(view, confidence, bound.summary("sender")).share(bound.turn)
}

/// Whether softirqs fill a CPU at the sender and not just as much at the receiver, where arriving
/// packets make most of them.
fn softirqs_fill(view: &View) -> bool {
    let own = view.sender.softirq_share().unwrap_or(0.0);
    let other = view.receiver.softirq_share().unwrap_or(0.0);
    own >= MIN_CPU_SHARE_OF_WALL_TIME && own > other
}

fn softirqs(view: &View) -> Draft {
    draft(view, Confidence::Possible, "softirqs on one of the sender's CPUs".into())
}

fn draft(view: &View, confidence: Confidence, summary: String) -> Draft {
    let (side, place) = (&view.sender, view.sender.place());
    let draft = Draft::new(RULE.id, place, confidence, summary).saw_thread_cpu(side).saw_if(
        place,
        "writer_blocked_share",
        side.blocked_share(),
        |waits| side.waits_text(waits),
    );
    describe(draft, side)
        .saw_if(
            view.receiver.place(),
            "reader_blocked_share",
            view.receiver.blocked_share(),
            |waits| view.receiver.waits_text(waits),
        )
        .predicted(next_after(view, &[RULE.id]))
        .changes(offload(view))
        .changes(cheaper_mover(view))
        .advice("more flows (-P) use more CPUs")
}

fn offload(view: &View) -> Option<Change> {
    let side = &view.sender;
    (view.is_tcp() && side.text(OFFLOAD_TSO).ok()? == "off").then_some(())?;
    let values = (Some("off".into()), "on".into());
    let why = "the device cuts segments, not the CPU";
    Some(of_host(side, OFFLOAD_TSO, Some(side.device().ok()?), values, why))
}

/// CPU time of the writers for 10^6 payload bytes, microseconds.
fn witness(view: &View) -> Result<f64, Missing> {
    view.sender.cpu_us_per_mb()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, fires, quiet};
    use goodput_model::EndName::{Far, Near};

    fn full() -> Case {
        Case::healthy().shares(0.8, 0.0, 0.0).writer(0.01, 0.0, 0.97).reader(0.5, 0.0, 0.5)
    }

    #[test]
    fn fires_on_a_full_cpu_and_offers_sendfile() {
        let finding = fires(&RULE, full());
        assert_eq!(finding.confidence, Confidence::Certain);
        assert_eq!(finding.changes[0].as_argument(), "mover=copy,sendfile");
    }

    #[test]
    fn offload_comes_first_where_it_is_off() {
        let finding = fires(&RULE, full().fact(Near, OFFLOAD_TSO, "off"));
        assert_eq!(finding.changes[0].as_argument(), "offload.tso@eth0=off,on");
    }

    #[test]
    fn waiting_for_a_crowded_cpu_counts() {
        let finding = fires(&RULE, full().writer(0.05, 0.0, 0.6).cpu(Near, 0.2, 0.99));
        assert_eq!(finding.confidence, Confidence::Likely);
        quiet(&RULE, full().writer(0.05, 0.0, 0.6));
    }

    #[test]
    fn a_writer_that_waits_is_not_the_limit() {
        quiet(&RULE, full().writer(0.5, 0.0, 0.5));
    }

    #[test]
    fn datagrams_that_get_lost_are_not_held_back_by_the_cpu() {
        let case = Case::healthy_udp().writer(0.01, 0.0, 0.97).lost(0.3);
        assert_eq!(fires(&RULE, case).confidence, Confidence::Possible);
    }

    #[test]
    fn cannot_tell_without_the_far_end_sending() {
        let case = full().plan(|plan| plan.direction = goodput_model::Direction::Reverse);
        let mut evidence = case.without_far().evidence();
        evidence.sender_end = Far;
        assert!((RULE.check)(&View::new(&evidence)).is_err());
    }
}
