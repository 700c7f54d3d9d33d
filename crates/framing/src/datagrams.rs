//! One flow's datagrams, as a sender writes them and a receiver reads them.

use goodput_model::FlowTotals;

/// Largest UDP payload over IPv4: 65535 less 20 bytes of IP and 8 bytes of UDP header (RFC 768).
pub const MAX_DATAGRAM_BYTES: usize = 65507;

/// The shortest datagram with payload in any framing, bytes: ttcp's.
pub const MIN_DATAGRAM_BYTES: usize = 5;

/// Datagram numbers at and above this are refused: no sender gets there, and sums can't overflow.
pub const NUMBER_BOUND: u64 = 1 << 62;

/// One framing's datagrams, as one flow sends or reads them.
pub trait Datagrams: Send {
    /// Bytes of the shortest datagram that it can send.
    fn least(&self) -> usize;

    /// Bytes of the longest datagram to expect if datagrams of `chunk` bytes were agreed on.
    fn longest(&self, chunk: usize) -> usize {
        chunk
    }

    /// The request for payload that a receiver repeats until some comes, for framings whose senders wait for it.
    /// `_at_ns` is the time since 1970.
    fn request(&self, _at_ns: u64) -> Option<Vec<u8>> {
        None
    }

    /// How long a receiver may turn datagrams away, nanoseconds, if it learns of a flow only through its payload.
    fn settling_ns(&self) -> Option<u64> {
        None
    }

    /// Writes the constant part of a datagram; called once for each slot of a batch.
    fn prepare(&self, _datagram: &mut [u8]) {}

    /// The clock of the sending times that it writes.
    fn clock(&self) -> Clock {
        Clock::Wall
    }

    /// Writes the header of one datagram, which is at least [`Datagrams::least`] bytes long.
    fn write(&self, datagram: &mut [u8], sent: Sent);

    /// What a received datagram means.
    fn read(&mut self, datagram: &[u8]) -> Read;

    /// What is sent before the first datagram with payload.
    fn opening(&self) -> &'static [Marker] {
        &[]
    }

    /// Writes the marker of round `round`, counted from 0, which reports to the receiver that `sent.number` datagrams
    /// were all. `None`: nothing more. `room` has the length of a datagram of the flow.
    fn closing(&self, round: u64, sent: Sent, room: &mut [u8]) -> Option<Closing>;

    /// Whether the sender keeps reporting the end until [`Datagrams::hear`] finds an answer.
    fn awaits_answer(&self) -> bool {
        false
    }

    /// The receiver's report on `flow` in a datagram to the sender, if it sends one.
    fn hear(&self, _flow: u16, _datagram: &[u8]) -> Option<FlowTotals> {
        None
    }

    /// The receiver's report to the sender at the end, if it sends one.
    fn answer(&self, _summary: &Summary) -> Option<Vec<u8>> {
        None
    }

    /// How long after the last datagram a receiver gives the sender up, nanoseconds, if nothing else could show that
    /// the sender is gone.
    fn idle_ns(&self) -> Option<u64> {
        None
    }

    /// How long a receiver keeps reading after the end while datagrams are missing, nanoseconds: datagrams from another
    /// queue may still come.
    fn stragglers_ns(&self) -> u64 {
        50_000_000
    }
}

/// The clock of a sending time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// Time since 1970.
    Wall,
    /// A clock that nobody sets.
    Monotonic,
}

/// A sender's progress through its datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// Number of the datagram, from 0: how many were sent before it.
    pub number: u64,
    /// Payload bytes sent with it and before it.
    pub bytes: u64,
    /// Its sending time, nanoseconds by [`Datagrams::clock`].
    pub at_ns: u64,
}

/// A short datagram before the payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marker {
    /// All of it.
    pub datagram: &'static [u8],
    /// Pause after it, nanoseconds.
    pub pause_ns: u64,
}

/// A datagram after the payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Closing {
    /// Bytes of the room that it takes.
    pub len: usize,
    /// Pause after it, nanoseconds.
    pub pause_ns: u64,
    /// Whether it counts as one more datagram with payload.
    pub is_payload: bool,
}

/// What a datagram means to its receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Read {
    /// Payload.
    Payload {
        /// Its number, from 0, below [`NUMBER_BOUND`]; `None` if the framing has none.
        number: Option<u64>,
        /// When it was sent, nanoseconds of any clock that runs evenly.
        sent_ns: Option<u64>,
    },
    /// The receiver's clock begins, or begins anew.
    Begin,
    /// The receiver's clock ends; what was sent before may still come.
    Over,
    /// The sender has ended.
    End {
        /// How many datagrams it has sent, if it reports that.
        sent: Option<u64>,
        /// Whether this datagram is the last one and carries payload itself.
        is_payload: bool,
        /// How long ago the receiver's clock ended, unless it ended before, nanoseconds.
        ago_ns: u64,
    },
    /// Not a datagram of this flow.
    Foreign,
}

/// What a receiver reports at the end.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Summary {
    /// Payload bytes that came.
    pub bytes: u64,
    /// Time from the first datagram to the last, nanoseconds.
    pub took_ns: u64,
    /// Datagrams that never came.
    pub lost: u64,
    /// Datagrams that came after a later one.
    pub reordered: u64,
    /// Datagrams that were sent.
    pub datagrams: u64,
    /// Jitter, microseconds.
    pub jitter_us: f64,
}
