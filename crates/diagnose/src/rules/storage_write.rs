//! # What it means
//! The received data is written to its file more slowly than the network delivers it.
//!
//! # Why it limits
//! Data that is not written stays in the receive buffer. When the buffer is full, TCP closes the
//! window and the sender stops.
//!
//! # How it is seen
//! For at least 30 % of the time the receiver's thread neither ran nor waited for data, for its
//! pace or for a CPU. It spent at least as long in the calls that write to the sink or flush it to
//! the disk.
//!
//! # What to try
//! A faster disk; writes past the page cache (`--direct`) if many pages wait to be written; or no
//! `--fsync`.
//!
//! # When it is wrong
//! The page cache takes a short transfer at the speed of memory, whatever the disk does later. Only
//! `--fsync` or `--direct` includes the disk's own speed.
//!
//! # Source
//! mm/page-writeback.c (`balance_dirty_pages`, which lets a writer sleep); fsync(2).

use goodput_model::{Confidence, Finding, Missing};

use crate::bounds::next_after;
use crate::cpu_bound::{is_throttled, stopped_share};
use crate::finding::{Draft, percent};
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::thresholds::MIN_STOPPED_TIME_SHARE;
use crate::view::View;

/// The rule.
pub const RULE: Rule = Rule {
    id: "storage-write",
    title: "Writing the sink is too slow",
    refines: &[parts::RECEIVING_PROGRAM],
    depth: Depth::Reason,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "sink_wait_percent",
    witness_words: ("time waiting for the sink", " %"),
    source: include_str!("storage_write.rs"),
};

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    let (side, place) = (&view.receiver, view.receiver.place());
    side.elapsed_s()?;
    if view.plan().storage.sink.is_none() {
        return Ok(None);
    }
    let share = waited(view)?;
    if share < MIN_STOPPED_TIME_SHARE || is_throttled(side) {
        return Ok(None);
    }
    let confidence =
        if side.cpu_wait_share().is_ok() { Confidence::Certain } else { Confidence::Possible };
    Draft::new(RULE.id, place, confidence, "writing the sink is too slow")
        .share(share)
        .saw(
            place,
            RULE.witness_name,
            share * 100.0,
            format!("the receiver waited for its sink {} of the time", percent(share)),
        )
        .saw_if(place, "reader_blocked_percent", side.blocked_share(), |blocked| {
            side.waits_text(blocked)
        })
        .saw_closed_window(&view.sender)
        .predicted(next_after(view, &[RULE.id, "receiver-application", "receive-window"]))
        .advice("use a faster disk, bypass the page cache (--direct), or leave out --fsync")
        .found()
}

/// Share of the time in which the receiver's thread slept in the calls that write to its sink.
fn waited(view: &View) -> Result<f64, Missing> {
    let side = &view.receiver;
    Ok(side.sink_share()?.min(stopped_share(side)?))
}

/// Share of the time in which the receiver waited for its sink, percent.
fn witness(view: &View) -> Result<f64, Missing> {
    Ok(waited(view)? * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, fires, quiet};
    use goodput_model::Place;

    fn slow_disk() -> Case {
        let case = Case::healthy().shares(1.0, 0.9, 0.0).reader(0.05, 0.0, 0.15).queued(900_000);
        case.waiting(0.02, 0.02).sink(0.75)
    }

    #[test]
    fn fires_on_a_slow_disk() {
        let finding = fires(&RULE, slow_disk());
        assert_eq!((finding.end, finding.confidence), (Place::Far, Confidence::Certain));
    }

    #[test]
    fn stays_quiet_where_the_reader_waits_or_runs() {
        quiet(&RULE, slow_disk().reader(0.9, 0.0, 0.05).sink(0.04));
        quiet(&RULE, slow_disk().reader(0.0, 0.0, 0.98).sink(0.6));
        quiet(&RULE, Case::receive_window());
    }
}
