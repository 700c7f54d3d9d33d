//! The loop of every mover that sends datagrams; a mover brings only its [`Outbox`].

use std::os::fd::AsFd;

use rustix::io::Errno;

use super::header;
use super::outbox::Outbox;
use crate::clock::now_ns;
use crate::error::MoveError;
use crate::flow::Flow;
use crate::pace::Pacer;
use crate::stop::Phase;

/// End markers of a flow: as any of them may be lost, several, spread over
/// `END_MARKERS * END_GAP_NS`, which stays well below the 100 ms in which a sender must stop.
const END_MARKERS: usize = 5;
/// Time between two end markers, nanoseconds.
const END_GAP_NS: u64 = 10_000_000;
/// Pause after `ENOBUFS`, nanoseconds: a queue below the socket is full, and poll(2) does not
/// tell when it has room again.
const QUEUE_FULL_NS: u64 = 1_000_000;

/// Sends datagrams of `size` bytes until the limit or the stop, one by one where they are paced,
/// then tells the receiver that this was all.
pub(crate) fn send(flow: &Flow, mut outbox: Outbox, size: usize) -> Result<(), MoveError> {
    send_all(flow, &mut outbox, size)?;
    flow.payload_is_over();
    end(flow, &outbox)
}

fn send_all(flow: &Flow, outbox: &mut Outbox, size: usize) -> Result<(), MoveError> {
    let mut left = flow.config.limit_bytes.unwrap_or(u64::MAX);
    let mut pacer = Pacer::for_datagrams(flow, size);
    let most = if pacer.is_paced() { 1 } else { outbox.batch() };
    while left > 0 && flow.may_send() {
        if !pacer.wait(flow)? {
            continue;
        }
        let (count, size) = next_batch(left, size, most);
        match outbox.send(flow.socket.as_fd(), count, size) {
            Ok(sent) => {
                let bytes = sent * size;
                flow.counters.sent_datagrams(sent as u64);
                flow.counters.moved(bytes as u64);
                left = left.saturating_sub(bytes as u64);
                pacer.sent(bytes);
            }
            Err(cause) => wait_after(flow, cause)?,
        }
    }
    Ok(())
}

/// How many datagrams of which size: full ones as long as there are bytes for them, then one with
/// the rest, which is never smaller than its header.
fn next_batch(left: u64, size: usize, most: usize) -> (usize, usize) {
    let full = left / size as u64;
    match usize::try_from(full).unwrap_or(usize::MAX).min(most) {
        0 => (1, (left as usize).max(header::LEN)),
        count => (count, size),
    }
}

/// Waits until a datagram can be sent again; any other error ends the flow.
fn wait_after(flow: &Flow, cause: Errno) -> Result<(), MoveError> {
    match cause {
        Errno::AGAIN => flow.wait_writable(),
        Errno::NOBUFS => flow.wait_blocked(QUEUE_FULL_NS),
        Errno::INTR => Ok(()),
        cause => Err(flow.failed("send a datagram", cause)),
    }
}

/// Tells the receiver that this was all, as well as that can be done with datagrams.
fn end(flow: &Flow, outbox: &Outbox) -> Result<(), MoveError> {
    for _ in 0..END_MARKERS {
        if flow.stop.phase() == Phase::Abort {
            return Err(flow.aborted());
        }
        // A receiver that has seen the first one may be gone already and refuse the next; one that
        // does not fit into the socket is like one that gets lost.
        let _ = outbox.send_end(flow.socket.as_fd());
        flow.park(None, Some(now_ns() + END_GAP_NS))?;
    }
    debug_assert_eq!(flow.counters.datagrams().sent, outbox.sent());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_datagram_takes_the_rest() {
        assert_eq!(next_batch(10_000, 1000, 32), (10, 1000));
        assert_eq!(next_batch(100_000, 1000, 32), (32, 1000));
        assert_eq!(next_batch(100_000, 1000, 1), (1, 1000));
        assert_eq!(next_batch(999, 1000, 32), (1, 999));
        assert_eq!(next_batch(5, 1000, 32), (1, header::LEN));
    }
}
