//! A flow of bodies: read to the end of each and no further, over one connection or several, decoded or not.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use goodput_model::{Known, Plan, Role, TcpInfo, Transport};
use goodput_mover::{
    Bodies, Body, BodyError, BodySource, Connections, Extent, FlowConfig, Gate, MoveError, Pause,
    Stop,
};

/// Bodies of these extents, each asked for by a byte; some on a connection of its own.
struct Asking {
    server: std::net::SocketAddr,
    socket: TcpStream,
    extents: std::vec::IntoIter<(Extent, bool)>,
    patience: Duration,
}

impl Bodies for Asking {
    fn next(&mut self, pause: &Pause<'_>) -> Result<Option<Body>, BodyError> {
        let Some((extent, anew)) = self.extents.next() else { return Ok(None) };
        let mut socket = None;
        if anew {
            self.socket = TcpStream::connect(self.server).expect("it works");
            socket = Some(self.socket.try_clone().expect("it works").into());
        }
        self.socket.write_all(b"?").expect("it works");
        let until = Instant::now() + Duration::from_secs(60);
        pause.on(self.socket.as_fd(), false, until)?;
        Ok(Some(Body { extent, socket }))
    }

    /// Every byte comes twice.
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let half = room.len().div_ceil(2);
        let read = (&self.socket).read(&mut room[..half])?;
        if room[..read].contains(&b'!') {
            return Err(io::Error::other("it cries"));
        }
        Ok((2 * read).min(room.len()))
    }

    fn patience(&self) -> Duration {
        self.patience
    }
}

struct Uncounted;

impl Connections for Uncounted {
    fn leaves(&self, _socket: BorrowedFd<'_>) {}

    fn tcp_info(&self, _socket: BorrowedFd<'_>) -> Known<TcpInfo> {
        Known::missing("nobody counts")
    }
}

/// Answers every question with `answer`, and closes after `count` of a connection.
fn serve(listener: TcpListener, answer: &'static [u8], count: usize) {
    std::thread::spawn(move || {
        while let Ok((mut socket, _)) = listener.accept() {
            for _ in 0..count {
                let mut question = [0];
                if socket.read_exact(&mut question).is_err() {
                    break;
                }
                let _ = socket.write_all(answer);
            }
        }
    });
}

fn fetch(
    mover: &str,
    answer: &'static [u8],
    count: usize,
    extents: &[(Extent, bool)],
    patience: Duration,
) -> (u64, Result<(), MoveError>) {
    let listener = TcpListener::bind("localhost:0").expect("it works");
    let server = listener.local_addr().expect("it works");
    serve(listener, answer, count);
    let socket = TcpStream::connect(server).expect("it works");
    let flow = socket.try_clone().expect("it works");
    let extents: Vec<_> = extents.to_vec();
    let extents = extents.into_iter();
    let source = BodySource::new(Asking { server, socket, extents, patience }, Uncounted);
    let config = FlowConfig {
        bodies: Some(Arc::new(source)),
        ..FlowConfig::new(Role::Receiver, Transport::Tcp, 1 << 16)
    };
    let (gate, stop) = (Arc::new(Gate::default()), Arc::new(Stop::new().expect("it works")));
    gate.open();
    let mover = goodput_mover::find(mover).expect("it works");
    let running = goodput_mover::start(mover, config, flow.into(), gate, stop).expect("it works");
    let counters = Arc::clone(running.counters());
    let result = running.join();
    (counters.bytes(), result)
}

const LONG: Duration = Duration::from_secs(60);

fn fails(mover: &str, answer: &'static [u8], extents: &[(Extent, bool)]) -> String {
    fetch(mover, answer, 1, extents, LONG).1.expect_err("it fails").to_string()
}

#[test]
fn every_receiver_reads_bodies_to_their_end_and_no_further() {
    let bodies = [(Extent::Bytes(5), false), (Extent::Bytes(5), false)];
    for mover in goodput_mover::ALL.iter().filter(|mover| mover.roles().contains(&Role::Receiver)) {
        if !mover.transports().contains(&Transport::Tcp)
            || goodput_mover::check_here(*mover, &Plan::standard(), Role::Receiver).is_err()
        {
            continue;
        }
        let (bytes, result) = fetch(mover.id(), b"12345", 9, &bodies, LONG);
        assert!(result.is_ok() && bytes == 10, "{}: {bytes} {result:?}", mover.id());
    }
}

#[test]
fn a_body_may_come_on_another_connection() {
    let bodies = [(Extent::Bytes(5), false), (Extent::ToClose, true), (Extent::Bytes(5), true)];
    for mover in ["copy", "discard"] {
        let (bytes, result) = fetch(mover, b"12345", 1, &bodies, LONG);
        assert!(result.is_ok() && bytes == 15, "{mover}: {bytes} {result:?}");
    }
}

#[test]
fn a_body_is_decoded_by_who_asked_for_it() {
    let (bytes, result) = fetch("copy", b"12345", 1, &[(Extent::Decoded, false)], LONG);
    assert!(result.is_ok() && bytes == 10, "{bytes} {result:?}");
    let why = fails("copy", b"12!45", &[(Extent::Decoded, false)]);
    assert_eq!(why, "it cries");
}

#[test]
fn a_body_that_ends_early_or_stalls_is_an_error() {
    let why = fails("discard", b"12345", &[(Extent::Bytes(7), false)]);
    assert!(why.contains("after 5 of the 7 bytes"), "{why}");
    let (_, result) =
        fetch("copy", b"12345", 9, &[(Extent::Bytes(7), false)], Duration::from_millis(20));
    let why = result.unwrap_err().to_string();
    assert!(why.contains("stalled: after 5 bytes"), "{why}");
}
