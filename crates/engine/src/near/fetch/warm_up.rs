//! The fetch before the measurement.

use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use goodput_files::{Body, Conversation, Extent, FileError, Ready, Wait};
use goodput_model::Fetch;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use rustix::time::Timespec;

/// How long payload is read. What does not come in this time the measurement itself will bring.
const READING: Duration = Duration::from_secs(10);
/// Bytes of one read.
const ROOM_BYTES: usize = 256 << 10;

/// Waits without an end but the given one.
struct Patient;

impl Wait for Patient {
    fn wait(&self, socket: BorrowedFd<'_>, ready: Ready, until: Instant) -> Result<(), FileError> {
        let events = if ready == Ready::Read { PollFlags::IN } else { PollFlags::OUT };
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(left.subsec_nanos()),
        };
        match poll(&mut [PollFd::from_borrowed_fd(socket, events)], Some(&left)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(cause) => {
                Err(FileError::Io { operation: "wait for the server".into(), cause: cause.into() })
            }
        }
    }
}

/// Fetches the file once, to nothing.
pub fn fetch(conversation: &mut dyn Conversation) -> Result<Fetch, FileError> {
    let body = conversation.fetch(&Patient)?;
    let until = body.answered + READING;
    let (bytes, whole) = read(conversation, &body, until)?;
    if whole && bytes == 0 {
        return Err(FileError::Refused("the file is empty: there is nothing to measure".into()));
    }
    Ok(Fetch {
        bytes,
        whole,
        first_byte_us: body.answered.saturating_duration_since(body.asked).as_secs_f64() * 1e6,
        took_s: body.asked.elapsed().as_secs_f64(),
    })
}

/// Reads the payload until `until`: how many bytes came, and whether that was all.
fn read(
    conversation: &mut dyn Conversation,
    body: &Body,
    until: Instant,
) -> Result<(u64, bool), FileError> {
    let mut room = vec![0; ROOM_BYTES];
    let (mut bytes, mut heard) = (0, false);
    loop {
        let left = match body.extent {
            Extent::Bytes(all) => all - bytes,
            Extent::ToClose | Extent::Decoded => u64::MAX,
        };
        if left == 0 {
            return Ok((bytes, true));
        }
        let want = usize::try_from(left).unwrap_or(usize::MAX).min(ROOM_BYTES);
        match read_some(conversation, body, &mut room[..want]) {
            Ok(0) if matches!(body.extent, Extent::Bytes(_)) => {
                let all = bytes + left;
                return Err(FileError::Protocol(format!(
                    "the server ended the connection after {bytes} of the {all} bytes that it had announced"
                )));
            }
            Ok(0) => return Ok((bytes, true)),
            Ok(read) => (bytes, heard) = (bytes + read as u64, true),
            Err(cause) => match cause.kind() {
                ErrorKind::Interrupted => {}
                ErrorKind::WouldBlock => wait(conversation, until)?,
                ErrorKind::Other => return Err(FileError::Protocol(cause.to_string())),
                _ => return Err(FileError::Io { operation: "read the file".into(), cause }),
            },
        }
        if Instant::now() >= until {
            return if heard { Ok((bytes, false)) } else { Err(stalled()) };
        }
    }
}

fn stalled() -> FileError {
    let seconds = READING.as_secs();
    FileError::TimedOut(format!("the server stalled: no payload came within {seconds} s"))
}

fn read_some(
    conversation: &mut dyn Conversation,
    body: &Body,
    room: &mut [u8],
) -> std::io::Result<usize> {
    match conversation.socket() {
        Some(socket) if body.extent != Extent::Decoded => {
            Ok(recv(socket, room, RecvFlags::empty())?.0)
        }
        _ => conversation.read(room),
    }
}

fn wait(conversation: &dyn Conversation, until: Instant) -> Result<(), FileError> {
    let socket: Option<&OwnedFd> = conversation.socket();
    socket.map_or(Ok(()), |socket| Patient.wait(socket.as_fd(), Ready::Read, until))
}
