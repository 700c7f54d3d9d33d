//! # What it means
//! The sent file is read more slowly than the network could carry it.
//!
//! # Why it limits
//! The sender can't send what it has not read.
//!
//! # How it is seen
//! For at least 30 % of the time the sender's thread neither ran nor waited for the socket, for its
//! pace or for a CPU. It spent at least as long in the calls that read the source.
//!
//! # What to try
//! A file that is in the page cache (leave out `--cold`), larger read-ahead, or a faster disk.
//!
//! # When it is wrong
//! If one call reads and sends (`sendfile`, `mmap-send`, `zerocopy`), only its sleep is known. On a
//! crowded host a wait for a CPU is part of that sleep; the kernel's count of such waits is
//! subtracted.
//!
//! # Source
//! mm/filemap.c (`filemap_read`, which waits for pages that are not there); posix_fadvise(2).

use goodput_model::{Confidence, Finding, Missing};

use crate::bounds::next_after;
use crate::cpu_bound::{is_throttled, stopped_share};
use crate::finding::{Draft, percent, rate};
use crate::names::{SOURCE_ALONE, SOURCE_RESIDENT};
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::thresholds::MIN_STOPPED_TIME_SHARE;
use crate::view::View;

/// The rule.
pub const RULE: Rule = Rule {
    id: "storage-read",
    title: "Reading the source is too slow",
    refines: &[parts::SENDING_PROGRAM],
    depth: Depth::Reason,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "source_wait_percent",
    witness_words: ("time waiting for the source", " %"),
    source: include_str!("storage_read.rs"),
};

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    let (side, place) = (&view.sender, view.sender.place());
    side.elapsed_s()?;
    if view.plan().storage.source.is_none() {
        return Ok(None);
    }
    let share = waited(view)?;
    if share < MIN_STOPPED_TIME_SHARE || is_throttled(side) {
        return Ok(None);
    }
    let confidence =
        if side.cpu_wait_share().is_ok() { Confidence::Certain } else { Confidence::Possible };
    Draft::new(RULE.id, place, confidence, "reading the source is too slow")
        .share(share)
        .saw(
            place,
            RULE.witness_name,
            share * 100.0,
            format!("the sender waited for its source {} of the time", percent(share)),
        )
        .saw_if(place, SOURCE_ALONE, side.number(SOURCE_ALONE), |alone| {
            format!("the source alone, without the network, gave {}", rate(alone))
        })
        .saw_if(place, SOURCE_RESIDENT, side.number(SOURCE_RESIDENT), |resident| {
            format!("{resident:.0} % of the source was in the page cache before")
        })
        .saw_if(place, "writer_blocked_percent", side.blocked_share(), |blocked| {
            side.waits_text(blocked)
        })
        .predicted(next_after(view, &[RULE.id, "sender-application"]))
        .advice("send data that is already in the page cache, or use a faster disk")
        .found()
}

/// Share of the time in which the sender's thread slept in the calls that read its source.
fn waited(view: &View) -> Result<f64, Missing> {
    let side = &view.sender;
    Ok(side.source_share()?.min(stopped_share(side)?))
}

/// Share of the time in which the sender waited for its source, percent.
fn witness(view: &View) -> Result<f64, Missing> {
    Ok(waited(view)? * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, fires, quiet};
    use goodput_model::EndName::Near;
    use goodput_model::Place;

    fn slow_disk() -> Case {
        Case::sender_application().writer(0.1, 0.0, 0.15).waiting(0.02, 0.02).source(0.8)
    }

    #[test]
    fn fires_on_a_slow_disk_and_explains_the_program() {
        let finding = fires(&RULE, slow_disk().fact(Near, SOURCE_ALONE, 8e8));
        assert_eq!((finding.end, finding.confidence), (Place::Near, Confidence::Certain));
        assert!(finding.evidence.iter().any(|w| w.text.contains("800 Mbit/s")), "{finding:?}");
    }

    #[test]
    fn stays_quiet_where_the_network_or_the_cpu_holds_the_sender() {
        quiet(&RULE, slow_disk().writer(0.9, 0.0, 0.05).source(0.04));
        // Copies from the page cache: in the calls that read half of the time, and running.
        quiet(&RULE, slow_disk().writer(0.0, 0.0, 0.98).source(0.5));
        // Crowded: what looks like a sleep is a wait for a CPU.
        quiet(&RULE, slow_disk().waiting(0.7, 0.1));
    }

    #[test]
    fn memory_is_no_source() {
        quiet(&RULE, Case::sender_application());
    }
}
