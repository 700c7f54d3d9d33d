//! What every scheme brings: a conversation with its server, and what that answers.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use crate::error::FileError;
use crate::link::{Dial, Ready, Wait};
use crate::login::Login;
use crate::place::Place;
use crate::proxy::Proxy;
use crate::schemes::nfs::{NfsOptions, RpcLog};

/// A way to ask for files: an entry of the registry.
pub struct Scheme {
    /// Its id, equal to how its places begin.
    pub id: &'static str,
    /// One line for a list.
    pub summary: &'static str,
    /// The usual port.
    pub port: u16,
    /// Whether its payload can never be read off a socket as it is.
    pub decoded: bool,
    /// Whether its servers may insist on a local port below 1024.
    pub low_port: bool,
    /// Whether its servers are told the user of a URL also if there is no password.
    pub lone_user: bool,
    /// Whether what follows the question mark of a URL is about the server, not about the file.
    pub server_query: bool,
    /// Begins a conversation about the file at a place. Nothing is sent yet.
    pub open: Open,
}

/// Begins a conversation about a place.
pub type Open = fn(Place, Arc<Options>, Box<dyn Dial>) -> Box<dyn Conversation>;

/// How the user wants servers to be met.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Who asks, if the user says so.
    pub login: Option<Login>,
    /// File of certificates (PEM) of the authorities that are trusted, in place of the system's.
    pub authorities: Option<PathBuf>,
    /// Whether any certificate will do.
    pub insecure: bool,
    /// By whom web servers are reached, if not directly.
    pub proxy: Option<Proxy>,
    /// Whether redirects may lead to hosts that the user did not name.
    pub follow: bool,
    /// How files of NFS servers are read and written.
    pub nfs: NfsOptions,
}

/// A conversation with a server about one file, which is fetched again and again, or stored and then removed.
pub trait Conversation: Send {
    /// Connects and logs in, so that the next question need not.
    fn connect(&mut self, wait: &dyn Wait) -> Result<(), FileError>;

    /// Asks for the whole file, and returns when its payload can be read. What the body before had left on the
    /// connection must have been read, or the connection is given up.
    fn fetch(&mut self, wait: &dyn Wait) -> Result<Body, FileError>;

    /// Reads payload of a body that is [`Extent::Decoded`], without waiting: an error of the kind `WouldBlock` if
    /// nothing has come. Zero is the end of the body.
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize>;

    /// Asks to store the file, in place of what it holds, and returns when its payload can be written: `bytes` of it, or,
    /// if that is `None`, any number. The body before has been [`Conversation::stored`], or the connection is given up.
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

    /// All payload of the body is written: returns when the server has said that it has the file.
    fn stored(&mut self, _wait: &dyn Wait) -> Result<(), FileError> {
        Ok(())
    }

    /// What a server said that takes no more of a body, if it says anything soon.
    fn refusal(&mut self, _wait: &dyn Wait) -> Option<FileError> {
        None
    }

    /// Removes the file. Whether it was there.
    fn remove(&mut self, _wait: &dyn Wait) -> Result<bool, FileError> {
        Err(FileError::Place("goodput can't remove files from servers of this kind".into()))
    }

    /// Has the next question be about another file of the same server, over the same connection. Whether it can.
    fn turn_to(&mut self, _place: &Place) -> bool {
        false
    }

    /// The socket of the last body.
    fn socket(&self) -> Option<&OwnedFd>;

    /// Has the next question go over a new connection, as when a body was not read to its end.
    fn hang_up(&mut self);

    /// What is known of the server.
    fn about(&self) -> About;

    /// Whether the last body ended before its time, because its connection broke: the next question goes on where it ended.
    fn is_cut(&self) -> bool {
        false
    }

    /// Gives up the connection of a body that brings nothing more. Whether the next question can go on where it ended.
    fn cut(&mut self, _why: &str) -> bool {
        false
    }

    /// Why nothing moves, if it is not the server that stands still: its connection broke, and none has taken its place.
    fn broken(&self) -> Option<String> {
        None
    }

    /// When it goes on by itself, if the server asked for patience.
    fn resumes_at(&self) -> Option<Instant> {
        None
    }

    /// Whether the next body was asked for long before this one was over, so that the time from its question to its end has
    /// the wait for others in it.
    fn asks_ahead(&self) -> bool {
        false
    }

    /// The round trips of a conversation that asks for a file piece by piece.
    fn rpcs(&self) -> Option<Arc<RpcLog>> {
        None
    }
}

/// The answer to a question for a file, or to the wish to store one.
#[derive(Debug)]
pub struct Body {
    /// How far its payload reaches.
    pub extent: Extent,
    /// Its length as the server announced it, bytes.
    pub announced_bytes: Option<u64>,
    /// Whether its socket is another than that of the body before.
    pub anew: bool,
    /// When the question had left.
    pub asked: Instant,
    /// When the first byte of the answer was there, or when payload could be written: equal to `asked` if no word of the
    /// server was needed for that.
    pub answered: Instant,
}

/// How far payload reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// So many bytes of the socket.
    Bytes(u64),
    /// All until the server closes.
    ToClose,
    /// What [`Conversation::read`] gives, or [`Conversation::write`] takes.
    Decoded,
}

/// What is known of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// Protocol and version of the last answer, as "HTTP/1.1".
    pub version: Option<String>,
    /// What the server calls itself.
    pub server: Option<String>,
    /// Version of TLS and its cipher, if the payload is encrypted.
    pub tls: Option<String>,
    /// Where the file was found in the end, if redirects led elsewhere.
    pub moved_to: Option<String>,
    /// What the server or a cache on the way said of how the answer came about, by the name of its field in lower case.
    pub remarks: BTreeMap<String, String>,
}
