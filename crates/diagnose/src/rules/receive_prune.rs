//! # What it means
//! The receiving socket drops segments that arrived, because it has no memory to keep them.
//!
//! # Why it limits
//! The kernel charges memory for whole buffers, so short segments fill the receive buffer before
//! the window is used up. A reader that holds the socket fills its backlog. Dropped segments must
//! be sent again, and the sender slows down as for any loss.
//!
//! # How it is seen
//! TCP sockets of the receiving host dropped at least half of what the flows lost, and that loss
//! limits.
//!
//! # What to try
//! A larger receive buffer, larger segments and writes, receive offload.
//!
//! # When it is wrong
//! The counters are for the whole network namespace: if there are far more drops than losses, the
//! others belong to other programs.
//!
//! # Source
//! net/ipv4/tcp_input.c (`tcp_try_rmem_schedule`, `tcp_prune_queue`, `tcp_data_queue`);
//! net/ipv4/tcp_ipv4.c (`tcp_add_backlog`); Documentation/networking/snmp_counter.rst.

use goodput_model::{Change, Finding, Missing};

use crate::bounds::next_after;
use crate::change::{larger_rmem, of_plan};
use crate::finding::Draft;
use crate::lost_here::LostHere;
use crate::names::{
    TCP_BACKLOG_DROP, TCP_OUT_OF_ORDER_DROP, TCP_PRUNE_CALLED, TCP_RECEIVE_DROP,
    TCP_ZERO_WINDOW_DROP,
};
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::view::{Side, View};

/// The rule.
pub const RULE: Rule = Rule {
    id: "receive-prune",
    title: "The receiving socket drops segments for lack of memory",
    refines: parts::LOSSES,
    depth: Depth::Reason,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "segments_dropped_by_sockets",
    witness_words: ("segments dropped by sockets", ""),
    source: include_str!("receive_prune.rs"),
};

/// The counters of dropped segments, with what is said of them.
const DROPS: [(&str, &str); 4] = [
    (TCP_RECEIVE_DROP, "in order, because the buffer was full"),
    (TCP_OUT_OF_ORDER_DROP, "out of order, because the buffer was full"),
    (TCP_BACKLOG_DROP, "because the reader held the socket and its backlog was full"),
    (TCP_ZERO_WINDOW_DROP, "beyond a closed window"),
];

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    let drops = drops(&view.receiver)?;
    if !view.is_tcp() {
        return Ok(None);
    }
    let Some(lost) = LostHere::of(view, drops)? else { return Ok(None) };
    let (side, place) = (&view.receiver, view.receiver.place());
    let summary = "the receiving socket's memory, too small for what arrives";
    let mut draft = Draft::new(RULE.id, place, lost.confidence(), summary);
    for (name, what) in DROPS {
        if let Ok(count @ 1..) = side.grown(name) {
            draft = draft.saw(place, name, count as f64, format!("{count} dropped {what}"));
        }
    }
    draft
        .saw(view.sender.place(), "lost", lost.lost, lost.text(view))
        .saw_if(place, TCP_PRUNE_CALLED, side.grown(TCP_PRUNE_CALLED).map(|n| n as f64), |times| {
            format!("the socket's queue was pruned {times:.0} times (PruneCalled)")
        })
        .saw_if(place, "receive_buffer_bytes", side.receive_buffer_bytes(), |bytes| {
            format!("the socket's receive buffer is {bytes:.0} bytes")
        })
        .predicted(next_after(view, &[RULE.id]))
        .changes(larger_buffer(view))
        .advice("larger writes and segments, and receive offload, need less memory for each byte")
        .found()
}

/// Segments that sockets of the receiving host dropped. Counters that a kernel lacks count as nothing
/// seen, as long as one is there.
fn drops(side: &Side) -> Result<f64, Missing> {
    let read = DROPS.map(|(name, _)| side.grown(name));
    if let (false, Some(Err(why))) = (read.iter().any(Result::is_ok), read.first()) {
        return Err(why.clone());
    }
    Ok(read.iter().flatten().map(|count| *count as f64).sum())
}

fn larger_buffer(view: &View) -> Option<Change> {
    match view.plan().socket.rcvbuf_bytes {
        Some(bytes) => {
            let why = "lets the kernel tune the buffer";
            Some(of_plan("socket.rcvbuf", Some(bytes.0.to_string()), "default", why))
        }
        None => larger_rmem(view),
    }
}

/// Segments that sockets of the receiving host dropped.
fn witness(view: &View) -> Result<f64, Missing> {
    drops(&view.receiver)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::EndName::Far;
    use goodput_model::{Bytes, Confidence, Place};

    fn pruned(drops: u64) -> Case {
        Case::path_loss().grows(Far, TCP_RECEIVE_DROP, drops)
    }

    #[test]
    fn fires_where_the_socket_dropped_what_was_sent_again() {
        let finding = fires(&RULE, pruned(7));
        assert_eq!((finding.end, finding.confidence), (Place::Far, Confidence::Certain));
        assert_eq!(finding.changes[0].setting.to_string(), "far:sysctl.net.ipv4.tcp_rmem");
    }

    #[test]
    fn a_fixed_buffer_is_left_to_the_kernel() {
        let case = pruned(7).plan(|plan| plan.socket.rcvbuf_bytes = Some(Bytes(8192)));
        assert_eq!(fires(&RULE, case).changes[0].as_argument(), "socket.rcvbuf=8192,default");
    }

    #[test]
    fn drops_of_a_few_or_of_others_are_not_the_reason() {
        quiet(&RULE, pruned(1));
        quiet(&RULE, Case::healthy().grows(Far, TCP_RECEIVE_DROP, 7));
        assert_eq!(fires(&RULE, pruned(1000)).confidence, Confidence::Likely);
    }

    #[test]
    fn cannot_tell_without_the_far_end() {
        cannot_tell(&RULE, pruned(7).without_far());
    }
}
