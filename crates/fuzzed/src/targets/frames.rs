//! Everything below the messages: frames, preambles, datagrams, and the names of foreign services.

use goodput_wire::datagram::{Challenger, DatagramReply};
use goodput_wire::frame::Decoder;
use goodput_wire::{datagram, foreign, protocols};

/// Takes any bytes.
pub fn run(data: &[u8]) {
    let Some((&piece, bytes)) = data.split_first() else { return };
    frames::<2>(bytes, usize::from(piece) + 1);
    frames::<4>(bytes, usize::from(piece) + 1);
    let _ = protocols::opening(protocols::ALL, bytes);
    let _ = protocols::datagram_opening(protocols::ALL, bytes);
    let _ = (foreign::server(bytes), foreign::client(bytes), datagram::from_server(bytes));
    challenge(bytes);
}

/// However a stream is cut, the same bodies come out of it, and none beyond the limit.
fn frames<const WIDTH: usize>(bytes: &[u8], piece: usize) {
    let (mut whole, mut pieces) = (Decoder::<WIDTH>::new(1000), Decoder::<WIDTH>::new(1000));
    whole.push(bytes);
    let at_once = bodies(&mut whole);
    let mut seen = Vec::new();
    for part in bytes.chunks(piece) {
        pieces.push(part);
        seen.extend(bodies(&mut pieces));
    }
    assert_eq!(at_once, seen);
    assert!(seen.iter().all(|body| body.len() <= 1000));
}

fn bodies<const WIDTH: usize>(decoder: &mut Decoder<WIDTH>) -> Vec<Vec<u8>> {
    let mut bodies = Vec::new();
    while let Ok(Some(body)) = decoder.next_body() {
        bodies.push(body);
    }
    bodies
}

/// No reply is longer than its request, and no guess is a proof.
fn challenge(bytes: &[u8]) {
    let from = ([192, 0, 2, 7], 4000).into();
    match Challenger::new([9; 32]).answer(from, bytes) {
        DatagramReply::Challenge(reply) => assert!(reply.len() <= bytes.len()),
        DatagramReply::Proven(_) | DatagramReply::Echo(..) => panic!("a guess was taken as proof"),
        DatagramReply::Nothing => {}
    }
}
