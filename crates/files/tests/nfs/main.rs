//! Reading from NFS servers and writing to them, good and bad ones.

mod ganesha;
mod server;
mod storing;

use std::io::ErrorKind;
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use goodput_files::{Conversation, Dial, FileError, NfsOptions, Options, Ready, Wait, schemes};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use server::{FILE_BYTES, Manner, Server};

struct Plain;

impl Dial for Plain {
    fn connect(&mut self, host: &str, port: u16, _: &dyn Wait) -> Result<OwnedFd, FileError> {
        let socket = TcpStream::connect((host, port));
        let operation = format!("connect to port {port}");
        socket.map(Into::into).map_err(|cause| FileError::Io { operation, cause })
    }
}

/// Waits as long as it may.
struct Patient;

impl Wait for Patient {
    fn wait(&self, socket: BorrowedFd<'_>, ready: Ready, until: Instant) -> Result<(), FileError> {
        let events = match ready {
            Ready::Read => PollFlags::IN,
            Ready::Write => PollFlags::OUT,
            Ready::Either => PollFlags::IN | PollFlags::OUT,
        };
        let left = until.saturating_duration_since(Instant::now()) + Duration::from_millis(1);
        let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        let watched = &mut [PollFd::from_borrowed_fd(socket, events)];
        poll(watched, Some(&left)).expect("it can be waited for");
        Ok(())
    }

    /// The next try is as good now.
    fn rest(&self, _: Instant) -> Result<(), FileError> {
        Ok(())
    }
}

/// Gives up at once.
struct Hasty;

impl Wait for Hasty {
    fn wait(&self, _: BorrowedFd<'_>, _: Ready, _: Instant) -> Result<(), FileError> {
        Err(FileError::Stopped)
    }

    fn rest(&self, _: Instant) -> Result<(), FileError> {
        Err(FileError::Stopped)
    }
}

fn converse(server: &Server, path: &str, nfs: NfsOptions) -> Box<dyn Conversation> {
    let place = schemes::parse(&format!("nfs://{}{path}", server.address)).expect("it is one");
    let options = Arc::new(Options { nfs, ..Options::default() });
    (schemes::nfs::NFS.open)(place, options, Box::new(Plain))
}

fn slots(read_bytes: u32, slots: u16) -> NfsOptions {
    NfsOptions { read_bytes: Some(read_bytes), slots: Some(slots), ..NfsOptions::default() }
}

/// When something comes at the latest.
fn ready_at(conversation: &dyn Conversation) -> Instant {
    conversation.resumes_at().unwrap_or(Instant::now() + Duration::from_secs(60))
}

/// Reads the file to its end.
fn read(conversation: &mut dyn Conversation) -> Result<u64, String> {
    let mut bytes = read_until_cut(conversation)?;
    while conversation.is_cut() {
        bytes += read_until_cut(conversation)?;
    }
    Ok(bytes)
}

/// Reads to the end of a body.
fn read_until_cut(conversation: &mut dyn Conversation) -> Result<u64, String> {
    let body = conversation.fetch(&Patient).map_err(|why| why.to_string())?;
    assert!(body.announced_bytes.is_some());
    let (mut room, mut bytes) = (vec![0; 10_000], 0);
    loop {
        match conversation.read(&mut room) {
            Ok(0) => return Ok(bytes),
            Ok(read) => {
                assert!(room[..read].iter().all(|byte| *byte == 7), "only payload comes");
                bytes += read as u64;
            }
            Err(why) if why.kind() == ErrorKind::WouldBlock => {
                let socket = conversation.socket().expect("there is one").as_fd();
                Patient.wait(socket, Ready::Read, ready_at(conversation)).expect("it waits");
            }
            Err(why) if why.kind() == ErrorKind::Interrupted => {}
            Err(why) => return Err(why.to_string()),
        }
    }
}

#[test]
fn a_file_is_read_again_and_again_on_one_connection() {
    for (read_bytes, in_flight) in [(1000, 1), (999, 8), (65536, 64)] {
        let server = Server::start(Manner::Honest);
        let mut conversation = converse(&server, "/export/file", slots(read_bytes, in_flight));
        for _ in 0..3 {
            assert_eq!(read(conversation.as_mut()), Ok(FILE_BYTES));
        }
        let calls = conversation.rpcs().expect("it makes calls").so_far();
        assert_eq!((calls.call_bytes, calls.slots, calls.short), (read_bytes, in_flight, 0));
        assert!(calls.answered >= 3 * FILE_BYTES / u64::from(read_bytes), "{}", calls.answered);
        assert_eq!(server.mounted(), 0, "the mount is taken back");
    }
}

#[test]
fn what_short_answers_leave_out_is_asked_for_again() {
    let server = Server::start(Manner::Short(700));
    let mut conversation = converse(&server, "/export/file", slots(1000, 4));
    assert_eq!(read(conversation.as_mut()), Ok(FILE_BYTES));
    assert!(conversation.rpcs().expect("it makes calls").so_far().short > 0);
}

#[test]
fn a_body_that_is_not_read_to_its_end_costs_the_connection() {
    let server = Server::start(Manner::Honest);
    let mut conversation = converse(&server, "/export/file", slots(1000, 4));
    assert!(conversation.fetch(&Patient).expect("it is answered").anew);
    assert!(conversation.fetch(&Patient).expect("it is answered").anew);
    assert_eq!(read(conversation.as_mut()), Ok(FILE_BYTES));
}

/// Why nothing can be had of such a server.
fn fails(manner: Manner, path: &str) -> FileError {
    let server = Server::start(manner);
    let failed = converse(&server, path, slots(1000, 4)).fetch(&Patient);
    assert_eq!(server.mounted(), 0, "{manner:?}");
    failed.expect_err("it fails")
}

#[test]
fn what_a_server_does_not_permit_is_distinguished() {
    let denied = fails(Manner::NoMount(13), "/export/file");
    assert!(denied.not_permitted() && denied.to_string().contains("insecure"), "{denied}");
    let weak = fails(Manner::TooWeak, "/export/file");
    assert!(weak.not_permitted() && weak.to_string().contains("below 1024"), "{weak}");
    let first = fails(Manner::ReadFails { after: 0, status: 13 }, "/export/file");
    let first = (first.not_permitted(), first.to_string());
    assert!(
        first.0 && first.1.contains("READ: permission denied; goodput asks as user"),
        "{first:?}"
    );
    assert!(!first.1.contains("1024"), "a port opens no file: {}", first.1);
    let port = fails(Manner::ReadFails { after: 0, status: 1 }, "/export/file");
    assert!(port.not_permitted() && port.to_string().contains("below 1024"), "{port}");
}

#[test]
fn what_is_not_there_is_named() {
    let none = fails(Manner::Honest, "/export/none");
    assert!(none.to_string().contains("LOOKUP: there is no such file"), "{none}");
    let export = fails(Manner::Honest, "/elsewhere/file");
    assert!(export.to_string().contains("exports no part of /elsewhere"), "{export}");
    let nothing = fails(Manner::Honest, "/");
    assert!(nothing.to_string().contains("names no file"), "{nothing}");
}

#[test]
fn a_size_above_what_the_server_allows_becomes_that() {
    let server = Server::start(Manner::Honest);
    let mut conversation = converse(&server, "/export/file", slots(1 << 20, 1));
    assert_eq!(read(conversation.as_mut()), Ok(FILE_BYTES));
    let calls = conversation.rpcs().expect("it makes calls").so_far();
    assert_eq!(u64::from(calls.call_bytes), FILE_BYTES.min(65536));
}

#[test]
fn a_length_without_sense_takes_no_memory() {
    let huge = fails(Manner::HugeHandle, "/export/file").to_string();
    assert!(huge.contains("file handle"), "{huge}");
    let huge = fails(Manner::HugeRecord, "/export/file").to_string();
    assert!(huge.contains("unknown") || huge.contains("called back"), "{huge}");
}

/// Why a file that began to come can't be read on.
fn breaks(manner: Manner) -> String {
    let server = Server::start(manner);
    let mut conversation = converse(&server, "/export/file", slots(1000, 4));
    let broken = read(conversation.as_mut()).expect_err("it breaks");
    assert_eq!(server.mounted(), 0, "{manner:?}");
    broken
}

#[test]
fn what_goes_wrong_on_the_way_is_said() {
    let stale = breaks(Manner::ReadFails { after: 20, status: 70 });
    assert!(stale.contains("stale"), "{stale}");
    let lies = breaks(Manner::TooMuch { after: 20 });
    assert!(lies.contains("1004 bytes, but 1000"), "{lies}");
    let longer = breaks(Manner::SaysLonger);
    assert!(longer.contains("ends after 100000 bytes"), "{longer}");
    let empty = breaks(Manner::EmptyFragments);
    assert!(empty.contains("empty fragment"), "{empty}");
}

#[test]
fn a_broken_connection_is_replaced_and_its_calls_are_made_again() {
    for manner in [Manner::Resets { after: 20 }, Manner::CutShort { after: 20 }] {
        let server = Server::start(manner);
        let mut conversation = converse(&server, "/export/file", slots(1000, 4));
        let mut cut = 0;
        let mut bytes = read_until_cut(conversation.as_mut()).expect("it goes on");
        while conversation.is_cut() {
            cut += 1;
            bytes += read_until_cut(conversation.as_mut()).expect("it goes on");
        }
        assert_eq!(bytes, FILE_BYTES, "every byte comes once");
        let calls = conversation.rpcs().expect("it makes calls").so_far();
        assert!(cut > 0 && calls.reconnects >= cut, "{cut}, {}", calls.reconnects);
        assert!(calls.retransmitted > 0, "{}", calls.retransmitted);
    }
}

#[test]
fn what_a_server_puts_off_is_asked_for_again_later() {
    let server = Server::start(Manner::Later { every: 10 });
    let mut conversation = converse(&server, "/export/file", slots(1000, 4));
    for _ in 0..2 {
        assert_eq!(read(conversation.as_mut()), Ok(FILE_BYTES));
    }
    let calls = conversation.rpcs().expect("it makes calls").so_far();
    assert!(calls.put_off >= 20, "{calls:?}");
    assert!(calls.answered >= 200 && calls.short == 0, "{calls:?}");
    assert_eq!((calls.reconnects, calls.retransmitted), (0, 0));
}

#[test]
fn a_connection_that_broke_is_no_server_that_stands_still() {
    let server = Server::start(Manner::GoneAfterFirst);
    let mut conversation = converse(&server, "/export/file", slots(1000, 4));
    assert_eq!(conversation.broken(), None);
    read(conversation.as_mut()).expect_err("it does not come back");
    let why = conversation.broken().expect("it is broken");
    assert!(why.contains("connection") && !why.contains("stall"), "{why}");
    let stalls = Server::start(Manner::Stalls { after: 0 });
    let mut conversation = converse(&stalls, "/export/file", slots(1000, 4));
    conversation.fetch(&Hasty).expect_err("it is not waited for");
    assert_eq!(conversation.broken(), None, "a server that is silent has a connection");
}

#[test]
fn the_next_pass_is_asked_for_ahead_if_the_calls_reach_over_the_file() {
    let server = Server::start(Manner::Honest);
    for (in_flight, ahead) in [(4, false), (200, true)] {
        let mut conversation = converse(&server, "/export/file", slots(1000, in_flight));
        conversation.fetch(&Patient).expect("it is answered");
        assert_eq!(conversation.asks_ahead(), ahead, "{in_flight}");
    }
}

#[test]
fn a_server_that_does_not_come_back_is_given_up() {
    let gone = breaks(Manner::GoneAfterFirst);
    assert!(gone.contains("3 new connections in a row brought no payload"), "{gone}");
}

#[test]
fn a_wait_for_a_server_that_stalls_can_be_ended() {
    let server = Server::start(Manner::Stalls { after: 0 });
    let mut conversation = converse(&server, "/export/file", slots(1000, 4));
    conversation.connect(&Patient).expect("only READs stall");
    assert!(matches!(conversation.fetch(&Hasty), Err(FileError::Stopped)));
    let mute = Server::start(Manner::MuteMount);
    let mut conversation = converse(&mute, "/export/file", slots(1000, 4));
    assert!(matches!(conversation.connect(&Hasty), Err(FileError::Stopped)));
}
