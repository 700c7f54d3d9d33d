//! # What it means
//! The receiver's CPU is full: it can't receive, copy and hand over any faster.
//!
//! # Why it limits
//! One thread reads one flow, and its packets pass the stack on one CPU.
//!
//! # How it is seen
//! The reader almost never waits for data, and is running on a CPU. Or it is ready to run and waits
//! for a CPU that other threads use; if the kernel does not report that wait, all CPUs of the host
//! are busy. Or one CPU does nothing but interrupts and softirqs.
//!
//! # What to try
//! Generic receive offload, more flows, receive scaling over several CPUs, larger reads.
//!
//! # When it is wrong
//! If both ends share the CPUs, as in a lab, each slows the other down. goodput then names the end
//! that waits less. If both wait for scarce CPUs, the finding is only possible.
//!
//! # Source
//! proc(5) (`/proc/stat`); Documentation/scheduler/sched-stats.rst; Documentation/networking/scaling.rst; getrusage(2).

use goodput_model::{Change, Confidence, Finding, Missing};

use crate::bounds::next_after;
use crate::change::of_host;
use crate::cpu_bound::{cpu_bound, describe, is_throttled};
use crate::elimination::reads_in_time;
use crate::finding::Draft;
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::thresholds::MIN_CPU_SHARE_OF_WALL_TIME;
use crate::view::View;

/// The rule.
pub const RULE: Rule = Rule {
    id: "receiver-cpu",
    title: "The receiver's CPU is full",
    refines: &[parts::RECEIVING_HOST],
    depth: Depth::Limiter,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "receiver_cpu_us_per_mb",
    witness_words: ("CPU time of the receiver per MB", " µs"),
    source: include_str!("receiver_cpu.rs"),
};

/// Longer than a frame of any Ethernet's usual MTU, and shorter than two joined segments, bytes.
const FRAME_BYTES: f64 = 2000.0;

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    let full = view.receiver.softirq_share().is_ok_and(|share| share >= MIN_CPU_SHARE_OF_WALL_TIME);
    match cpu_bound(&view.receiver)? {
        // While a quota stops the other end, it is not the wait for a CPU that counts.
        Some(bound) if bound.shared && is_throttled(&view.sender) => Ok(None),
        Some(bound) if bound.shared && reads_in_time(view) => Ok(None),
        Some(bound) if !(bound.crowded && full) => {
            draft(view, bound.confidence(), bound.summary("receiver")).share(bound.turn).found()
        }
        _ if full => {
            let summary = "softirqs on one of the receiver's CPUs".into();
            draft(view, Confidence::Likely, summary).found()
        }
        _ => Ok(None),
    }
}

fn draft(view: &View, confidence: Confidence, summary: String) -> Draft {
    let (side, place) = (&view.receiver, view.receiver.place());
    let draft = Draft::new(RULE.id, place, confidence, summary).saw_thread_cpu(side).saw_if(
        place,
        "reader_blocked_share",
        side.blocked_share(),
        |waits| side.waits_text(waits),
    );
    describe(draft, side)
        .saw_if(view.sender.place(), "writer_blocked_share", view.sender.blocked_share(), |waits| {
            view.sender.waits_text(waits)
        })
        .predicted(next_after(view, &[RULE.id]))
        .changes(joined(view))
        .advice("more flows (-P) use more CPUs")
}

/// Generic receive offload on, if it is known to be off and packets come one by one: what is
/// handed over in batches already, as between virtual devices, gains nothing.
fn joined(view: &View) -> Option<Change> {
    let side = &view.receiver;
    let mean =
        side.grown("link.rx_bytes").ok()? as f64 / side.grown("link.rx_packets").ok()? as f64;
    (mean <= FRAME_BYTES).then_some(())?;
    let off = side.text("offload.gro").is_ok_and(|gro| gro == "off");
    let values = (Some("off".into()), "on".into());
    let why = "gives the stack fewer, larger packets";
    off.then(|| of_host(side, "offload.gro", side.device().ok(), values, why))
}

/// CPU time of the readers for 10^6 payload bytes, microseconds.
fn witness(view: &View) -> Result<f64, Missing> {
    view.receiver.cpu_us_per_mb()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::EndName::Far;
    use goodput_model::Place;

    fn full() -> Case {
        Case::healthy().writer(0.4, 0.0, 0.6).reader(0.01, 0.0, 0.96)
    }

    #[test]
    fn fires_on_a_full_cpu() {
        let finding = fires(&RULE, full());
        assert_eq!((finding.end, finding.confidence), (Place::Far, Confidence::Certain));
    }

    #[test]
    fn joining_is_proposed_only_for_packets_that_come_one_by_one() {
        let off = |bytes: u64| {
            let case = full().fact(Far, "offload.gro", "off").grows(Far, "link.rx_packets", 1000);
            fires(&RULE, case.grows(Far, "link.rx_bytes", bytes)).changes
        };
        assert_eq!(off(1_514_000)[0].as_argument(), "far:offload.gro@eth0=off,on");
        assert!(off(40_000_000).is_empty());
    }

    #[test]
    fn fires_on_a_cpu_full_of_softirqs() {
        assert_eq!(
            fires(&RULE, Case::healthy().cpu(Far, 0.96, 0.99)).confidence,
            Confidence::Likely
        );
    }

    #[test]
    fn a_reader_that_waits_or_is_throttled_is_not_the_limit() {
        quiet(&RULE, full().reader(0.5, 0.0, 0.5));
        quiet(&RULE, full().grows(Far, "cgroup.throttled_us", 2_000_000));
    }

    /// As measured at an iperf3 server that sends through a bucket of 2.6 frames, at a load of 20.
    #[test]
    fn a_reader_that_waits_for_data_of_a_silent_server_is_not_the_limit_however_late_it_wakes_up() {
        let case = |window: u32, waits: f64| {
            let case =
                Case::healthy().without_links().goodput(243.5e3).silent_sender(move |tcp, _| {
                    tcp.rcv_wnd_bytes = Some(window.into());
                });
            case.reader(1.0, 0.0, 0.000_152).waiting(0.0, waits)
        };
        quiet(&RULE, case(1 << 20, 0.6));
        assert_eq!(crate::diagnose(&case(1 << 20, 0.3).evidence()).verdict.limit, "server-or-path");
        fires(&RULE, case(64, 0.6));
    }

    #[test]
    fn cannot_tell_without_the_far_end() {
        assert_eq!(cannot_tell(&RULE, full().without_far()), "the peer does not report");
    }
}
