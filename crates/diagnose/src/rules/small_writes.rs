//! # What it means
//! The sending program hands over few bytes with each system call.
//!
//! # Why it limits
//! A system call costs about the same for 100 bytes as for 10 000: rate = bytes per call / time per
//! call. The writer is busy making calls, not sending.
//!
//! # How it is seen
//! The writer never waited for space in its send buffer and never paused on purpose, so its time went
//! into the calls. Each call carried far less than a segment, or little more than one.
//!
//! # What to try
//! Larger writes (`--chunk`). In a program: a buffer in front of the socket, or writev(2).
//!
//! # When it is wrong
//! A program that has little to send also writes little, but it waits between its writes; that is
//! sender-application. If writes of a segment and more fill a CPU, larger ones help less; that is
//! left to sender-cpu.
//!
//! # Source
//! net/ipv4/tcp.c (`tcp_sendmsg_locked`); measured: 100-byte writes 109 Mbit/s to 1.7 Gbit/s if
//! writes of 128 KiB give 34 Gbit/s.

use goodput_model::{Change, Confidence, Finding, Missing};

use crate::bounds::next_after;
use crate::change::of_plan;
use crate::finding::{Draft, bytes, percent};
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::thresholds::MAX_WAIT_SHARE_OF_SLOW_THREAD;
use crate::view::View;

/// The rule.
pub const RULE: Rule = Rule {
    id: "small-writes",
    title: "The sending program's writes are too small",
    refines: &[parts::SENDING_HOST, parts::SENDING_PROGRAM],
    depth: Depth::Root,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "calls_per_megabyte",
    witness_words: ("calls per MB", ""),
    source: include_str!("small_writes.rs"),
};

/// Bytes of a call up to which the call itself takes most of the time. Measured on veth: 1448 bytes
/// give a third of what 128 KiB give, 4096 two thirds.
const MAX_SMALL_CALL_BYTES: f64 = 2048.0;
/// Part of the writer's turn that it must spend on a CPU if its CPUs are not full; otherwise it is
/// something in between that takes its time.
const MIN_CPU_TIME_SHARE: f64 = 0.5;

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    view.needs_tcp()?;
    let side = &view.sender;
    let (each, turn) = (side.bytes_per_call()?, turn(view)?);
    if each > MAX_SMALL_CALL_BYTES || turn < 1.0 - MAX_WAIT_SHARE_OF_SLOW_THREAD {
        return Ok(None);
    }
    let on_cpu = side.thread_cpu_share().is_ok_and(|cpu| cpu >= MIN_CPU_TIME_SHARE * turn);
    let confidence = match on_cpu {
        true => Confidence::Certain,
        // Written by this program itself, whose only work between two writes is to count them.
        false => Confidence::Likely,
    };
    let place = side.place();
    Draft::new(RULE.id, place, confidence, format!("small writes, only {}", bytes(each)))
        .share(turn)
        .saw(place, "bytes_per_call", each, format!("a system call carried {}", bytes(each)))
        .saw(
            place,
            "writer_busy_percent",
            turn * 100.0,
            format!("the writer spent {} of the time in its calls, not waiting", percent(turn)),
        )
        .saw_if(place, "writer_cpu_percent", side.thread_cpu_share(), |cpu| {
            format!("the writer used {} of a CPU", percent(cpu))
        })
        .predicted(next_after(view, &[RULE.id, "sender-cpu"]))
        .changes(change(view))
        .advice("use larger writes: a buffer in front of the socket, or writev(2)")
        .found()
}

/// Share of the time in which it was the writer's turn.
fn turn(view: &View) -> Result<f64, Missing> {
    Ok(1.0 - view.sender.blocked_share()? - view.sender.paced_share()?)
}

fn change(view: &View) -> Option<Change> {
    let (chunk, standard) = (view.plan().chunk_bytes, view.plan().transport.standard_chunk());
    let why = "fewer system calls for the same bytes";
    (chunk.0 < standard.0)
        .then(|| of_plan("chunk", Some(chunk.0.to_string()), &standard.0.to_string(), why))
}

/// System calls for each million payload bytes.
fn witness(view: &View) -> Result<f64, Missing> {
    view.needs_tcp()?;
    Ok(1e6 / view.sender.bytes_per_call()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose;
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::{Bytes, EndName};

    fn writes(size: u64) -> Case {
        let case = Case::healthy().without_links().goodput(1.7e9).writer(0.0, 0.0, 0.95);
        case.chunk(size).plan(move |plan| plan.chunk_bytes = Bytes(size))
    }

    #[test]
    fn fires_with_a_full_cpu_and_offers_the_standard_size() {
        let finding = fires(&RULE, writes(100));
        assert_eq!(finding.confidence, Confidence::Certain);
        assert_eq!(finding.changes[0].as_argument(), "chunk=100,131072");
        let crowded = writes(100).writer(0.0, 0.0, 0.22).cpu(EndName::Near, 0.3, 0.99);
        assert_eq!(fires(&RULE, crowded).confidence, Confidence::Likely);
    }

    #[test]
    fn it_explains_the_full_cpu_and_the_program_that_offers_too_little() {
        for cpu in [0.95, 0.3] {
            let case = writes(100).app_limited(1.0).writer(0.0, 0.0, cpu);
            let found = diagnose(&case.evidence()).findings;
            assert_eq!(found.iter().map(|f| f.rule.as_str()).collect::<Vec<_>>(), ["small-writes"]);
        }
    }

    #[test]
    fn large_writes_and_a_writer_that_waits_are_others() {
        quiet(&RULE, writes(16_384));
        quiet(&RULE, writes(100).writer(0.6, 0.0, 0.3));
        quiet(&RULE, writes(100).writer(0.0, 0.9, 0.1));
    }

    #[test]
    fn cannot_tell_for_datagrams() {
        cannot_tell(&RULE, Case::healthy_udp());
    }
}
