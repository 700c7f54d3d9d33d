//! How a flow ends that has no end marker of its own.
//!
//! If a protocol reports on its control connection that all was sent, the report may overtake payload in flight, and
//! the data connection stays open. A receiver then reads until nothing has arrived for a while. A lost segment arrives
//! again after a round trip or two. A segment that takes a timeout of its sender comes later, too late to wait for in
//! every test.
//!
//! A sender that has to hear of the end may be silent for any time before, because it waits for a CPU. If it announces
//! that it has stopped, its silence counts only from then on.

use std::os::fd::AsFd;

use goodput_model::Transport;

use crate::clock::now_ns;
use crate::flow::Flow;
use crate::socket;

/// Round trips of silence: one for the notice that a segment is missing, one for its retransmission, and as many for
/// queues that fill or drain meanwhile.
const QUIET_ROUND_TRIPS: u64 = 4;
/// Bounds of the wait, nanoseconds: how long a busy host may suspend its threads, and a delay that nobody minds at the
/// end of a test.
const MIN_QUIET_NS: u64 = 50_000_000;
const MAX_QUIET_NS: u64 = 250_000_000;
/// The wait for datagrams after another connection has reported that all were sent: they are not retransmitted, and
/// nobody measures their round trip.
const DATAGRAM_QUIET_NS: u64 = 100_000_000;
/// The wait for datagrams that mark their own end: as long as the most patient sender repeats the mark. iperf 2.0 does
/// this ten times, every 250 ms (`write_UDP_FIN`, src/Client.cpp), nuttcp four times, every 500 ms. A
/// shorter silence may be that of a sender that waits for a CPU, and whose mark has yet to be answered.
const MARK_QUIET_NS: u64 = 2_500_000_000;

/// How long it has been quiet after the stop.
#[derive(Debug)]
pub(crate) struct Quiet {
    wait_ns: u64,
    /// When something came last, at the earliest the stop; `None` before the stop.
    last_ns: Option<u64>,
    /// When the far end was last found to be sending still.
    awaited_ns: u64,
}

impl Quiet {
    /// For a flow whose end is reported elsewhere, or by markers that may be lost or late; `None` for others.
    pub(crate) fn of(flow: &Flow) -> Option<Self> {
        let (framing, transport) = (&flow.config.framing, flow.config.transport);
        let is_unheard = transport == Transport::Udp && framing.ends_unheard();
        (framing.ends_elsewhere() || is_unheard).then(|| {
            let wait_ns = match transport {
                Transport::Udp if framing.ends_elsewhere() => DATAGRAM_QUIET_NS,
                Transport::Udp => MARK_QUIET_NS,
                Transport::Tcp => wait_for(socket::rtt_us(flow.socket.as_fd())),
            };
            Self { wait_ns, last_ns: None, awaited_ns: 0 }
        })
    }

    /// Whether the flow was stopped and nothing has come for long enough. Its payload was over at `over_ns`, or, if
    /// this is unknown, when the last of the payload came, at the earliest the stop.
    pub(crate) fn is_over(&mut self, flow: &Flow, over_ns: Option<u64>) -> bool {
        if flow.may_send() {
            return false;
        }
        let now = now_ns();
        // A thread that had to wait for a CPU may be past its time with unread data in the socket.
        if rustix::io::ioctl_fionread(&flow.socket).is_ok_and(|waiting| waiting > 0) {
            self.last_ns = Some(now);
            return false;
        }
        let last = *self.last_ns.get_or_insert(now);
        if flow.stop.awaits_far_end() {
            self.awaited_ns = now;
            return false;
        }
        let is_over = self.until().is_some_and(|until| now >= until);
        if is_over {
            flow.payload_was_over(over_ns.unwrap_or(last));
        }
        is_over
    }

    /// Something came.
    pub(crate) fn heard(&mut self) {
        if let Some(last) = &mut self.last_ns {
            *last = now_ns();
        }
    }

    /// When to look again, on the monotonic clock; `None` before the stop.
    pub(crate) fn until(&self) -> Option<u64> {
        self.last_ns.map(|last| last.max(self.awaited_ns) + self.wait_ns)
    }
}

fn wait_for(rtt_us: Option<u32>) -> u64 {
    let several = u64::from(rtt_us.unwrap_or(0)) * 1000 * QUIET_ROUND_TRIPS;
    several.clamp(MIN_QUIET_NS, MAX_QUIET_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_path_is_given_more_time_but_not_for_ever() {
        assert_eq!(wait_for(Some(30)), MIN_QUIET_NS);
        assert_eq!(wait_for(Some(40_000)), 160_000_000);
        assert_eq!(wait_for(Some(u32::MAX)), MAX_QUIET_NS);
        assert_eq!(wait_for(None), MIN_QUIET_NS);
    }
}
