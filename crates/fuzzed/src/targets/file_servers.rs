//! What servers of files answer, by every scheme: to each question the next piece of the input, until there is no more.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use goodput_files::{Conversation, Dial, FileError, NfsOptions, Options, Ready, Wait, schemes};

/// Largest size of one piece.
const MAX_PIECE_BYTES: usize = 4096;
/// Largest number of waits in one conversation: an answer in more pieces finds no more errors.
const MAX_WAITS: u32 = 200;
/// The last fragment of a record (RFC 5531 section 11).
const LAST_FRAGMENT_BIT: u32 = 1 << 31;

/// Takes any bytes.
pub fn run(data: &[u8]) {
    let Some((&kind, script)) = data.split_first() else { return };
    // Encrypted ones are rustls's to read.
    let open = [("http", false), ("ftp", false), ("nfs", false), ("nfs", true)];
    let (scheme, stores) = open[usize::from(kind) % open.len()];
    let client = schemes::find(scheme).expect("it is in the list");
    let place = schemes::parse(&format!("{scheme}://server/export/file")).expect("it is one");
    let server = Server(Arc::new(Mutex::new(Script {
        pieces: script.to_vec(),
        is_rpc: scheme == "nfs",
        xid: None,
        far: Vec::new(),
        waits: 0,
    })));
    let nfs = NfsOptions { read_bytes: Some(1000), write_bytes: Some(500), slots: Some(3) };
    let options = Arc::new(Options { nfs, ..Options::default() });
    let mut conversation = (client.open)(place, options, Box::new(server.clone()));
    for _ in 0..3 {
        let done = match stores {
            true => store(conversation.as_mut(), &server),
            false => fetch(conversation.as_mut(), &server),
        };
        if done.is_none() {
            return;
        }
    }
}

/// Asks for the file, and reads it as a mover does. `None`: there is no more to hope for.
fn fetch(conversation: &mut dyn Conversation, server: &Server) -> Option<()> {
    conversation.fetch(server).ok()?;
    let mut room = [0; 700];
    loop {
        match conversation.read(&mut room) {
            Ok(0) => return Some(()),
            Ok(read) => assert!(read <= room.len(), "no more than there is room for"),
            Err(why) if why.kind() == ErrorKind::WouldBlock => server.say_more().ok()?,
            Err(why) if why.kind() == ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}

/// Stores a file as a mover does, and removes it. `None`: there is no more to hope for.
fn store(conversation: &mut dyn Conversation, server: &Server) -> Option<()> {
    let mut left = 1501;
    conversation.store(Some(left as u64), server).ok()?;
    while left > 0 {
        match conversation.write(&[7; 700][..left.min(700)]) {
            Ok(written) => {
                assert!((1..=left).contains(&written), "no more than there is");
                left -= written;
            }
            Err(why) if why.kind() == ErrorKind::WouldBlock => server.say_more().ok()?,
            Err(_) => return None,
        }
    }
    conversation.stored(server).ok()?;
    conversation.remove(server).ok().map(drop)
}

/// The server, which answers when it is waited for.
#[derive(Clone)]
struct Server(Arc<Mutex<Script>>);

struct Script {
    /// Pieces that are not said: each has its length in front, two bytes, of which the highest bits say how and where.
    pieces: Vec<u8>,
    is_rpc: bool,
    /// The number of the next call on the last connection, once one came.
    xid: Option<u32>,
    /// The server's ends of the connections, the last one last.
    far: Vec<UnixStream>,
    waits: u32,
}

impl Server {
    fn script(&self) -> MutexGuard<'_, Script> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says the next piece, or hangs up.
    fn say_more(&self) -> Result<(), FileError> {
        let mut script = self.script();
        script.waits += 1;
        if script.waits > MAX_WAITS {
            return Err(FileError::Stopped);
        }
        let Some((said, is_for_older)) = script.next() else {
            script.far.clear();
            return Ok(());
        };
        let at = script.far.len().checked_sub(1 + usize::from(is_for_older));
        let far = at.and_then(|at| script.far.get_mut(at)).ok_or(FileError::Stopped)?;
        // What does not fit is as good as lost.
        let _ = far.write_all(&said);
        Ok(())
    }
}

impl Script {
    /// The next piece, and whether it is for the connection before the last. That of an RPC server answers the next call.
    fn next(&mut self) -> Option<(Vec<u8>, bool)> {
        let (head, rest) = self.pieces.split_first_chunk::<2>()?;
        let head = usize::from(u16::from_be_bytes(*head));
        let (is_raw, is_for_older) = (head & 1 << 15 != 0, head & 1 << 14 != 0);
        let piece = rest[..(head % MAX_PIECE_BYTES).min(rest.len())].to_vec();
        self.pieces.drain(..2 + piece.len());
        let mut call = [0; 8];
        if self.xid.is_none()
            && let Some(far) = self.far.last_mut()
            && far.read_exact(&mut call).is_ok()
        {
            self.xid = Some(u32::from_be_bytes([call[4], call[5], call[6], call[7]]));
        }
        let Some(xid) = self.xid.filter(|_| self.is_rpc && !is_raw) else {
            return Some((piece, is_for_older));
        };
        self.xid = Some(xid.wrapping_add(1));
        let mark = LAST_FRAGMENT_BIT | (piece.len() + 4) as u32;
        let record = [&mark.to_be_bytes(), &xid.to_be_bytes(), piece.as_slice()].concat();
        Some((record, is_for_older))
    }
}

impl Dial for Server {
    fn connect(&mut self, _: &str, _: u16, _: &dyn Wait) -> Result<OwnedFd, FileError> {
        let failed = |cause| FileError::Io { operation: "make a pair of sockets".into(), cause };
        let (near, far) = UnixStream::pair().map_err(failed)?;
        far.set_nonblocking(true).map_err(failed)?;
        let mut script = self.script();
        script.far.push(far);
        script.xid = None;
        Ok(near.into())
    }
}

impl Wait for Server {
    fn wait(&self, _: BorrowedFd<'_>, ready: Ready, _: Instant) -> Result<(), FileError> {
        match ready {
            Ready::Read | Ready::Either => self.say_more(),
            // Nobody reads what is asked.
            Ready::Write => Err(FileError::Stopped),
        }
    }

    fn rest(&self, _: Instant) -> Result<(), FileError> {
        Ok(())
    }
}
