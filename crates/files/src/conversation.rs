//! The interface of every client: a conversation with its server, and the server's answers.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;

use crate::error::FileError;
use crate::link::{Dial, Ready, Wait};
use crate::options::Options;
use crate::place::Place;
use crate::rpc_log::RpcLog;
use crate::scheme::Scheme;

/// A client of one kind of file server: an entry of the registry.
pub struct Client {
    /// The kind of server.
    pub scheme: Scheme,
    /// Begins a conversation about the file at a place. Nothing is sent yet.
    pub open: Open,
}

/// Begins a conversation about a place.
pub type Open = fn(Place, Arc<Options>, Box<dyn Dial>) -> Box<dyn Conversation>;

/// A conversation with a server about one file, which is fetched repeatedly, or stored and then removed.
pub trait Conversation: Send {
    /// Connects and logs in before the first request.
    fn connect(&mut self, wait: &dyn Wait) -> Result<(), FileError>;

    /// Requests the whole file, and returns when its payload can be read. The previous body must have been read from
    /// the connection completely, or the connection is closed.
    fn fetch(&mut self, wait: &dyn Wait) -> Result<Body, FileError>;

    /// From now on the caller reads at most this many bytes, of all bodies together: no more need be asked for. A server
    /// may send more anyway.
    fn want(&mut self, _bytes: u64) {}

    /// Reads payload of a body that is [`Extent::Decoded`], without waiting: an error of the kind `WouldBlock` if
    /// nothing has arrived. Zero is the end of the body.
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize>;

    /// Requests to store the file, replacing its content, and returns when its payload can be written: `bytes` of it,
    /// or any number if this is `None`. The previous body has been [`Conversation::stored`], or the connection is
    /// closed.
    fn store(&mut self, _bytes: Option<u64>, _wait: &dyn Wait) -> Result<Body, FileError> {
        Err(FileError::Place("goodput can't store files at servers of this kind".into()))
    }

    /// Writes payload of a body that is [`Extent::Decoded`], without waiting: an error of the kind `WouldBlock` if
    /// there is no room.
    fn write(&mut self, _payload: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// What a body that is [`Extent::Decoded`] and takes no more waits for.
    fn awaits(&self) -> Ready {
        Ready::Write
    }

    /// All payload of the body is written: returns when the server has confirmed the file.
    fn stored(&mut self, _wait: &dyn Wait) -> Result<(), FileError> {
        Ok(())
    }

    /// The message of a server that takes no more of a body, if one arrives soon.
    fn refusal(&mut self, _wait: &dyn Wait) -> Option<FileError> {
        None
    }

    /// Removes the file. Returns whether it existed.
    fn remove(&mut self, _wait: &dyn Wait) -> Result<bool, FileError> {
        Err(FileError::Place("goodput can't remove files from servers of this kind".into()))
    }

    /// Directs the next request to another file of the same server, over the same connection. Returns whether it can.
    fn turn_to(&mut self, _place: &Place) -> bool {
        false
    }

    /// The socket of the last body.
    fn socket(&self) -> Option<&OwnedFd>;

    /// Makes the next request use a new connection, for example if a body was not read to its end.
    fn hang_up(&mut self);

    /// Facts about the server.
    fn about(&self) -> About;

    /// Whether the last body ended early because its connection broke: the next request continues at this point.
    fn is_cut(&self) -> bool {
        false
    }

    /// Closes the connection of a body that has stalled. Returns whether the next request can continue at this point.
    fn cut(&mut self, _why: &str) -> bool {
        false
    }

    /// Why nothing moves, if the server is not to blame: its connection broke, and there is no new one.
    fn broken(&self) -> Option<String> {
        None
    }

    /// When it continues on its own, if the server asked to wait.
    fn resumes_at(&self) -> Option<Instant> {
        None
    }

    /// Whether the next body is requested long before this one is over, so that the time from its request to its end
    /// includes the wait for other bodies.
    fn asks_ahead(&self) -> bool {
        false
    }

    /// The round trips of a conversation that requests a file piece by piece.
    fn rpcs(&self) -> Option<Arc<RpcLog>> {
        None
    }
}

/// The answer to a request to fetch or store a file.
#[derive(Debug)]
pub struct Body {
    /// The extent of its payload.
    pub extent: Extent,
    /// The length of the whole file as announced by the server, bytes.
    pub announced_bytes: Option<u64>,
    /// Whether its socket differs from the previous body's.
    pub anew: bool,
    /// When the request had left.
    pub asked: Instant,
    /// When the first byte of the answer arrived, or when payload could be written: equal to `asked` if this needed no
    /// message of the server.
    pub answered: Instant,
}

/// The extent of payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// This many bytes of the socket.
    Bytes(u64),
    /// Everything until the server closes.
    ToClose,
    /// What [`Conversation::read`] returns, or [`Conversation::write`] takes.
    Decoded,
}

/// Facts about a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// Protocol and version of the last answer, such as "HTTP/1.1".
    pub version: Option<String>,
    /// The server's name for itself.
    pub server: Option<String>,
    /// Version of TLS and its cipher, if the payload is encrypted.
    pub tls: Option<String>,
    /// Where the file was found finally, if redirects led elsewhere.
    pub moved_to: Option<String>,
    /// What the server or a cache reported about the origin of the answer, by field name in lower case.
    pub remarks: BTreeMap<String, String>,
}
