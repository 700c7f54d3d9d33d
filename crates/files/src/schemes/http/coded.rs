//! A body that can't be read from the socket unchanged: it is encrypted, or in chunks, or both.

use std::io;

use ureq_proto::client::Call;
use ureq_proto::client::state::RecvBody;

use crate::connection::Connection;
use crate::conversation::Extent;

/// Bytes of payload in chunks that are read at once.
const CODED_BYTES: usize = 128 << 10;

/// Most bytes of chunk sizes and trailer fields without payload in between.
const MAX_WORDS_BYTES: usize = 64 << 10;

/// Such a body during the read.
pub(super) enum Coded {
    /// In chunks, with bytes that arrived but are not decoded yet.
    Chunks { call: Box<Call<RecvBody>>, raw: Vec<u8> },
    /// This many bytes.
    Bytes { left: u64, all: u64 },
    /// Everything until the connection ends.
    ToClose,
}

impl Coded {
    /// A body of this extent, in chunks if there is a decoder.
    pub(super) fn of(chunks: Option<Call<RecvBody>>, extent: Extent) -> Option<Self> {
        match (chunks, extent) {
            (Some(call), _) => Some(Self::Chunks { call: Box::new(call), raw: Vec::new() }),
            (None, Extent::Bytes(0)) => None,
            (None, Extent::Bytes(all)) => Some(Self::Bytes { left: all, all }),
            (None, Extent::ToClose) => Some(Self::ToClose),
            (None, Extent::Decoded) => None,
        }
    }

    pub(super) fn is_chunked(&self) -> bool {
        matches!(self, Self::Chunks { .. })
    }

    /// Whether it was read exactly to its end.
    pub(super) fn is_read(&self) -> bool {
        match self {
            Self::Chunks { call, raw } => call.can_proceed() && raw.is_empty(),
            Self::Bytes { left, .. } => *left == 0,
            Self::ToClose => false,
        }
    }

    /// Reads payload, without waiting; zero is its end.
    pub(super) fn read(
        &mut self,
        connection: &mut Connection,
        room: &mut [u8],
    ) -> io::Result<usize> {
        match self {
            Self::Chunks { call, raw } => read_chunks(call, raw, connection, room),
            Self::ToClose => connection.read(room),
            Self::Bytes { left: 0, .. } => Ok(0),
            Self::Bytes { left, all } => {
                let want = usize::try_from(*left).unwrap_or(usize::MAX).min(room.len());
                match connection.read(&mut room[..want]) {
                    Ok(read) if read > 0 => {
                        *left -= read as u64;
                        Ok(read)
                    }
                    Err(cause) if cause.kind() != io::ErrorKind::UnexpectedEof => Err(cause),
                    _ => Err(io::Error::other(format!(
                        "the server ended the connection after {} of the {all} bytes that it had announced",
                        *all - *left
                    ))),
                }
            }
        }
    }
}

fn read_chunks(
    call: &mut Call<RecvBody>,
    raw: &mut Vec<u8>,
    connection: &mut Connection,
    room: &mut [u8],
) -> io::Result<usize> {
    let mut without_payload = 0;
    loop {
        let (used, given) = call
            .read(raw, room)
            .map_err(|why| io::Error::other(format!("the server's chunks can't be read: {why}")))?;
        raw.drain(..used);
        without_payload += used;
        if given == 0 && without_payload > MAX_WORDS_BYTES {
            let why = "the server's chunks can't be read: more than 64 KiB without payload";
            return Err(io::Error::other(why));
        }
        if given > 0 || call.can_proceed() {
            return Ok(given);
        }
        if used == 0 {
            fill(raw, connection)?;
        }
    }
}

/// Reads more of the coded bytes.
fn fill(raw: &mut Vec<u8>, connection: &mut Connection) -> io::Result<()> {
    if raw.len() >= CODED_BYTES {
        return Err(io::Error::other("the server's chunks can't be read: one has no length"));
    }
    let at = raw.len();
    raw.resize(at + CODED_BYTES, 0);
    let read = connection.read(&mut raw[at..]);
    raw.truncate(at + read.as_ref().map_or(0, |read| *read));
    match read? {
        0 => Err(io::Error::other("the server ended the connection in the middle of a chunk")),
        _ => Ok(()),
    }
}
