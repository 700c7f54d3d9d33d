//! The loop of every mover that sends datagrams.

use goodput_framing::Datagrams;
use rustix::io::{Errno, Result as SysResult};

use super::edges;
use super::outbox::{MAX_MESSAGES, Outbox};
use super::refusals::Refusals;
use super::sender::DatagramSender;
use crate::clock::now_ns;
use crate::error::MoveError;
use crate::flow::Flow;
use crate::liveness::{Looks, SILENCE_S};
use crate::pace::Pacer;
use crate::turn::Turn;

/// Pause after `ENOBUFS`, nanoseconds: a queue below the socket is full, and poll(2) does not report when it has room
/// again.
const QUEUE_FULL_NS: u64 = 1_000_000;

/// Sends datagrams of `size` bytes until the limit or the stop, then reports the end to the receiver. `joined`
/// datagrams make a message, and up to `messages` messages a system call; if paced, no more datagrams than may leave at
/// once.
pub(crate) fn send(
    flow: &Flow,
    size: usize,
    joined: usize,
    messages: usize,
) -> Result<(), MoveError> {
    send_in(flow, size, |datagrams, size| Outbox::new(datagrams, size, joined, messages))
}

/// The same; if the path does not take joined datagrams, they go one by one.
pub(crate) fn send_if_taken(
    flow: &Flow,
    size: usize,
    joined: usize,
    messages: usize,
) -> Result<(), MoveError> {
    let outbox = |datagrams, size| Outbox::new(datagrams, size, joined, messages).if_taken();
    send_in(flow, size, outbox)
}

fn send_in(
    flow: &Flow,
    size: usize,
    outbox: impl FnOnce(Box<dyn Datagrams>, usize) -> Outbox,
) -> Result<(), MoveError> {
    let datagrams = flow.config.datagrams();
    let size = size.max(datagrams.least());
    let pacer = Pacer::for_datagrams(flow, size);
    send_with(flow, outbox(datagrams, size), size, pacer)
}

/// The same, but the kernel is given each datagram's departure time. Requires `SO_TXTIME`.
pub(crate) fn send_timed(flow: &Flow, size: usize) -> Result<(), MoveError> {
    let datagrams = flow.config.datagrams();
    let size = size.max(datagrams.least());
    let pacer = Pacer::for_departures(flow, size);
    send_with(flow, Outbox::new(datagrams, size, 1, MAX_MESSAGES), size, pacer)
}

/// The same by another way to send.
pub(crate) fn send_with(
    flow: &Flow,
    mut way: impl DatagramSender,
    size: usize,
    pacer: Pacer,
) -> Result<(), MoveError> {
    edges::begin(flow, way.datagrams())?;
    send_all(flow, &mut way, size, pacer)?;
    way.settle(flow)?;
    flow.payload_is_over();
    debug_assert_eq!(flow.counters.datagrams().sent, way.sent());
    edges::end(flow, &mut way)
}

fn send_all(
    flow: &Flow,
    way: &mut impl DatagramSender,
    size: usize,
    mut pacer: Pacer,
) -> Result<(), MoveError> {
    let mut left = flow.config.limit_bytes.unwrap_or(u64::MAX);
    let settled = way.datagrams().settling_ns().map(|settling| now_ns() + settling);
    let most = match (pacer.is_paced(), flow.config.lockstep.is_some()) {
        (_, true) => 1,
        (true, false) => (pacer.piece / size).clamp(1, way.batch()),
        (false, false) => way.batch(),
    };
    let (mut turn, mut looks) = (Turn::of(flow), Looks::default());
    let mut refusals = Refusals::default();
    while left > 0 && turn.may_send(flow)? {
        if looks.find_silence(flow.stop.liveness()) {
            return Err(MoveError::Silence { flow: flow.config.id, seconds: SILENCE_S });
        }
        if !pacer.wait(flow)? {
            continue;
        }
        let departures = pacer.departures(size);
        let (count, size) = next_batch(left, size, most, way.datagrams().least());
        let sent = match way.send(flow, count, size, departures) {
            Err(Errno::PERM) => lose(flow, way, count, &mut refusals),
            sent => sent,
        };
        match sent {
            Ok(sent) => {
                let bytes = sent * size;
                flow.counters.sent_datagrams(sent as u64);
                flow.counters.moved(bytes as u64);
                left = left.saturating_sub(bytes as u64);
                turn.sent(bytes);
                pacer.sent(flow, bytes);
            }
            // Lost, as far as this end knows.
            Err(Errno::CONNREFUSED) if settled.is_some_and(|settled| now_ns() < settled) => {}
            Err(cause) => wait_after(flow, way, cause)?,
        }
    }
    // A rule that forbids the packets may not have shown it before the end.
    let refused = flow.counters.datagrams().refused;
    if refused > 0 && way.sent() == refused {
        return Err(flow.failed("send a datagram", Errno::PERM));
    }
    Ok(())
}

/// Datagrams that a firewall of this host dropped, as sent ones that are lost, if it only limits them.
fn lose(
    flow: &Flow,
    way: &mut impl DatagramSender,
    count: usize,
    refusals: &mut Refusals,
) -> SysResult<usize> {
    let passed = way.sent() - flow.counters.datagrams().refused;
    let lost = if refusals.is_loss(passed, now_ns()) { way.lose(count) } else { 0 };
    flow.counters.refused_datagrams(lost as u64);
    if lost > 0 { Ok(lost) } else { Err(Errno::PERM) }
}

/// How many datagrams of which size: full ones as long as there are bytes for them, then one with the rest, but never
/// smaller than `least`, the format's minimum.
fn next_batch(left: u64, size: usize, most: usize, least: usize) -> (usize, usize) {
    let full = left / size as u64;
    match usize::try_from(full).unwrap_or(usize::MAX).min(most) {
        0 => (1, (left as usize).max(least)),
        count => (count, size),
    }
}

/// Waits until a datagram can be sent again; any other error ends the flow, unless it is over.
fn wait_after(flow: &Flow, way: &mut impl DatagramSender, cause: Errno) -> Result<(), MoveError> {
    match cause {
        Errno::AGAIN => way.wait(flow),
        Errno::NOBUFS => flow.wait_blocked(QUEUE_FULL_NS),
        Errno::INTR => Ok(()),
        // The receiver knew of the end before this sender.
        Errno::CONNREFUSED if !flow.may_send() => Ok(()),
        cause => Err(flow.failed("send a datagram", cause)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::sync::Arc;

    use goodput_framing::Closing;
    use goodput_model::{Role, Transport};

    use super::super::sender::DepartureTimes;
    use crate::flow::FlowConfig;
    use crate::{Gate, Stop};

    /// A way past a firewall rule that lets only the datagrams with these numbers pass.
    struct Policed {
        datagrams: Box<dyn Datagrams>,
        next: u64,
        passes: fn(u64) -> bool,
    }

    impl DatagramSender for Policed {
        fn datagrams(&self) -> &dyn Datagrams {
            self.datagrams.as_ref()
        }

        fn batch(&self) -> usize {
            1
        }

        fn sent(&self) -> u64 {
            self.next
        }

        fn send(
            &mut self,
            _flow: &Flow,
            _count: usize,
            _size: usize,
            _departures: Option<DepartureTimes>,
        ) -> SysResult<usize> {
            if !(self.passes)(self.next) {
                return Err(Errno::PERM);
            }
            self.next += 1;
            Ok(1)
        }

        fn lose(&mut self, count: usize) -> usize {
            self.next += count as u64;
            count
        }

        fn closing(&mut self, _round: u64) -> Option<(&[u8], Closing)> {
            None
        }
    }

    fn sent_past(
        passes: fn(u64) -> bool,
    ) -> (Result<(), MoveError>, goodput_model::DatagramCounts) {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut config = FlowConfig::new(Role::Sender, Transport::Udp, 100);
        config.limit_bytes = Some(1000);
        let flow = Flow {
            config,
            socket: Arc::new(socket.into()),
            counters: Arc::default(),
            stop: Arc::new(Stop::new().unwrap()),
            gate: Arc::new(Gate::default()),
            began: Arc::default(),
            over: Arc::default(),
        };
        let datagrams = goodput_framing::goodput().datagrams(0, 100);
        let mut way = Policed { datagrams, next: 0, passes };
        let outcome = send_all(&flow, &mut way, 100, Pacer::for_datagrams(&flow, 100));
        (outcome, flow.counters.datagrams())
    }

    #[test]
    fn what_a_firewall_limits_is_lost_and_what_it_forbids_is_refused() {
        let (outcome, counts) = sent_past(|number| number % 4 == 0);
        assert!(outcome.is_ok(), "{outcome:?}");
        assert_eq!((counts.sent, counts.refused), (10, 7));
        // All are over before a limit would have had to let one pass.
        let (outcome, counts) = sent_past(|_| false);
        assert!(outcome.is_err() && counts.refused > 0, "{outcome:?}");
        assert_eq!(counts.sent, counts.refused);
    }

    #[test]
    fn the_last_datagram_takes_the_rest() {
        assert_eq!(next_batch(10_000, 1000, 32, 12), (10, 1000));
        assert_eq!(next_batch(100_000, 1000, 32, 12), (32, 1000));
        assert_eq!(next_batch(100_000, 1000, 1, 12), (1, 1000));
        assert_eq!(next_batch(999, 1000, 32, 12), (1, 999));
        assert_eq!(next_batch(5, 1000, 32, 12), (1, 12));
    }
}
