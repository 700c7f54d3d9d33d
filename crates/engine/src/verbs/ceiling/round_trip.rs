//! The round-trip time to a host: from an open connection to it, otherwise from a TCP handshake.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use goodput_kernel::{ForeignSocket, SocketFilter, foreign_sockets};
use goodput_model::Missing;

use super::CeilingFacts;

/// Number of handshakes; the shortest counts.
const TIMED_HANDSHAKES: usize = 3;
/// How long one handshake may take.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(1);

/// Notes the round-trip time, or why it is unknown.
pub(super) fn note(address: SocketAddr, found: &mut CeilingFacts) {
    let open = foreign_sockets(&SocketFilter::default()).map(|all| shortest(&all, address));
    let (us, how) = match open {
        Ok(Some(us)) => (us, "of a connection that is open"),
        Ok(None) | Err(_) => match handshakes(address) {
            Ok(us) => (us, "of a TCP handshake"),
            Err(why) => return found.lack("rtt_us", "round-trip time", why),
        },
    };
    found.inputs.rtt_us = Some(us);
    found.note(
        "rtt_us",
        format!("a round trip of {} to {}, {how}", goodput_ceiling::time(us / 1e6), address.ip()),
    );
}

/// The shortest round trip on the connections to this address, microseconds.
fn shortest(sockets: &[ForeignSocket], address: SocketAddr) -> Option<f64> {
    let there = sockets
        .iter()
        .filter(|socket| socket.peer.ip().to_canonical() == address.ip().to_canonical());
    let seen = there.filter_map(|socket| socket.tcp_info.value()?.min_rtt_us().ok());
    // A connection that was never acknowledged has no value (`tcp_min_rtt`, net/ipv4/tcp.c).
    seen.filter(|us| *us > 0 && *us < u64::from(u32::MAX)).min().map(|us| us as f64)
}

/// The shortest of a few handshakes, microseconds. A refusal is an answer too.
fn handshakes(address: SocketAddr) -> Result<f64, Missing> {
    let mut times = Vec::new();
    for _ in 0..TIMED_HANDSHAKES {
        let began = Instant::now();
        match TcpStream::connect_timeout(&address, HANDSHAKE_TIMEOUT) {
            Err(error) if error.kind() != ErrorKind::ConnectionRefused => {
                return Err(Missing::because(format!("no handshake with {address}: {error}")));
            }
            Ok(_) | Err(_) => times.push(began.elapsed().as_secs_f64() * 1e6),
        }
    }
    let shortest = times.into_iter().reduce(f64::min);
    shortest.ok_or_else(|| Missing::because("no handshake was tried"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn an_answer_and_a_refusal_are_timed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        assert!(handshakes(address).unwrap() > 0.0);
        drop(listener);
        assert!(handshakes(address).unwrap() > 0.0);
    }

    #[test]
    fn an_open_connection_reports_its_round_trip() {
        use std::io::{Read, Write};
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut one = TcpStream::connect(address).unwrap();
        let (mut other, _) = listener.accept().unwrap();
        one.write_all(b"x").unwrap();
        other.read_exact(&mut [0]).unwrap();
        let mut found = CeilingFacts::default();
        note(address, &mut found);
        assert!(found.inputs.rtt_us.is_some_and(|us| us > 0.0), "{found:?}");
        assert_eq!(found.unread, []);
    }
}
