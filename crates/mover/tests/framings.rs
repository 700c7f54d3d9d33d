//! Runs over movers and framings: payload that looks as another program's.

mod common;
mod hosted;

use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::time::Duration;

use common::{Alone, Pair, patience};
use goodput_framing::Framing;
use goodput_model::{Role, Transport};
use goodput_mover::{EarlyPayload, Lockstep, MoveError, Mover, Phase, find};

/// Not a multiple of any chunk, so that the last one is cut. A socket holds this many datagrams: a
/// receiver that gets no CPU meanwhile does not lose their end.
fn limit(transport: Transport) -> u64 {
    if transport == Transport::Tcp { 1_000_001 } else { 100_001 }
}

fn each(mut check: impl FnMut(&'static dyn Mover, Transport, &Framing)) {
    for mover in hosted::movers() {
        for transport in mover.transports() {
            goodput_framing::examples()
                .iter()
                .for_each(|framing| check(mover, *transport, framing));
        }
    }
}

#[test]
fn every_byte_arrives() {
    each(|mover, transport, framing| {
        let limit = limit(transport);
        let pair = Pair::start(mover, transport, |config| {
            config.limit_bytes = Some(limit);
            config.framing = framing.clone();
        });
        pair.gate.open();
        if framing.ends_elsewhere() {
            patience(|| pair.sender.is_finished());
            pair.finish();
        }
        patience(|| pair.receiver.is_finished());
        let announced = transport == Transport::Udp && framing.announces_its_beginning();
        assert_eq!(pair.receiver.began_at().is_some(), announced, "{} {framing:?}", mover.id());
        let (sent, received) = pair.join();
        sent.result.unwrap();
        received.result.unwrap();
        let bytes = (sent.counters.bytes(), received.counters.bytes());
        let what = format!("{} {framing:?} {bytes:?}", mover.id());
        assert_eq!(sent.counters.paced_us(), 0, "{what} has no rate to hold");
        if transport == Transport::Tcp {
            assert_eq!(bytes, (limit, limit), "{what}");
        } else {
            let (out, back) = (sent.counters.datagrams(), received.counters.datagrams());
            assert!(bytes.0 >= limit && bytes.1 <= bytes.0, "{what}");
            assert!(back.received > 0 && back.received <= out.sent, "{what}: {back:?}");
            let all = back.received + back.lost;
            // Each repetition of an end that is answered takes one more number. If the end reports no number, what is
            // missing at the tail is unknown.
            let own = *framing == goodput_framing::goodput();
            let fits = if own { all == out.sent } else { all < out.sent + 200 };
            assert!(fits, "{what}: {out:?} {back:?}");
            assert_eq!(back.lost().is_ok(), framing.numbers_datagrams(), "{what}");
            assert_eq!(back.jitter_us().is_ok(), framing.times_datagrams(), "{what}");
        }
    });
}

/// A flow alone with a framing that ends elsewhere.
fn alone(transport: Transport, role: Role) -> (Alone, std::os::fd::OwnedFd) {
    let mover =
        find(if transport == Transport::Tcp { "copy" } else { "datagram" }).expect("a mover");
    Pair::start_alone(mover, transport, role, |config| {
        config.framing = goodput_framing::iperf3(false);
        config.early = EarlyPayload { bytes: 7, datagrams: vec![datagram(1), datagram(2)] };
    })
}

fn datagram(number: u32) -> Vec<u8> {
    [&[0; 8], &number.to_be_bytes()[..], &[0; 8]].concat()
}

#[test]
fn a_receiver_whose_stream_ends_elsewhere_reads_what_has_come_and_waits_for_no_end() {
    let (flow, peer) = alone(Transport::Tcp, Role::Receiver);
    let mut peer = TcpStream::from(peer);
    peer.write_all(&[0; 1000]).unwrap();
    flow.stop.finish(Duration::from_secs(600));
    patience(|| flow.flow.is_finished());
    assert_eq!(flow.flow.counters().bytes(), 1007, "with what came early");
    flow.flow.join().unwrap();
    drop(peer);
}

#[test]
fn no_silence_ends_a_flow_whose_sender_is_yet_to_announce_that_it_has_stopped() {
    for transport in [Transport::Tcp, Transport::Udp] {
        let (flow, peer) = alone(transport, Role::Receiver);
        let before = flow.flow.counters().bytes();
        flow.stop.await_far_end();
        flow.gate.open();
        flow.stop.finish(Duration::from_secs(600));
        // Longer than the silence after which other flows end.
        std::thread::sleep(Duration::from_millis(300));
        assert!(!flow.flow.is_finished(), "{transport:?}: the sender may only wait for a CPU");
        rustix::io::write(&peer, &datagram(3)).unwrap();
        patience(|| flow.flow.counters().bytes() > before);
        flow.stop.far_end_stopped();
        patience(|| flow.flow.is_finished());
        flow.flow.join().unwrap();
    }
}

/// A client that waits for a CPU beyond the end of its measurement still marks the end, and repeats this until it is
/// answered.
#[test]
fn a_sender_that_falls_silent_before_it_marks_its_end_is_still_answered() {
    let mover = find("datagram").expect("a mover");
    let (flow, peer) = Pair::start_alone(mover, Transport::Udp, Role::Receiver, |config| {
        config.framing = goodput_framing::iperf2(Vec::new(), true, false);
    });
    let peer = UdpSocket::from(peer);
    let numbered =
        |id: i32| [&id.to_be_bytes()[..], &[0; 8], &[(id >> 8) as u8; 4], &[0; 200]].concat();
    peer.send(&numbered(1)).unwrap();
    flow.gate.open();
    patience(|| flow.flow.counters().bytes() > 0);
    flow.stop.finish(Duration::from_secs(600));
    // Longer than a host may keep a program waiting for a CPU.
    std::thread::sleep(Duration::from_millis(700));
    peer.send(&numbered(-2)).unwrap();
    peer.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    assert_eq!(peer.recv(&mut [0; 200]).unwrap(), 128, "its report");
    drop(peer);
    patience(|| flow.flow.is_finished());
    flow.flow.join().unwrap();
}

#[test]
fn a_deadline_that_is_brought_forward_ends_a_flow_that_waits_already() {
    let (flow, _peer) = alone(Transport::Tcp, Role::Receiver);
    flow.stop.await_far_end();
    flow.gate.open();
    flow.stop.finish(Duration::from_secs(600));
    flow.stop.finish(Duration::ZERO);
    patience(|| flow.flow.is_finished());
    flow.flow.join().unwrap();
}

#[test]
fn so_does_one_of_datagrams() {
    let (flow, peer) = alone(Transport::Udp, Role::Receiver);
    let peer = UdpSocket::from(peer);
    [3, 5].into_iter().for_each(|number| assert_eq!(peer.send(&datagram(number)).unwrap(), 20));
    flow.stop.finish(Duration::from_secs(600));
    patience(|| flow.flow.is_finished());
    let counts = flow.flow.counters().datagrams();
    assert_eq!((counts.received, counts.lost), (4, 1), "with those that came early");
    flow.flow.join().unwrap();
}

#[test]
fn a_peer_that_closes_after_the_end_has_done_nothing_wrong() {
    for role in [Role::Sender, Role::Receiver] {
        for (finish, is_fine) in [(true, true), (false, false)] {
            let (flow, peer) = alone(Transport::Tcp, role);
            if finish {
                flow.stop.finish(Duration::from_secs(600));
            }
            // A reset, as from a peer that leaves data unread.
            rustix::net::sockopt::set_socket_linger(&peer, Some(Duration::ZERO)).unwrap();
            drop(peer);
            flow.gate.open();
            let ended = flow.flow.join();
            assert_eq!(ended.is_ok(), is_fine, "{role:?}: {ended:?}");
            assert!(is_fine || matches!(ended, Err(MoveError::PeerGone { .. })));
            assert_eq!(flow.stop.phase() == Phase::Finish, finish);
        }
    }
}

/// More than the buffers of both ends hold.
const QUEUED: u64 = 20_000_000;

/// iperf2's server answers the header with a few bytes, which nobody reads. A sender that closed over
/// them would have the kernel throw away what it had not sent yet.
#[test]
fn what_is_queued_arrives_though_the_receiver_spoke() {
    let mover = find("copy").expect("a mover");
    let (alone, peer) = Pair::start_alone(mover, Transport::Tcp, Role::Sender, |config| {
        config.limit_bytes = Some(QUEUED);
        config.framing = goodput_framing::iperf2(Vec::new(), true, false);
        config.early = EarlyPayload { bytes: 60, datagrams: Vec::new() };
    });
    let mut peer = TcpStream::from(peer);
    peer.write_all(&[2; 28]).unwrap();
    alone.gate.open();
    let mut received = 0;
    let mut buffer = vec![0; 1 << 20];
    loop {
        match peer.read(&mut buffer).unwrap() {
            0 => break,
            read => received += read as u64,
        }
    }
    // The proof is payload, and was sent before.
    assert_eq!(received, QUEUED - 60);
    assert!(!alone.flow.is_finished(), "it hears its receiver out");
    drop(peer);
    patience(|| alone.flow.is_finished());
    assert_eq!(alone.flow.counters().bytes(), QUEUED);
    alone.flow.join().unwrap();
}

/// As nuttcp's receiver does: what is behind the first end it meets, nobody reads.
#[test]
fn streams_that_are_read_in_turn_end_after_the_same_number_of_chunks() {
    const CHUNK: usize = 64 * 1024;
    let lockstep = std::sync::Arc::new(Lockstep::default());
    let mover = find("copy").expect("a mover");
    let (flows, mut peers): (Vec<_>, Vec<_>) = (0..3)
        .map(|_| {
            let (alone, peer) = Pair::start_alone(mover, Transport::Tcp, Role::Sender, |config| {
                config.framing = goodput_framing::nuttcp(false);
                config.lockstep = Some(std::sync::Arc::clone(&lockstep));
            });
            (alone, TcpStream::from(peer))
        })
        .unzip();
    flows.iter().for_each(|alone| alone.gate.open());
    let (mut chunk, mut read) = (vec![0; CHUNK], 0);
    'turns: loop {
        for peer in &mut peers {
            if peer.read_exact(&mut chunk).is_err() {
                break 'turns;
            }
            read += CHUNK as u64;
        }
        if read > 10_000_000 {
            flows.iter().for_each(|alone| alone.stop.finish(Duration::from_secs(60)));
        }
    }
    let sent: Vec<_> = flows.iter().map(|alone| alone.flow.counters().bytes()).collect();
    assert_eq!(sent, [read / 3; 3]);
    flows.into_iter().for_each(|alone| alone.flow.join().expect("ended well"));
}

/// iperf2's server sends datagrams only to a client that has asked for them with one.
#[test]
fn a_receiver_with_settings_asks_until_something_comes() {
    let mover = find("datagram").expect("a mover");
    let (alone, peer) = Pair::start_alone(mover, Transport::Udp, Role::Receiver, |config| {
        config.framing = goodput_framing::iperf2(vec![0x6c; 60], false, false);
    });
    let peer = UdpSocket::from(peer);
    alone.gate.open();
    let mut request = [0; 100];
    for _ in 0..3 {
        assert_eq!(peer.recv(&mut request).unwrap(), 76);
        assert_eq!((&request[..4], &request[16..76]), (&[0, 0, 0, 1][..], &[0x6c; 60][..]));
    }
    let payload = [&[0, 0, 0, 1], &[0; 12][..], b"67890123"].concat();
    let end = [&[0xff, 0xff, 0xff, 0xfe], &[0; 8][..], &[0xff; 4], b"67890123"].concat();
    peer.send(&payload).unwrap();
    peer.send(&end).unwrap();
    patience(|| alone.flow.is_finished());
    assert_eq!(alone.flow.counters().datagrams().received, 2, "the end is payload as well");
    alone.flow.join().unwrap();
}
