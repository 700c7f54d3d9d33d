//! # What it means
//! A low-water mark on unsent data keeps the writer waiting although the kernel has too little to
//! send.
//!
//! # Why it limits
//! Above the mark a socket accepts no more data. What it holds must last until the writer has woken
//! up and written again: rate = mark / time to wake.
//!
//! # How it is seen
//! The writer waited for space in its send buffer for at least half of the time, yet the kernel ran out
//! of data (tcp_info app_limited) while the send buffer was far from full. The mark is set:
//! `net.ipv4.tcp_notsent_lowat`.
//!
//! # What to try
//! Raise the mark to a few milliseconds of the path's rate, or remove it.
//!
//! # When it is wrong
//! A full send buffer differs only in its fill, and is left to send-buffer. With half to two thirds
//! of the buffer in use the two look alike, and both are only possible. On an idle host a writer
//! that is woken at once refills the socket in time; the mark then costs nothing, and the path's
//! rate is found. A mark that a program set on its own socket can't be seen.
//!
//! # Source
//! tcp(7) (`TCP_NOTSENT_LOWAT`); include/net/tcp.h (`tcp_stream_memory_free`).

use goodput_model::{Confidence, Finding, Missing};

use crate::bounds::next_after;
use crate::change::of_host;
use crate::finding::{Draft, bytes, percent};
use crate::known_rate::path_is_full;
use crate::low_water::{UNSET_LOW_WATER_BYTES, mark, may_hold};
use crate::names::TCP_NOTSENT_LOWAT;
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::view::View;

/// The rule.
pub const RULE: Rule = Rule {
    id: "notsent-lowat",
    title: "A low-water mark on unsent data keeps the writer waiting",
    refines: &[parts::SEND_BUFFER, parts::SENDING_PROGRAM],
    depth: Depth::Reason,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "dry_while_writer_waits_percent",
    witness_words: ("time with nothing to send while the writer waits", " %"),
    source: include_str!("notsent_lowat.rs"),
};

/// Share of the send memory in use below which the buffer is not what the writer waits for.
const MAX_SEND_MEMORY_SHARE: f64 = 0.5;
fn check(view: &View) -> Result<Option<Finding>, Missing> {
    if !may_hold(view)? || path_is_full(view) {
        return Ok(None);
    }
    let (side, place) = (&view.sender, view.sender.place());
    let (text, mark) = (side.text(TCP_NOTSENT_LOWAT)?, mark(view)?);
    let (waits, dry) = (side.blocked_share()?, side.app_limited_share()?);
    let empty = side.send_buffer_fill()? < MAX_SEND_MEMORY_SHARE;
    let confidence = if empty { Confidence::Likely } else { Confidence::Possible };
    let set = format!(
        "the socket takes no more while {} are unsent (tcp_notsent_lowat)",
        bytes(mark as f64)
    );
    let values = (Some(text.to_string()), UNSET_LOW_WATER_BYTES.to_string());
    let why = "accepts as much as the send buffer holds";
    Draft::new(RULE.id, place, confidence, "the low-water mark on unsent data (tcp_notsent_lowat)")
        .share(waits.min(dry))
        .saw(place, TCP_NOTSENT_LOWAT, mark as f64, set)
        .saw(
            place,
            RULE.witness_name,
            waits.min(dry) * 100.0,
            format!(
                "the writer waited for space in its send buffer {} of the time, yet TCP had nothing left to send in {} of the samples (tcp_info app_limited)",
                percent(waits),
                percent(dry)
            ),
        )
        .saw_if(place, "send_buffer_fill_percent", side.send_buffer_fill(), |fill| {
            format!("only {} of the send buffer was in use", percent(fill))
        })
        .predicted(next_after(view, &[RULE.id, "send-buffer"]))
        .changes([of_host(side, TCP_NOTSENT_LOWAT, None, values, why)])
        .found()
}

/// Share of the time that the writer waited while the kernel had nothing to send, percent.
fn witness(view: &View) -> Result<f64, Missing> {
    view.needs_tcp()?;
    Ok(view.sender.blocked_share()?.min(view.sender.app_limited_share()?) * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::EndName::Near;

    fn marked() -> Case {
        let case = Case::send_buffer().plan(|plan| plan.socket.sndbuf_bytes = None);
        case.send_queue(0.05).fact(Near, TCP_NOTSENT_LOWAT, "1024")
    }

    #[test]
    fn a_writer_that_waits_beside_an_empty_buffer_is_held_by_the_mark() {
        let finding = fires(&RULE, marked());
        let change = finding.changes[0].as_argument();
        assert_eq!(change, "sysctl.net.ipv4.tcp_notsent_lowat=1024,4294967295");
    }

    #[test]
    fn a_full_buffer_no_mark_and_a_kernel_with_data_are_quiet() {
        quiet(&RULE, marked().send_queue(0.95));
        quiet(&RULE, marked().fact(Near, TCP_NOTSENT_LOWAT, "4294967295"));
        quiet(&RULE, marked().app_limited(0.0));
    }

    #[test]
    fn cannot_tell_without_the_setting() {
        cannot_tell(&RULE, marked().without(Near, "sysctl"));
    }
}
