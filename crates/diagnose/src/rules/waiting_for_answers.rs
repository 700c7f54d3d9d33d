//! # What it means
//! The client spent much of the time waiting for a file server's answers.
//!
//! # Why it limits
//! A flow moves no payload while it waits for an answer.
//!
//! # How it is seen
//! For at least 30 % of the flows' time, goodput waited from the last byte of one file to the first byte of the next. For
//! uploads, only the time counts in which the kernel had nothing left to send.
//!
//! # What to try
//! Fetch one long file instead of many short ones, keep the connection open, or use several
//! connections at once (`--flows`). If the first byte takes many round trips, look at the server:
//! its disk, its program, its name lookups.
//!
//! # When it is wrong
//! goodput can't see what the server does meanwhile: its disk, its program and a proxy on the path
//! look alike. If each file needs a new connection, as with FTP, connecting is part of the time.
//!
//! # Source
//! RFC 9112 section 9.3 (connections that persist); RFC 959 section 3.2 (a data connection for each file).

use goodput_model::{Confidence, EndName, Fetches, Finding, Missing, Place};

use crate::bounds::next_after;
use crate::finding::{Draft, bytes, percent, time};
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::thresholds::MIN_STOPPED_TIME_SHARE;
use crate::view::View;

/// The rule.
pub const RULE: Rule = Rule {
    id: "waiting-for-answers",
    title: "The file server takes long to answer",
    refines: &[parts::SENDING_PROGRAM],
    depth: Depth::Reason,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "waiting_for_answers_percent",
    witness_words: ("time waiting for answers", " %"),
    source: include_str!("waiting_for_answers.rs"),
};

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    // This end asks, whether it fetches or stores.
    let (server, own) = (Place::Far, Place::Near);
    view.side(EndName::Near).elapsed_s()?;
    let Some(fetches) = view.fetches() else { return Ok(None) };
    let share = *fetches.asking_share.get()?;
    if share < MIN_STOPPED_TIME_SHARE {
        return Ok(None);
    }
    Draft::new(RULE.id, server, Confidence::Possible, "the server of files takes long to answer")
        .share(share)
        .saw(
            own,
            RULE.witness_name,
            share * 100.0,
            format!("no payload could move {} of the time, between two files", percent(share)),
        )
        .saw_if(own, "first_byte_us", fetches.first_byte_us.get().copied(), |us| {
            format!("an answer took {} to begin (median)", time(us / 1e6))
        })
        .saw_if(own, "file_bytes", length(fetches), |length| {
            format!("each file has {}", bytes(length))
        })
        .predicted(next_after(view, &[RULE.id, "sender-application"]))
        .advice("move a longer file, or several at the same time (--flows); what the server did in the meantime can't be seen from here")
        .found()
}

fn length(fetches: &Fetches) -> Result<f64, Missing> {
    Ok(*fetches.file_bytes.get()? as f64)
}

/// Share of the flows' time between two files, percent.
fn witness(view: &View) -> Result<f64, Missing> {
    let fetches = view.fetches().ok_or_else(|| Missing::because("the target is no file"))?;
    Ok(*fetches.asking_share.get()? * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, fires, quiet};

    #[test]
    fn fires_on_many_short_files() {
        let finding = fires(&RULE, Case::sender_application().asking(0.6));
        assert_eq!((finding.end, finding.confidence), (Place::Far, Confidence::Possible));
        assert!(finding.evidence.iter().any(|w| w.text.contains("60 %")), "{finding:?}");
    }

    #[test]
    fn stays_quiet_on_long_files_and_other_targets() {
        quiet(&RULE, Case::sender_application().asking(0.1));
        quiet(&RULE, Case::sender_application());
    }

    #[test]
    fn an_upload_needs_nothing_of_the_server() {
        // The samples of a server of files are not there: only this end, which sends, has some.
        fires(&RULE, Case::sender_application().without_far().asking(0.6).uploaded());
    }
}
