//! How a receiver asks for payload whose sender waits for that. What it asks with may be lost, so it
//! asks again until something comes.

use rustix::net::{SendFlags, send};

use crate::clock::now_ns;
use crate::flow::Flow;

/// How often it asks in the beginning, and the time between, nanoseconds: as iperf 2.1.8 does
/// (src/Client.cpp, `Client::Run` of a reverse test).
const TIMES: u32 = 100;
const GAP_NS: u64 = 20_000_000;
/// The time between later, nanoseconds: a server of iperf 2.2.1 takes up a flow that it sends on, and
/// then none for a second (src/Listener.cpp, the wait for `receiving`).
const LATER_GAP_NS: u64 = 200_000_000;

/// A request that has not been answered.
pub(super) struct Asking {
    request: Option<Vec<u8>>,
    times: u32,
    next_ns: u64,
}

impl Asking {
    /// Asks with this datagram; not at all without one.
    pub(super) fn with(request: Option<Vec<u8>>) -> Self {
        Self { request, times: 0, next_ns: 0 }
    }

    /// Asks where it is time, unless something `came` already.
    pub(super) fn ask(&mut self, flow: &Flow, came: bool) {
        if came {
            self.request = None;
        }
        let now = now_ns();
        if let Some(request) = self.request.as_ref().filter(|_| now >= self.next_ns) {
            // Where nobody takes it now, somebody may the next time.
            let _ = send(&flow.socket, request, SendFlags::empty());
            self.times = self.times.saturating_add(1);
            self.next_ns = now + if self.times < TIMES { GAP_NS } else { LATER_GAP_NS };
        }
    }

    /// When it is time to ask again.
    pub(super) fn until(&self) -> Option<u64> {
        self.request.as_ref().map(|_| self.next_ns)
    }
}
