//! What payload looks like on the wire: how a stream begins and ends, and how datagrams are marked, numbered and ended.
//! A protocol names a framing for its flows, and the mover writes and reads it; neither knows the other. Pure.
#![forbid(unsafe_code)]
// A library returns its results. The print macros would also panic if nobody reads.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod datagrams;
pub mod framings;
mod numbers;
mod times;

use std::fmt::Debug;
use std::ops::Deref;
use std::sync::Arc;

pub use datagrams::{
    Clock, Closing, Datagrams, MAX_DATAGRAM_BYTES, MIN_DATAGRAM_BYTES, Marker, NUMBER_BOUND, Read,
    Sent, Summary,
};
pub use framings::{examples, goodput, iperf2, iperf3, nuttcp, ttcp};

/// What a mover writes around payload, looks for in it, and takes for its end.
///
/// Byte streams differ only in their end: most are ended by closing them. Datagrams differ in everything.
pub trait Layout: Debug + Send + Sync {
    /// The datagrams of flow `flow`, of up to `chunk` bytes each.
    fn datagrams(&self, flow: u16, chunk: usize) -> Box<dyn Datagrams>;

    /// What payload begins with, so that no receiver mistakes it for something else; the rest is random.
    fn lead(&self) -> &'static [u8] {
        b""
    }

    /// Whether a receiver learns elsewhere that everything was sent, and so can only read until nothing more comes.
    fn ends_elsewhere(&self) -> bool {
        false
    }

    /// Whether the end of datagrams may go unheard, because only their markers report it, or may overtake late
    /// datagrams: a receiver that was stopped then waits until nothing more comes.
    fn ends_unheard(&self) -> bool {
        true
    }

    /// Whether the control connection ends the test, and not the end of a stream. A sender then concludes that the
    /// receiver vanished if a stream closes before it has heard of the end, and may reset streams that nobody reads after.
    fn ends_by_control(&self) -> bool {
        false
    }

    /// Whether a receiver reads several byte streams strictly in turn, a chunk of each, and only to the end of the
    /// first one.
    fn is_read_in_turn(&self) -> bool {
        false
    }

    /// Whether datagrams themselves show when the payload's clock begins, by a marker or by the first datagram, not
    /// something that both ends agreed on before.
    fn announces_its_beginning(&self) -> bool {
        false
    }

    /// Whether datagrams carry a number, so that lost and late datagrams can be counted.
    fn numbers_datagrams(&self) -> bool {
        true
    }

    /// Whether datagrams carry their sending time, so that jitter can be measured.
    fn times_datagrams(&self) -> bool {
        true
    }

    /// Whether the end of one flow over UDP ends all flows.
    fn ends_together(&self) -> bool {
        false
    }

    /// Whether a far end may report that it is ready before it listens, so that a refused connection is worth a retry.
    fn listens_late(&self) -> bool {
        false
    }

    /// Whether the receiver of a byte stream writes to the stream. A sender must read this before it closes: if data is
    /// unread then, the kernel discards what it has not sent (`tcp_close`, net/ipv4/tcp.c).
    fn answers_streams(&self) -> bool {
        false
    }

    /// Whether the bytes with which a sender proves a connection count as payload.
    fn counts_proof(&self) -> bool {
        false
    }

    /// What each chunk of a byte stream begins with, if this differs from chunk to chunk.
    fn chunk_header(&self) -> Option<ChunkHeader> {
        None
    }
}

/// The beginning of each chunk of a byte stream.
#[derive(Clone, Copy)]
pub struct ChunkHeader {
    /// Its length, bytes.
    pub len: usize,
    /// Writes it into a buffer of this many bytes.
    pub write: fn(&mut [u8], Chunk),
}

/// A chunk of a byte stream.
#[derive(Debug, Clone, Copy)]
pub struct Chunk {
    /// Its number, from 0.
    pub number: u32,
    /// Its bytes, header included.
    pub len: u64,
    /// When the stream began, nanoseconds since 1970.
    pub began_ns: u64,
    /// When this chunk is sent, nanoseconds since 1970.
    pub at_ns: u64,
}

/// One framing with its options. Two are equal if they write and read the same.
#[derive(Debug, Clone)]
pub struct Framing(Arc<dyn Layout>);

impl Framing {
    /// A framing with this layout, whose `Debug` must show all of its options.
    pub fn new(layout: impl Layout + 'static) -> Self {
        Self(Arc::new(layout))
    }
}

impl Default for Framing {
    /// goodput's own.
    fn default() -> Self {
        goodput()
    }
}

impl Deref for Framing {
    type Target = dyn Layout;

    fn deref(&self) -> &Self::Target {
        self.0.as_ref()
    }
}

impl PartialEq for Framing {
    fn eq(&self, other: &Self) -> bool {
        format!("{:?}", self.0) == format!("{:?}", other.0)
    }
}

impl Eq for Framing {}
