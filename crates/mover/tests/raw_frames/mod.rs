//! What only the mover `xdp` does: datagrams as frames between two network namespaces, and refusals in words.

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use goodput_model::{Bytes, Plan, Role, Transport};
use goodput_mover::{Gate, Mover, Stop, Tap, find, payload_at, start};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

use crate::common::veth::Veth;
use crate::common::{self, Pair, config, sockets};
use crate::hosted;

/// Bytes of a datagram's header (`docs/protocol.md`).
const HEADER: usize = 32;
/// The frames of a flow (`src/xdp/memory.rs`), which are used in turn.
const FRAMES: u64 = 512;

fn xdp() -> &'static dyn Mover {
    find("xdp").expect("it is in the list")
}

/// Keeps what a receiver sees.
#[derive(Debug, Default)]
struct Seen(Mutex<Vec<Vec<u8>>>);

impl Tap for Seen {
    fn saw(&self, payload: &[u8]) {
        self.0.lock().expect("no test panics with it").push(payload.to_vec());
    }
}

#[test]
fn every_datagram_arrives_with_its_number_and_content_over_both_ip_versions() {
    if !hosted::can_send_frames(xdp()) {
        return;
    }
    for v6 in [false, true] {
        // The second has more datagrams than frames, the third is as long as the MTU allows.
        let longest = if v6 { 1452 } else { 1472 };
        for (size, count) in [(1400, 71), (64, 600), (longest, 71)] {
            for receiver in ["datagram", "gro", "plain"] {
                let seen = move_datagrams(v6, size, count, receiver);
                check(&seen, size, count, &format!("{receiver} {size} {v6}"));
            }
        }
    }
}

/// All but the last of `count` datagrams have `size` bytes, and the last has 40.
fn move_datagrams(v6: bool, size: usize, count: u64, receiver: &str) -> Vec<Vec<u8>> {
    let (hosts, seen) = (Veth::new(), Arc::new(Seen::default()));
    let ends = hosts.sockets(v6);
    // Room for all: a receiver that gets no CPU meanwhile loses none.
    let room = rustix::net::sockopt::set_socket_recv_buffer_size_force(&ends.1, 8 << 20);
    room.expect("root");
    let movers = [xdp(), find(receiver).expect("it is in the list")];
    let limit = (count - 1) * size as u64 + 40;
    let pair = Pair::start_between(Some(hosts), ends, movers, Transport::Udp, |config| {
        (config.limit_bytes, config.chunk) = (Some(limit), size);
        if config.role == Role::Receiver {
            config.tap = Some(Arc::clone(&seen) as Arc<dyn Tap>);
        }
    });
    pair.gate.open();
    let (sent, received) = pair.join();
    sent.result.expect("sent");
    received.result.expect("received");
    let (out, back) = (sent.counters.datagrams(), received.counters.datagrams());
    assert_eq!((out.sent, back.received, back.lost), (count, count, 0), "{size} {v6}");
    assert_eq!((sent.counters.bytes(), received.counters.bytes()), (limit, limit));
    assert!(sent.counters.calls() >= count / 32, "{}", sent.counters.calls());
    let mut seen = seen.0.lock().expect("no test panics with it");
    std::mem::take(&mut *seen)
}

fn check(seen: &[Vec<u8>], size: usize, count: u64, who: &str) {
    // Bit 0 of the flags is that of an end marker.
    let payload: Vec<_> = seen.iter().filter(|datagram| datagram[7] & 1 == 0).collect();
    let number = |datagram: &[u8]| u64::from_be_bytes(*datagram[8..].first_chunk().expect(who));
    let by_number: BTreeMap<_, _> = payload.iter().map(|d| (number(d), *d)).collect();
    let numbers: Vec<_> = by_number.keys().copied().collect();
    assert_eq!((payload.len() as u64, numbers), (count, (0..count).collect()), "{who}: each once");
    for (number, datagram) in by_number {
        assert_eq!(datagram.len(), if number < count - 1 { size } else { 40 }, "{who} {number}");
        let mut expected = vec![0; datagram.len()];
        payload_at(&goodput_framing::goodput(), number % FRAMES * size as u64, &mut expected);
        assert!(expected[HEADER..] == datagram[HEADER..], "{who} {number}");
    }
}

/// Starts a flow that can't send; how it ended.
fn refused(hosts: Option<&Veth>, socket: OwnedFd, chunk: usize) -> String {
    let config = goodput_mover::FlowConfig { chunk, ..config(Role::Sender, Transport::Udp) };
    let (gate, stop) = (Arc::new(Gate::default()), Arc::new(Stop::new().expect("two descriptors")));
    gate.open();
    let start = || start(xdp(), config, socket, gate, stop).expect("a thread");
    let flow = match hosts {
        Some(hosts) => hosts.near(start),
        None => start(),
    };
    flow.join().expect_err("it can't send there").to_string()
}

#[test]
fn this_host_itself_is_refused() {
    let (near, _far) = sockets(Transport::Udp);
    let why = refused(None, near, 1400);
    assert!(why.contains("mover xdp can't be used: 127.0.0.1 is this host itself"), "{why}");
}

#[test]
fn what_does_not_fit_and_who_does_not_answer_is_named() {
    if !hosted::can_send_frames(xdp()) {
        return;
    }
    let hosts = Veth::new();
    let (near, _far) = hosts.sockets(false);
    let why = refused(Some(&hosts), near, 1473);
    assert!(why.contains("MTU of 1500 bytes") && why.contains("--chunk of at most 1472"), "{why}");
    // Nobody has this address.
    let lonely = hosts.near(|| {
        let interval = "/proc/sys/net/ipv4/neigh/near/retrans_time_ms";
        // Only to wait less; it may be read-only.
        let _ = std::fs::write(interval, "10");
        let socket = UdpSocket::bind("192.0.2.1:0").expect("a UDP socket");
        socket.connect("192.0.2.77:7".parse::<SocketAddr>().expect("an address")).expect("a route");
        socket
    });
    let why = refused(Some(&hosts), lonely.into(), 1400);
    let words = "hardware address of the next hop 192.0.2.77 on near is unknown";
    assert!(why.contains(words) && why.contains("ip neighbour replace 192.0.2.77"), "{why}");
}

#[test]
fn a_queue_that_is_taken_is_named_and_free_again_after_the_flow() {
    if !hosted::can_send_frames(xdp()) {
        return;
    }
    let hosts = Veth::new();
    let [first, second, third] = [(); 3].map(|()| hosts.sockets(false));
    let (gate, stop) = (Arc::new(Gate::default()), Arc::new(Stop::new().expect("two descriptors")));
    let (inner_gate, inner_stop) = (Arc::clone(&gate), Arc::clone(&stop));
    let holds =
        move || start(xdp(), config(Role::Sender, Transport::Udp), first.0, inner_gate, inner_stop);
    let holder = hosts.near(holds).expect("a thread");
    gate.open();
    common::patience(|| holder.counters().bytes() > 0);
    let why = refused(Some(&hosts), second.0, 1400);
    assert!(
        why.contains("each flow takes a queue of near") && why.contains("have all (of 1)"),
        "{why}"
    );
    stop.finish(std::time::Duration::from_secs(60));
    holder.join().expect("it ended well");
    let movers = [xdp(), find("datagram").expect("it is in the list")];
    let pair = Pair::start_between(Some(hosts), third, movers, Transport::Udp, |config| {
        config.limit_bytes = Some(10_000);
    });
    pair.gate.open();
    let (sent, received) = pair.join();
    sent.result.expect("the queue is free");
    received.result.expect("received");
}

#[test]
fn without_the_privilege_the_plan_is_refused() {
    let refused = std::thread::spawn(|| {
        let mut caps = capabilities(None).expect("own capabilities");
        caps.effective.remove(CapabilitySet::NET_RAW);
        set_capabilities(None, caps).expect("giving up a privilege needs none");
        let plan = Plan { transport: Transport::Udp, chunk_bytes: Bytes(1400), ..Plan::standard() };
        xdp().can_run(&plan).expect_err("it takes CAP_NET_RAW").to_string()
    });
    let why = refused.join().expect("the test holds");
    assert!(why.contains("CAP_NET_RAW") || why.contains("CONFIG_XDP_SOCKETS"), "{why}");
}

#[test]
fn a_datagram_that_no_frame_holds_is_refused_with_the_longest() {
    let plan = Plan { transport: Transport::Udp, chunk_bytes: Bytes(4035), ..Plan::standard() };
    let why = xdp().can_run(&plan).expect_err("too long").to_string();
    assert!(why.contains("5 to 4034 bytes"), "{why}");
}
