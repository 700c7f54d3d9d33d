//! A capture of some flows alone, for a client of a server.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use socket2::Socket;

use crate::block::Frame;
use crate::packet::Packet;
use crate::ring::{Blocks, Ring};
use crate::taking::{Counts, take_all};

/// One flow, as the capturing host sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowPorts {
    /// Whether it is TCP, and not UDP.
    pub is_tcp: bool,
    /// Its port at the capturing host.
    pub own: u16,
    /// Its port at the other host.
    pub peer: u16,
}

/// A ring that fills with packets of one other host.
#[derive(Debug)]
pub struct OpenedCapture {
    ring: Ring,
}

/// A capture that runs. Dropping it ends it: the thread then gives the ring back within a tenth of a second.
#[derive(Debug)]
pub struct FlowCapture<K> {
    stops: Arc<AtomicBool>,
    thread: Option<JoinHandle<FlowCaptured<K>>>,
}

/// What was captured.
#[derive(Debug)]
pub struct FlowCaptured<K> {
    /// What kept the packets.
    pub kept: K,
    /// Packets of the flows that it did not keep.
    pub not_kept: u64,
    /// Packets that were lost because the ring was full. They may be of other connections with the same host.
    pub dropped: u64,
    /// Why the capture ended early, if it did.
    pub failure: Option<String>,
}

impl OpenedCapture {
    pub(crate) fn of(socket: Socket) -> io::Result<Self> {
        Ok(Self { ring: Ring::map(socket, Blocks::SERVED)? })
    }

    /// Gives each packet of these flows, without its payload, to `keep`, which returns whether it kept the packet. What
    /// has passed since the ring was opened comes first.
    ///
    /// # Errors
    /// If there can't be another thread.
    pub fn start<K: Send + 'static>(
        self,
        flows: Vec<FlowPorts>,
        kept: K,
        keep: fn(&mut K, &Frame<'_>) -> bool,
    ) -> io::Result<FlowCapture<K>> {
        let stops = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&stops);
        let thread = std::thread::Builder::new().name("capture".into());
        let thread = thread.spawn(move || take_flows(self.ring, &until, &flows, kept, keep))?;
        Ok(FlowCapture { stops, thread: Some(thread) })
    }
}

fn take_flows<K>(
    mut ring: Ring,
    stops: &AtomicBool,
    flows: &[FlowPorts],
    mut kept: K,
    keep: fn(&mut K, &Frame<'_>) -> bool,
) -> FlowCaptured<K> {
    let (mut counts, mut not_kept) = (Counts::default(), 0);
    let taken = take_all(&mut ring, stops, &mut counts, |frame| {
        if is_of(flows, frame) && !keep(&mut kept, frame) {
            not_kept += 1;
        }
        Ok(())
    });
    let failure = taken.err().map(|cause| cause.to_string());
    FlowCaptured { kept, not_kept, dropped: counts.dropped, failure }
}

/// Whether a packet belongs to one of these flows. A fragment without ports belongs to none.
fn is_of(flows: &[FlowPorts], frame: &Frame<'_>) -> bool {
    let Some(packet) = Packet::read(frame.head, frame.bytes, frame.at_ns) else { return false };
    let Packet { from_port, to_port, .. } = packet;
    flows.iter().any(|flow| {
        let ports = (flow.own, flow.peer);
        flow.is_tcp == packet.is_tcp
            && (ports == (from_port, to_port) || ports == (to_port, from_port))
    })
}

impl<K> FlowCapture<K> {
    /// Ends, once all that has passed so far was given away. Blocks for some tenths of a second.
    ///
    /// # Errors
    /// If the thread panicked.
    pub fn finish(mut self) -> Result<FlowCaptured<K>, &'static str> {
        self.stops.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        ended.and_then(Result::ok).ok_or("the thread that captures panicked")
    }
}

impl<K> Drop for FlowCapture<K> {
    fn drop(&mut self) {
        self.stops.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::helper::open_here;
    use goodput_testing::{in_namespace, wait_for};
    use std::net::UdpSocket;

    fn up() {
        let done = std::process::Command::new("ip").args(["link", "set", "lo", "up"]).status();
        assert!(done.unwrap().success());
    }

    fn port(socket: &UdpSocket) -> u16 {
        socket.local_addr().unwrap().port()
    }

    /// Keeps the lengths of at most three packets.
    fn keep(kept: &mut Vec<u32>, frame: &Frame<'_>) -> bool {
        assert_eq!(frame.head.len(), 28, "headers alone");
        let is_kept = kept.len() < 3;
        kept.extend(is_kept.then_some(frame.bytes));
        is_kept
    }

    #[test]
    fn only_the_headers_of_the_flows_are_given_away() {
        in_namespace(|| {
            up();
            let [own, peer, other] = [(); 3].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
            let opened = open_here("lo", [127, 0, 0, 1].into()).unwrap();
            // What passes before the flows are known counts as well.
            peer.send_to(&[7; 10], own.local_addr().unwrap()).unwrap();
            let flow = FlowPorts { is_tcp: false, own: port(&own), peer: port(&peer) };
            let capture = opened.start(vec![flow], Vec::new(), keep).unwrap();
            own.send_to(&[7; 20], peer.local_addr().unwrap()).unwrap();
            other.send_to(&[7; 30], own.local_addr().unwrap()).unwrap();
            for bytes in [40, 50] {
                peer.send_to(&vec![7; bytes], own.local_addr().unwrap()).unwrap();
            }
            let found = capture.finish().unwrap();
            assert_eq!(found.kept, [38, 48, 68]);
            assert_eq!((found.not_kept, found.dropped, found.failure), (1, 0, None));
        });
    }

    #[test]
    fn a_capture_that_nobody_waits_for_leaves_no_thread() {
        in_namespace(|| {
            up();
            let opened = open_here("lo", [127, 0, 0, 1].into()).unwrap();
            let kept = Arc::new(());
            let capture = opened.start(Vec::new(), Arc::clone(&kept), |_, _| true).unwrap();
            drop(capture);
            wait_for("its thread to end", || Arc::strong_count(&kept) == 1);
        });
    }
}
