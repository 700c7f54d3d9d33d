//! How a receiver requests payload from a sender that waits for a request. The request may be lost, so it is repeated
//! until something comes.

use rustix::io::Errno;
use rustix::net::{SendFlags, send};

use crate::clock::now_ns;
use crate::error::MoveError;
use crate::flow::Flow;

/// How often the receiver asks at first, and the time between, nanoseconds: like iperf 2.1.8 (src/Client.cpp,
/// `Client::Run` of a reverse test).
const MAX_QUESTIONS: u32 = 100;
const GAP_NS: u64 = 20_000_000;
/// The time between later requests, nanoseconds: a server of iperf 2.2.1 accepts a flow on which it sends, and then
/// none for a second (src/Listener.cpp, the wait for `receiving`).
const LATER_GAP_NS: u64 = 200_000_000;

/// An unanswered request.
pub(super) struct PendingRequest {
    request: Option<Vec<u8>>,
    times: u32,
    next_ns: u64,
    /// From when a refusal counts as an answer: before, the sender may just not be ready.
    settled_ns: u64,
}

impl PendingRequest {
    /// Asks with this datagram; does nothing without one. The far end may refuse it for `settling_ns`.
    pub(super) fn with(request: Option<Vec<u8>>, settling_ns: u64) -> Self {
        Self { request, times: 0, next_ns: 0, settled_ns: now_ns().saturating_add(settling_ns) }
    }

    /// Asks when it is time, unless something already `came`.
    pub(super) fn ask(&mut self, flow: &Flow, came: bool) -> Result<(), MoveError> {
        if came {
            self.request = None;
        }
        let now = now_ns();
        if let Some(request) = self.request.as_ref().filter(|_| now >= self.next_ns) {
            // If nobody takes it now, someone may the next time.
            let sent = send(&flow.socket, request, SendFlags::empty());
            self.times = self.times.saturating_add(1);
            self.next_ns = now + if self.times < MAX_QUESTIONS { GAP_NS } else { LATER_GAP_NS };
            if sent == Err(Errno::CONNREFUSED) {
                self.refused(flow)?;
            }
        }
        Ok(())
    }

    /// The host reports that nobody listens. Once something came, this does not matter.
    pub(super) fn refused(&self, flow: &Flow) -> Result<(), MoveError> {
        match &self.request {
            Some(_) if now_ns() >= self.settled_ns => {
                Err(flow.failed("ask for payload", Errno::CONNREFUSED))
            }
            _ => Ok(()),
        }
    }

    /// When it is time to ask again.
    pub(super) fn until(&self) -> Option<u64> {
        self.request.as_ref().map(|_| self.next_ns)
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::sync::Arc;

    use goodput_model::{Role, Transport};

    use super::*;
    use crate::flow::FlowConfig;
    use crate::{Gate, Stop};

    /// A flow towards a port on which nobody listens any longer.
    fn to_nobody() -> Flow {
        let gone = UdpSocket::bind("127.0.0.1:0").unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(gone.local_addr().unwrap()).unwrap();
        let config = FlowConfig::new(Role::Receiver, Transport::Udp, 100);
        Flow {
            config,
            socket: Arc::new(socket.into()),
            counters: Arc::default(),
            stop: Arc::new(Stop::new().unwrap()),
            gate: Arc::new(Gate::default()),
            began: Arc::default(),
            over: Arc::default(),
        }
    }

    /// The loopback device refuses a datagram before its send returns; the next call reports it.
    #[test]
    fn who_refuses_for_longer_than_it_takes_to_be_ready_is_not_there() {
        let flow = to_nobody();
        let mut asking = PendingRequest::with(Some(vec![1]), 0);
        asking.ask(&flow, false).unwrap();
        asking.next_ns = 0;
        let why = asking.ask(&flow, false).unwrap_err().to_string();
        assert!(why.contains("ask for payload") && why.contains("refused"), "{why}");

        let mut early = PendingRequest::with(Some(vec![1]), u64::MAX);
        early.ask(&flow, false).unwrap();
        early.next_ns = 0;
        early.ask(&flow, false).unwrap();
        assert!(early.refused(&flow).is_ok(), "it may not be ready yet");

        asking.ask(&flow, true).unwrap();
        assert!(asking.refused(&flow).is_ok(), "payload came");
    }
}
