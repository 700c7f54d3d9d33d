//! A flow of bodies: read or written to the end of each and no further, over one connection or several, decoded or not.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use goodput_model::{Known, Plan, Role, TcpInfo, Transport};
use goodput_mover::{
    Bodies, Body, BodyError, BodySource, Connections, Extent, FileSource, FlowConfig, FlowStorage,
    Gate, MoveError, Pause, Stop,
};
use rustix::event::PollFlags;

/// Bodies of these extents, each asked for by a byte; some on a connection of its own.
struct Asking {
    server: std::net::SocketAddr,
    socket: TcpStream,
    extents: std::vec::IntoIter<(Extent, bool)>,
    patience: Duration,
    trouble: Option<String>,
}

impl Bodies for Asking {
    fn next(&mut self, pause: &dyn Pause) -> Result<Option<Body>, BodyError> {
        let Some((extent, anew)) = self.extents.next() else { return Ok(None) };
        let mut socket = None;
        if anew {
            self.socket = TcpStream::connect(self.server).expect("it works");
            socket = Some(self.socket.try_clone().expect("it works").into());
        }
        self.socket.write_all(b"?").expect("it works");
        let until = Instant::now() + Duration::from_secs(60);
        pause.on(self.socket.as_fd(), PollFlags::IN, until)?;
        Ok(Some(Body { extent, socket }))
    }

    /// Every byte comes twice.
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let half = room.len().div_ceil(2);
        let read = (&self.socket).read(&mut room[..half])?;
        if room[..read].contains(&b'!') {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it cries"));
        }
        Ok((2 * read).min(room.len()))
    }

    fn trouble(&self) -> Option<String> {
        self.trouble.clone()
    }

    /// If there is another body, it goes on where this one ended.
    fn cut(&mut self, _why: &str) -> bool {
        self.extents.len() > 0
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
            std::thread::spawn(move || {
                for _ in 0..count {
                    let mut question = [0];
                    if socket.read_exact(&mut question).is_err() {
                        break;
                    }
                    let _ = socket.write_all(answer);
                }
            });
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
    fetch_up_to(None, mover, answer, count, extents, patience)
}

/// The same, but no more than this many bytes.
fn fetch_up_to(
    limit_bytes: Option<u64>,
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
    let asking = Asking { server, socket, extents, patience, trouble: None };
    let source = BodySource::new(asking, Uncounted);
    let config = FlowConfig {
        bodies: Some(Arc::new(source)),
        limit_bytes,
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

/// Takes bodies, each on the connection before it or on one of its own, and learns of the end of each by a byte.
struct Taking {
    server: std::net::SocketAddr,
    socket: TcpStream,
    extent: Extent,
    anew: bool,
    most_bytes: u64,
    patience: Duration,
    /// How much later than the end of a body the byte comes.
    hears_after: Duration,
}

impl Bodies for Taking {
    fn next(&mut self, _pause: &dyn Pause) -> Result<Option<Body>, BodyError> {
        Ok(None)
    }

    fn read(&mut self, _room: &mut [u8]) -> io::Result<usize> {
        Ok(0)
    }

    fn store(&mut self, bytes: Option<u64>, _pause: &dyn Pause) -> Result<Body, BodyError> {
        let mut socket = None;
        if self.anew {
            self.socket = TcpStream::connect(self.server).expect("it works");
            socket = Some(self.socket.try_clone().expect("it works").into());
        }
        let length = bytes.expect("it is known");
        self.socket.write_all(&length.to_be_bytes()).expect("it works");
        Ok(Body { extent: self.extent, socket })
    }

    fn most_bytes(&self) -> u64 {
        self.most_bytes
    }

    /// Half of the payload is left out.
    fn write(&mut self, payload: &[u8]) -> io::Result<usize> {
        let half = payload.len() / 2;
        Ok((2 * (&self.socket).write(&payload[..half.max(1)])?).min(payload.len()))
    }

    fn stored(&mut self, pause: &dyn Pause) -> Result<(), BodyError> {
        std::thread::sleep(self.hears_after);
        loop {
            pause.on(self.socket.as_fd(), PollFlags::IN, Instant::now() + LONG)?;
            let mut answer = [0];
            match self.socket.read(&mut answer) {
                Ok(1) if answer == *b"!" => return Ok(()),
                // The stop of the flow ends a wait, too.
                Err(cause) if cause.kind() == io::ErrorKind::WouldBlock => {}
                other => return Err(BodyError::Peer(format!("no answer: {other:?}"))),
            }
        }
    }

    fn refusal(&mut self, _pause: &dyn Pause) -> Option<BodyError> {
        let mut words = [0; 4];
        let read = self.socket.read(&mut words).ok()?;
        (read > 0).then(|| BodyError::Forbidden(String::from_utf8_lossy(&words[..read]).into()))
    }

    fn patience(&self) -> Duration {
        self.patience
    }
}

/// Reads bodies, each after its length, and answers each by a byte; adds up what came. `share` of each is expected.
fn take(listener: TcpListener, share: u64) -> Arc<Mutex<Vec<u64>>> {
    let taken = Arc::new(Mutex::new(Vec::new()));
    let all = Arc::clone(&taken);
    std::thread::spawn(move || {
        while let Ok((mut socket, _)) = listener.accept() {
            let all = Arc::clone(&all);
            std::thread::spawn(move || {
                let mut length = [0; 8];
                while socket.read_exact(&mut length).is_ok() {
                    let wanted = u64::from_be_bytes(length) / share;
                    let came = io::copy(&mut (&mut socket).take(wanted), &mut io::sink());
                    all.lock().expect("nobody panicked").push(came.expect("it works"));
                    let _ = socket.write_all(b"!");
                }
            });
        }
    });
    taken
}

/// Sends this many bytes in bodies of at most 100000.
fn store(
    mover: &str,
    bytes: u64,
    (extent, anew): (Extent, bool),
    storage: FlowStorage,
) -> (Vec<u64>, u64, Result<(), MoveError>) {
    let listener = TcpListener::bind("localhost:0").expect("it works");
    let server = listener.local_addr().expect("it works");
    let taken = take(listener, if extent == Extent::Decoded { 2 } else { 1 });
    let socket = TcpStream::connect(server).expect("it works");
    let (counted, result) =
        send_to(mover, bytes, (extent, anew), storage, (socket, Duration::ZERO));
    let taken = taken.lock().expect("nobody panicked").clone();
    (taken, counted, result)
}

fn send_to(
    mover: &str,
    bytes: u64,
    way: (Extent, bool),
    storage: FlowStorage,
    peer: (TcpStream, Duration),
) -> (u64, Result<(), MoveError>) {
    send_until(&Arc::new(Stop::new().expect("it works")), mover, bytes, way, storage, peer)
}

/// The same, unless `stop` ends it.
fn send_until(
    stop: &Arc<Stop>,
    mover: &str,
    bytes: u64,
    (extent, anew): (Extent, bool),
    storage: FlowStorage,
    (socket, hears_after): (TcpStream, Duration),
) -> (u64, Result<(), MoveError>) {
    let server = socket.peer_addr().expect("it works");
    let flow = socket.try_clone().expect("it works");
    let patience = if extent == Extent::ToClose { Duration::from_millis(20) } else { LONG };
    let most_bytes = if extent == Extent::ToClose { u64::MAX } else { 100_000 };
    let taking = Taking { server, socket, extent, anew, most_bytes, patience, hears_after };
    let config = FlowConfig {
        bodies: Some(Arc::new(BodySource::new(taking, Uncounted))),
        limit_bytes: Some(bytes),
        storage,
        ..FlowConfig::new(Role::Sender, Transport::Tcp, 1 << 14)
    };
    let gate = Arc::new(Gate::default());
    gate.open();
    let mover = goodput_mover::find(mover).expect("it works");
    let running =
        goodput_mover::start(mover, config, flow.into(), gate, Arc::clone(stop)).expect("it works");
    let counters = Arc::clone(running.counters());
    let result = running.join();
    (counters.bytes(), result)
}

const LONG: Duration = Duration::from_secs(60);

fn fails(mover: &str, answer: &'static [u8], extents: &[(Extent, bool)]) -> String {
    fetch(mover, answer, 1, extents, LONG).1.expect_err("it fails").to_string()
}

#[test]
fn every_receiver_reads_bodies_to_their_end_or_limit_and_no_further() {
    let bodies = [(Extent::Bytes(5), false), (Extent::Bytes(5), false)];
    for mover in goodput_mover::ALL.iter().filter(|mover| mover.roles().contains(&Role::Receiver)) {
        if !mover.transports().contains(&Transport::Tcp)
            || goodput_mover::check_here(*mover, &Plan::standard(), Role::Receiver).is_err()
        {
            continue;
        }
        let (bytes, result) = fetch(mover.id(), b"12345", 9, &bodies, LONG);
        assert!(result.is_ok() && bytes == 10, "{}: {bytes} {result:?}", mover.id());
        let (bytes, result) = fetch_up_to(Some(7), mover.id(), b"12345", 9, &bodies, LONG);
        assert!(result.is_ok() && bytes == 7, "{}: {bytes} {result:?}", mover.id());
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
fn a_body_that_brings_nothing_more_may_go_on_on_another_connection() {
    let bodies = [(Extent::Bytes(7), false), (Extent::Bytes(5), true)];
    let (bytes, result) = fetch("copy", b"12345", 2, &bodies, Duration::from_millis(50));
    assert!(result.is_ok() && bytes == 10, "{bytes} {result:?}");
}

#[test]
fn a_body_is_decoded_by_who_asked_for_it() {
    let (bytes, result) = fetch("copy", b"12345", 1, &[(Extent::Decoded, false)], LONG);
    assert!(result.is_ok() && bytes == 10, "{bytes} {result:?}");
    let (_, result) = fetch("copy", b"12!45", 1, &[(Extent::Decoded, false)], LONG);
    let why = result.unwrap_err();
    assert_eq!(why.to_string(), "it cries");
    assert!(why.is_not_permitted());
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

#[test]
fn every_sender_writes_bodies_to_their_end_and_no_further() {
    for mover in goodput_mover::ALL.iter().filter(|mover| mover.roles().contains(&Role::Sender)) {
        if !mover.transports().contains(&Transport::Tcp)
            || goodput_mover::check_here(*mover, &Plan::standard(), Role::Sender).is_err()
        {
            continue;
        }
        for anew in [false, true] {
            let way = (Extent::Bytes(0), anew);
            let (taken, counted, result) = store(mover.id(), 250_001, way, FlowStorage::default());
            assert!(result.is_ok(), "{} {anew}: {result:?}", mover.id());
            assert_eq!(taken, [100_000, 100_000, 50_001], "{} {anew}", mover.id());
            assert_eq!(counted, 250_001, "{}", mover.id());
        }
    }
}

#[test]
fn a_source_is_one_body_each_time() {
    let waiter = goodput_mover::Waiter::default();
    for mover in ["copy", "sendfile", "splice", "mmap-send", "zerocopy"] {
        let source = FileSource::memory(120_000, true, &waiter.awaited()).expect("it works");
        let storage = FlowStorage { source: Some(Arc::new(source)), ..FlowStorage::default() };
        let (taken, _, result) = store(mover, 300_000, (Extent::Bytes(0), true), storage);
        assert!(result.is_ok(), "{mover}: {result:?}");
        assert_eq!(taken, [120_000, 120_000, 60_000], "{mover}");
    }
}

#[test]
fn a_body_that_is_encoded_goes_through_who_asked_for_it() {
    let decoded = (Extent::Decoded, false);
    let (taken, counted, result) = store("copy", 80_000, decoded, FlowStorage::default());
    assert!(result.is_ok() && counted == 80_000, "{counted} {result:?}");
    assert_eq!(taken, [40_000]);
    let (_, _, result) = store("sendfile", 80_000, decoded, FlowStorage::default());
    assert!(result.unwrap_err().to_string().contains("only the mover copy"));
}

#[test]
fn a_server_that_takes_no_more_is_quoted() {
    let listener = TcpListener::bind("localhost:0").expect("it works");
    let socket = TcpStream::connect(listener.local_addr().expect("it works")).expect("it works");
    // It says why and reads nothing.
    let (mut peer, _) = listener.accept().expect("it works");
    peer.write_all(b"full").expect("it works");
    let way = (Extent::ToClose, false);
    let (_, result) =
        send_to("copy", 1 << 40, way, FlowStorage::default(), (socket, Duration::ZERO));
    let why = result.unwrap_err();
    assert_eq!(why.to_string(), "full");
    assert!(why.is_not_permitted() && why.is_by_peer());
}

#[test]
fn the_wait_for_the_word_of_a_server_that_has_all_is_no_standstill() {
    let listener = TcpListener::bind("localhost:0").expect("it works");
    let socket = TcpStream::connect(listener.local_addr().expect("it works")).expect("it works");
    let taken = take(listener, 1);
    // Longer than a silence that would be a stall.
    let slow = (socket, Duration::from_millis(1200));
    let way = (Extent::Bytes(0), false);
    let (counted, result) = send_to("copy", 50_000, way, FlowStorage::default(), slow);
    assert!(result.is_ok() && counted == 50_000, "{counted} {result:?}");
    assert_eq!(*taken.lock().expect("nobody panicked"), [50_000]);
}

#[test]
fn a_server_that_never_confirms_a_whole_body_fails_the_flow() {
    let listener = TcpListener::bind("localhost:0").expect("it works");
    let socket = TcpStream::connect(listener.local_addr().expect("it works")).expect("it works");
    let (mut peer, _) = listener.accept().expect("it works");
    let reader = std::thread::spawn(move || io::copy(&mut peer, &mut io::sink()));
    let stop = Arc::new(Stop::new().expect("it works"));
    let ended = {
        let stop = Arc::clone(&stop);
        std::thread::spawn(move || {
            // Longer than a silence that lost packets explain.
            std::thread::sleep(Duration::from_millis(1100));
            stop.finish(Duration::from_millis(100));
        })
    };
    let way = (Extent::Bytes(0), false);
    let (_, result) =
        send_until(&stop, "copy", 50_000, way, FlowStorage::default(), (socket, Duration::ZERO));
    let why = result.unwrap_err().to_string();
    assert!(why.contains("all 50000 bytes of a body, and did not confirm"), "{why}");
    ended.join().expect("nobody panicked");
    drop(reader);
}

#[test]
fn a_connection_that_broke_is_no_stall() {
    let said = |trouble: Option<&str>| {
        let listener = TcpListener::bind("localhost:0").expect("it works");
        let server = listener.local_addr().expect("it works");
        // It answers with nothing.
        serve(listener, b"", 9);
        let socket = TcpStream::connect(server).expect("it works");
        let flow = socket.try_clone().expect("it works");
        let extents = vec![(Extent::Bytes(5), false)].into_iter();
        let trouble = trouble.map(str::to_owned);
        let asking = Asking { server, socket, extents, patience: LONG, trouble };
        let config = FlowConfig {
            bodies: Some(Arc::new(BodySource::new(asking, Uncounted))),
            ..FlowConfig::new(Role::Receiver, Transport::Tcp, 1 << 16)
        };
        let (gate, stop) = (Arc::new(Gate::default()), Arc::new(Stop::new().expect("it works")));
        gate.open();
        let mover = goodput_mover::find("copy").expect("it works");
        let running = goodput_mover::start(mover, config, flow.into(), gate, Arc::clone(&stop));
        // Longer than a silence that lost packets explain.
        std::thread::sleep(Duration::from_millis(1100));
        stop.finish(Duration::from_millis(100));
        running.expect("it works").join().expect_err("nothing came").to_string()
    };
    assert!(said(None).contains("the server stalled"), "{}", said(None));
    assert_eq!(said(Some("the connection broke")), "the connection broke");
}

#[test]
fn what_was_acknowledged_stays_so() {
    let listener = TcpListener::bind("localhost:0").expect("it works");
    let server = listener.local_addr().expect("it works");
    let socket = TcpStream::connect(server).expect("it works");
    let extents = Vec::new().into_iter();
    let asking = Asking { server, socket, extents, patience: LONG, trouble: None };
    let source = BodySource::new(asking, Uncounted);
    // Samples of an encrypted upload whose server read nothing for a while.
    let samples = [(8_738_252, 1_275), (11_228_620, 2_497_704), (30_000_000, 0)];
    let known = samples.map(|(sent, waiting)| source.acknowledged_bytes(sent, waiting));
    assert_eq!(known, [8_736_977, 8_736_977, 30_000_000]);
}
