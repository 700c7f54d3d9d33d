//! The receiver's answer at the end, like the report of iperf 2's server.

use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::net::{SendFlags, send};

use super::inbox::Inbox;
use super::tally::Tally;
use crate::clock::now_ns;
use crate::error::MoveError;
use crate::flow::Flow;
use crate::stop::Phase;

/// The most times to send the answer, and how long to wait after each for datagrams that show that it was lost,
/// nanoseconds (`write_UDP_AckFIN`, src/Reports.c of iperf 2.1.8).
const MAX_ANSWERS: usize = 10;
const LISTEN_NS: u64 = 250_000_000;

/// Answers until the sender falls silent. Only datagrams vouch for the sender, so never more bytes go out than
/// came in.
pub(super) fn answer(flow: &Flow, tally: &mut Tally, inbox: &mut Inbox) -> Result<(), MoveError> {
    let Some(answer) = tally.datagrams.answer(&tally.summary()) else { return Ok(()) };
    let (len, mut sent) = (answer.len() as u64, 0);
    for _ in 0..MAX_ANSWERS {
        if sent + len <= tally.came_bytes() {
            sent += len;
            // An answer that can't be sent is like one that gets lost.
            if send(&flow.socket, &answer, SendFlags::empty()) == Err(Errno::CONNREFUSED) {
                break;
            }
        }
        if !hears_more(flow, tally, inbox)? {
            break;
        }
    }
    Ok(())
}

/// Whether more datagrams come in time: then the sender has not received the answer.
fn hears_more(flow: &Flow, tally: &mut Tally, inbox: &mut Inbox) -> Result<bool, MoveError> {
    let until = now_ns() + LISTEN_NS;
    while now_ns() < until {
        if flow.stop.phase() == Phase::Abort {
            return Err(flow.aborted());
        }
        match inbox.receive(flow.socket.as_fd(), |arrival| tally.overhear(&arrival)) {
            Ok(_) => return Ok(true),
            Err(Errno::AGAIN) => flow.wait_readable(Some(until))?,
            Err(Errno::INTR) => {}
            // The sender has its answer and is gone.
            Err(_) => return Ok(false),
        }
        if flow.stop.deadline_ns().is_some_and(|end| now_ns() >= end) {
            return Ok(false);
        }
    }
    Ok(false)
}
