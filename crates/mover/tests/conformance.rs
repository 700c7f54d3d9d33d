//! Runs over the list of movers: what every one of them must do.

mod common;
mod content;
mod hosted;
mod mapped;
mod raw_frames;

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use common::{Pair, config, patience, sockets};
use goodput_model::{BitRate, Role, Transport};
use goodput_mover::{ALL, MoveError, Mover, Phase, Stop, start};

/// Not a multiple of any chunk, so that the last one is cut. Datagrams are so few that a socket holds
/// all of them: a receiver that gets no CPU meanwhile loses none, nor the end (`net.core.rmem_default`
/// is 212,992 bytes, of which one with its overhead takes 2304).
fn limit(transport: Transport) -> u64 {
    if transport == Transport::Tcp { 3_000_001 } else { 100_001 }
}

fn each(mut check: impl FnMut(&'static dyn Mover, Transport)) {
    for mover in hosted::movers() {
        for transport in mover.transports() {
            check(mover, *transport);
        }
    }
}

fn each_that(role: Role, mut check: impl FnMut(&'static dyn Mover, Transport)) {
    each(|mover, transport| {
        if mover.roles().contains(&role) {
            check(mover, transport);
        }
    });
}

#[test]
fn the_list_is_the_folder() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/movers");
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut files: BTreeSet<String> =
        names.map(|n| n.to_str().unwrap().strip_suffix(".rs").unwrap().replace('_', "-")).collect();
    assert!(files.remove("mod"));
    // Those over UDP are the rows of one file.
    assert!(files.remove("datagrams"));
    let of_udp = |mover: &&&dyn Mover| mover.transports() == [Transport::Udp];
    files.extend(ALL.iter().filter(of_udp).map(|mover| mover.id().to_string()));
    let ids: Vec<_> = ALL.iter().map(|mover| mover.id()).collect();
    assert_eq!(ids, files.iter().collect::<Vec<_>>(), "sorted, each once, each in its own file");
    let kebab =
        |id: &str| id.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    assert!(ids.iter().all(|id| kebab(id)));
    assert!(ALL.iter().all(|mover| !mover.summary().is_empty() && !mover.transports().is_empty()));
}

#[test]
fn a_mover_refuses_the_side_that_it_lacks() {
    for role in [Role::Sender, Role::Receiver] {
        for mover in ALL.iter().filter(|mover| !mover.roles().contains(&role)) {
            assert!(!mover.roles().is_empty(), "{}", mover.id());
            let (transport, stop) = (mover.transports()[0], Stop::new().expect("two descriptors"));
            let (socket, _peer) = sockets(transport);
            let (config, gate) = (config(role, transport), Arc::default());
            let refused = start(*mover, config, socket, gate, Arc::new(stop));
            assert!(refused.is_err(), "{} is not for a {role:?}", mover.id());
        }
    }
}

#[test]
fn every_byte_arrives() {
    each(|mover, transport| {
        let limit = limit(transport);
        let pair = Pair::start(mover, transport, |config| config.limit_bytes = Some(limit));
        pair.gate.open();
        let (sent, received) = pair.join();
        sent.result.unwrap();
        received.result.unwrap();
        if transport == Transport::Tcp {
            assert_eq!(
                (sent.counters.bytes(), received.counters.bytes()),
                (limit, limit),
                "{}",
                mover.id()
            );
        } else {
            let (out, back) = (sent.counters.datagrams(), received.counters.datagrams());
            assert_eq!((back.received, back.lost), (out.sent, 0), "{}", mover.id());
            let bytes = (sent.counters.bytes(), received.counters.bytes());
            assert!(bytes.0 >= limit && bytes.1 == bytes.0, "{}: {bytes:?}", mover.id());
        }
        assert!(sent.counters.calls() > 0 && received.counters.calls() > 0);
    });
}

#[test]
fn a_limit_of_nothing_sends_nothing_and_ends() {
    each(|mover, transport| {
        let pair = Pair::start(mover, transport, |config| config.limit_bytes = Some(0));
        pair.gate.open();
        let (sent, received) = pair.join();
        assert_eq!((sent.counters.bytes(), received.counters.bytes()), (0, 0), "{}", mover.id());
        assert!(sent.result.is_ok() && received.result.is_ok());
    });
}

#[test]
fn nothing_moves_before_the_gate_opens_nor_when_it_is_stopped_there() {
    each(|mover, transport| {
        let pair = Pair::start(mover, transport, |_| {});
        pair.finish();
        let (sent, received) = pair.join();
        assert_eq!((sent.counters.bytes(), received.counters.bytes()), (0, 0), "{}", mover.id());
        assert!(sent.result.is_ok() && received.result.is_ok());
    });
}

#[test]
fn counters_never_run_back() {
    each(|mover, transport| {
        let pair = Pair::start(mover, transport, |_| {});
        pair.gate.open();
        let flows = [&pair.sender, &pair.receiver];
        let read = |flow: &goodput_mover::RunningFlow| {
            let counters = flow.counters();
            let cpu = flow.cpu_us().value().copied().unwrap_or(0);
            [counters.bytes(), counters.calls(), counters.blocked_us(), counters.paced_us(), cpu]
        };
        let mut last = flows.map(read);
        while flows.iter().any(|flow| flow.counters().bytes() < 20_000_000) {
            let now = flows.map(read);
            for (before, after) in last.iter().flatten().zip(now.iter().flatten()) {
                assert!(after >= before, "{}: {last:?} then {now:?}", mover.id());
            }
            last = now;
        }
        pair.finish();
        let (sent, received) = pair.join();
        sent.result.unwrap();
        received.result.unwrap();
    });
}

/// A sender must stop within 100 ms. Here it has 2 s, in looks, because a busy test machine may leave a
/// thread alone for long, which still shows a mover that waits for its peer.
#[test]
fn a_sender_stops_soon_though_nobody_reads() {
    each_that(Role::Sender, |mover, transport| {
        let (pair, peer) = Pair::start_alone(mover, transport, Role::Sender, |_| {});
        pair.gate.open();
        // Over UDP the peer's full socket never holds a sender up.
        if transport == Transport::Tcp {
            patience(|| pair.flow.counters().blocked_us() > 1000);
        }
        pair.stop.finish(Duration::from_secs(60));
        let look = Duration::from_millis(5);
        let ended = (0..400).any(|_| {
            std::thread::sleep(look);
            pair.flow.is_finished()
        });
        assert!(ended, "{} waits for its peer", mover.id());
        pair.flow.join().expect("ended well");
        drop(peer);
    });
}

#[test]
fn a_receiver_gives_up_at_the_deadline_and_a_wait_that_goes_on_counts() {
    each_that(Role::Receiver, |mover, transport| {
        let (pair, peer) = Pair::start_alone(mover, transport, Role::Receiver, |_| {});
        pair.gate.open();
        patience(|| pair.flow.counters().blocked_us() > 1000);
        assert!(!pair.flow.is_finished(), "{} waits for data", mover.id());
        pair.stop.finish(Duration::from_millis(1));
        pair.flow.join().expect("ended well");
        drop(peer);
    });
}

/// What a receiver does to read a fast stream cheaply must not hold back the little that comes after.
#[test]
fn a_byte_alone_is_counted_though_much_came_fast_before() {
    each_that(Role::Receiver, |mover, transport| {
        if transport == Transport::Udp {
            return;
        }
        let (pair, peer) = Pair::start_alone(mover, transport, Role::Receiver, |_| {});
        let (mut peer, much) = (std::net::TcpStream::from(peer), vec![0; 50_000_000]);
        pair.gate.open();
        peer.write_all(&much).expect("read by the flow");
        for bytes in 1..=3 {
            peer.write_all(&[0]).expect("read by the flow");
            patience(|| pair.flow.counters().bytes() == much.len() as u64 + bytes);
        }
        drop(peer);
        pair.flow.join().expect("ended well");
    });
}

#[test]
fn an_abort_ends_both_ends_at_once() {
    each(|mover, transport| {
        for role in mover.roles() {
            let (pair, peer) = Pair::start_alone(mover, transport, *role, |_| {});
            pair.gate.open();
            pair.stop.abort();
            assert_eq!(pair.stop.phase(), Phase::Abort);
            let ended = pair.flow.join();
            assert!(matches!(ended, Err(MoveError::Aborted { flow: 0 })), "{ended:?}");
            drop(peer);
        }
    });
}

#[test]
fn a_peer_that_vanishes_is_named() {
    each_that(Role::Sender, |mover, transport| {
        if transport == Transport::Udp {
            return;
        }
        let (pair, peer) = Pair::start_alone(mover, transport, Role::Sender, |_| {});
        pair.gate.open();
        drop(peer);
        let ended = pair.flow.join();
        assert!(matches!(ended, Err(MoveError::PeerGone { .. })), "{}: {ended:?}", mover.id());
    });
}

/// Checked by counted bytes against the flow's own time, not the test's: the time a flow was paced
/// allows no more bytes than its rate gives.
#[test]
fn a_paced_sender_never_exceeds_its_rate() {
    const RATE: f64 = 80e6;
    each_that(Role::Sender, |mover, transport| {
        let pair = Pair::start(mover, transport, |config| {
            config.limit_bytes = Some(1_000_000);
            config.rate = (config.role == Role::Sender).then_some(BitRate(RATE));
        });
        let began = std::time::Instant::now();
        pair.gate.open();
        patience(|| pair.sender.is_finished());
        let seconds = (pair.sender.finished_at().unwrap() - began).as_secs_f64();
        let paced_us = pair.sender.counters().paced_us();
        let (sent, received) = pair.join();
        sent.result.unwrap();
        received.result.unwrap();
        let most = RATE / 8.0 * (seconds + 0.001) + 20_000.0;
        assert!(
            sent.counters.bytes() as f64 <= most,
            "{}: {} in {seconds} s",
            mover.id(),
            sent.counters.bytes()
        );
        assert!(paced_us > 0 && sent.counters.calls() > 90, "{}: {paced_us} us", mover.id());
    });
}

#[test]
fn a_paced_receiver_reads_no_faster() {
    const RATE: f64 = 80e6;
    each_that(Role::Receiver, |mover, transport| {
        if transport == Transport::Udp {
            return;
        }
        let pair = Pair::start(mover, transport, |config| {
            config.limit_bytes = Some(1_000_000);
            config.rate = (config.role == Role::Receiver).then_some(BitRate(RATE));
        });
        let began = std::time::Instant::now();
        pair.gate.open();
        patience(|| pair.receiver.is_finished());
        let seconds = (pair.receiver.finished_at().unwrap() - began).as_secs_f64();
        let (_, received) = pair.join();
        received.result.unwrap();
        assert_eq!(received.counters.bytes(), 1_000_000);
        assert!(
            received.counters.bytes() as f64 <= RATE / 8.0 * (seconds + 0.001) + 20_000.0,
            "{seconds}"
        );
    });
}
