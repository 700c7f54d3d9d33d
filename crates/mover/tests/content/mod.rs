//! What arrives is what was sent, byte for byte, for every mover: a pattern of places shows a restart, a
//! swap, a loss and a copy, which counts may not show. Files are in `../files.rs`.

use std::collections::BTreeMap;
use std::io::Read;
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::thread;

use goodput_framing::Framing;
use goodput_model::{Role, Transport};
use goodput_mover::{Mover, Tap, payload_at};

use crate::common::{Ended, Pair};
use crate::hosted;

/// More than the socket's buffers hold, and no multiple of any chunk.
const LIMIT: u64 = 9_000_001;

/// One chunk for the whole stream, so that no two places of it look alike; then as programs have it, and
/// one that several movers gather, no multiple of a page.
const CHUNKS: [usize; 3] = [10_000_000, 64 * 1024, 3000];

/// Bytes before which datagrams differ on their own: the header (`docs/protocol.md`).
const HEADER: usize = 32;

/// Keeps what a receiver sees.
#[derive(Debug, Default)]
struct Seen(Mutex<Vec<Vec<u8>>>);

impl Tap for Seen {
    fn saw(&self, payload: &[u8]) {
        self.0.lock().expect("no test panics with it").push(payload.to_vec());
    }
}

impl Seen {
    fn all(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.0.lock().expect("no test panics with it"))
    }
}

fn movers(transport: Transport, role: Role) -> Vec<&'static dyn Mover> {
    let fits = |mover: &&dyn Mover| {
        mover.transports().contains(&transport) && mover.roles().contains(&role)
    };
    hosted::movers().into_iter().filter(fits).collect()
}

/// Moves `limit` bytes from one mover to the other; how the receiver ended, and what it saw.
fn move_bytes(
    movers: [&'static dyn Mover; 2],
    transport: Transport,
    limit: u64,
    chunk: usize,
) -> (Ended, Vec<Vec<u8>>) {
    let seen = Arc::new(Seen::default());
    let pair = Pair::start_two(movers, transport, |config| {
        (config.limit_bytes, config.chunk) = (Some(limit), chunk);
        if config.role == Role::Receiver {
            config.tap = Some(Arc::clone(&seen) as Arc<dyn Tap>);
        }
    });
    pair.gate.open();
    let (sent, received) = pair.join();
    sent.result.as_ref().expect("sent");
    received.result.as_ref().expect("received");
    assert_eq!(sent.counters.bytes(), limit);
    (received, seen.all())
}

/// Says where bytes are not those of the chunk, over and over.
fn first_difference(bytes: &[u8], framing: &Framing, chunk: usize) -> Option<usize> {
    let mut expected = vec![0; chunk];
    payload_at(framing, 0, &mut expected);
    bytes.iter().zip(expected.iter().cycle()).position(|(is, should)| is != should)
}

fn check_stream(bytes: &[u8], framing: &Framing, chunk: usize, who: &str) {
    assert_eq!(bytes.len() as u64, LIMIT, "{who}");
    assert_eq!(first_difference(bytes, framing, chunk), None, "{who} with a chunk of {chunk}");
}

/// Movers that send a file's pages have one of this many bytes at least.
fn period(mover: &dyn Mover, chunk: usize) -> usize {
    let sends_a_file = ["mmap-send", "sendfile"].contains(&mover.id());
    if sends_a_file { (1_usize << 20).next_multiple_of(chunk) } else { chunk }
}

#[test]
fn every_sender_sends_its_chunk_over_and_over() {
    for mover in movers(Transport::Tcp, Role::Sender) {
        for chunk in CHUNKS.into_iter().filter(|chunk| mover.continues(*chunk)) {
            // A pipe that holds all of it takes a privilege.
            let chunk = if mover.id() == "splice" { chunk.min(1 << 20) } else { chunk };
            for framing in [goodput_framing::goodput(), goodput_framing::ttcp()] {
                let (alone, peer) = Pair::start_alone(mover, Transport::Tcp, Role::Sender, |c| {
                    (c.limit_bytes, c.chunk) = (Some(LIMIT), chunk);
                    c.framing = framing.clone();
                });
                let mut peer = TcpStream::from(peer);
                let reader = thread::spawn(move || {
                    let mut bytes = Vec::new();
                    peer.read_to_end(&mut bytes).map(|_| bytes)
                });
                alone.gate.open();
                let bytes = reader.join().unwrap().unwrap();
                alone.flow.join().unwrap();
                check_stream(&bytes, &framing, period(mover, chunk), mover.id());
            }
        }
    }
}

#[test]
fn every_pair_of_movers_moves_the_same_bytes() {
    let receivers = movers(Transport::Tcp, Role::Receiver);
    let (shows, blind): (Vec<_>, Vec<_>) = receivers.into_iter().partition(|m| m.shows());
    let ids: Vec<_> = blind.iter().map(|mover| mover.id()).collect();
    assert_eq!(ids, ["discard", "splice-null"], "these have the kernel drop the payload");
    for send in movers(Transport::Tcp, Role::Sender) {
        let chunk = if send.continues(64 * 1024) { 64 * 1024 } else { 1 << 20 };
        for receive in &shows {
            let (received, seen) = move_bytes([send, *receive], Transport::Tcp, LIMIT, chunk);
            assert_eq!(received.counters.bytes(), LIMIT);
            let who = format!("{} to {}", send.id(), receive.id());
            check_stream(&seen.concat(), &goodput_framing::goodput(), period(send, chunk), &who);
        }
    }
}

/// What has no number of its own within the batch would show a swap by its number only.
#[test]
fn each_datagram_has_the_content_of_its_number() {
    const SIZE: usize = 1400;
    let receivers = movers(Transport::Udp, Role::Receiver);
    for send in movers(Transport::Udp, Role::Sender) {
        for receive in &receivers {
            // As many as a socket holds: see `../conformance.rs`.
            let limit = 70 * SIZE as u64 + 40;
            let (received, seen) = move_bytes([send, *receive], Transport::Udp, limit, SIZE);
            assert_eq!(received.counters.datagrams().received, 71);
            check_datagrams(&seen, SIZE, &format!("{} to {}", send.id(), receive.id()));
        }
    }
}

fn check_datagrams(seen: &[Vec<u8>], size: usize, who: &str) {
    // Bit 0 of the flags is that of an end marker.
    let payload: Vec<_> = seen.iter().filter(|datagram| datagram[7] & 1 == 0).collect();
    let number = |datagram: &[u8]| u64::from_be_bytes(*datagram[8..].first_chunk().expect(who));
    let by_number: BTreeMap<_, _> = payload.iter().map(|d| (number(d), *d)).collect();
    assert_eq!((by_number.len(), payload.len()), (71, 71), "{who}: each once");
    assert_eq!(by_number.keys().copied().collect::<Vec<_>>(), (0..71).collect::<Vec<_>>());
    let slot = |datagram: &[u8]| (0..71).find(|slot| is_from(datagram, size, *slot));
    let slots: Vec<_> = by_number.values().map(|datagram| slot(datagram).expect(who)).collect();
    // The sender writes its numbers into as many datagrams as it has, in turn.
    let batch = slots.iter().max().expect("there are some") + 1;
    let expected: Vec<_> = (0..71).map(|number| number % batch).collect();
    assert_eq!(slots, expected, "{who}");
    assert!(by_number.iter().all(|(n, d)| d.len() == if *n < 70 { size } else { 40 }), "{who}");
}

/// Whether a datagram is the one that lies at a place of a sender's batch.
fn is_from(datagram: &[u8], size: usize, slot: u64) -> bool {
    let mut expected = vec![0; datagram.len()];
    payload_at(&goodput_framing::goodput(), slot * size as u64, &mut expected);
    expected[HEADER..] == datagram[HEADER..]
}

/// The comparison itself must see what a broken mover would do.
#[test]
fn a_restart_a_swap_a_loss_and_a_copy_show() {
    let mut whole = vec![0; 20_000];
    payload_at(&goodput_framing::goodput(), 0, &mut whole);
    let (a, b) = (&whole[..6000], &whole[6000..9000]);
    let broken: [Vec<u8>; 4] = [
        [a, a, b].concat(),
        [b, a].concat(),
        [&whole[..3000], b].concat(),
        [&whole[..5999], &whole[6000..]].concat(),
    ];
    for bytes in &broken {
        assert!(first_difference(bytes, &goodput_framing::goodput(), whole.len()).is_some());
    }
    assert_eq!(first_difference(&whole, &goodput_framing::goodput(), whole.len()), None);
}
