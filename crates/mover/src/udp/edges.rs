//! What a sender sends before its first datagram and after its last, and what it hears then.

use goodput_framing::Datagrams;
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::sender::DatagramSender;
use crate::clock::now_ns;
use crate::error::MoveError;
use crate::flow::Flow;
use crate::stop::Phase;

/// Room for an answer, bytes: servers of iperf before 2.1 pad it to the 1470 of a datagram.
const ANSWER_BYTES: usize = 2048;

/// Announces payload to the receiver. The payload's clock begins with this.
pub(super) fn begin(flow: &Flow, datagrams: &dyn Datagrams) -> Result<(), MoveError> {
    for marker in datagrams.opening() {
        if !flow.may_send() {
            return Ok(());
        }
        // A lost marker is made up for by the next, or by the receiver. A send that fails because a receiver that was
        // not ready refused the previous marker has sent nothing.
        let say = || send(&flow.socket, marker.datagram, SendFlags::empty());
        if say() == Err(Errno::CONNREFUSED) {
            let _ = say();
        }
        let until = now_ns() + marker.pause_ns;
        // Does not count as paced: it is not part of the payload's time, and holds no rate.
        while flow.may_send() && now_ns() < until {
            flow.park(None, Some(until))?;
        }
    }
    flow.payload_began(now_ns());
    Ok(())
}

/// Reports the end to the receiver, as well as datagrams allow, and hears its answer.
pub(super) fn end(flow: &Flow, way: &mut impl DatagramSender) -> Result<(), MoveError> {
    for round in 0.. {
        let Some((datagram, closing)) = way.closing(round) else { break };
        match send(&flow.socket, datagram, SendFlags::empty()) {
            Ok(sent) if closing.is_payload => {
                flow.counters.sent_datagrams(1);
                flow.counters.moved(sent as u64);
            }
            // A receiver that has seen an earlier marker may be gone already.
            Err(Errno::CONNREFUSED) => break,
            // A marker that does not fit into the socket is like one that gets lost.
            _ => {}
        }
        if pause(flow, way.datagrams(), now_ns() + closing.pause_ns)? || is_late(flow) {
            break;
        }
    }
    Ok(())
}

/// Waits until `until`. `true`: the receiver answered before that.
fn pause(flow: &Flow, datagrams: &dyn Datagrams, until: u64) -> Result<bool, MoveError> {
    let events = datagrams.awaits_answer().then_some(PollFlags::IN);
    let mut buffer = [0; ANSWER_BYTES];
    while now_ns() < until && !is_late(flow) {
        if flow.stop.phase() == Phase::Abort {
            return Err(flow.aborted());
        }
        flow.park(events, Some(until))?;
        if events.is_none() {
            continue;
        }
        match recv(&flow.socket, &mut buffer[..], RecvFlags::DONTWAIT) {
            Ok((len, _)) => {
                if let Some(totals) = datagrams.hear(flow.config.id, &buffer[..len]) {
                    flow.counters.record_peer_report(totals);
                    return Ok(true);
                }
            }
            // Nobody is there to answer any longer.
            Err(Errno::CONNREFUSED) => return Ok(true),
            Err(_) => {}
        }
    }
    Ok(false)
}

/// Whether the deadline of the stop has passed.
fn is_late(flow: &Flow) -> bool {
    flow.stop.deadline_ns().is_some_and(|end| now_ns() >= end)
}
