//! How files of an NFS server are read and written, and how its answers were.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::known::Known;
use crate::units::Bytes;

/// Why a number of an older record is missing.
const UNKEPT: &str = "the goodput that wrote the record did not keep it";

/// How files of an NFS server are read and written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NfsPlan {
    /// Bytes of one READ, 1 byte to 64 MiB; `None`: 1 MiB, or the most that the server allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rsize_bytes: Option<Bytes>,
    /// READs or WRITEs in flight on each connection, 1 to [`Self::MOST_SLOTS`]; `None`: 16. Only of goodput's own client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slots: Option<u16>,
    /// Bytes of one WRITE; `None`: 1 MiB, or the most that the server allows; on a mount, as the kernel agreed with the
    /// server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wsize_bytes: Option<Bytes>,
    /// Connections of a mount, 1 to [`Self::MOST_CONNECTIONS`]; `None`: as it is mounted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nconnect: Option<u16>,
}

impl NfsPlan {
    /// Bytes of one READ at most.
    pub const MOST_RSIZE_BYTES: u64 = 64 << 20;
    /// Calls in flight at most.
    pub const MOST_SLOTS: u16 = 1024;
    /// Connections of a mount at most (nfs(5); `NFS_MAX_CONNECTIONS`, fs/nfs/internal.h).
    pub const MOST_CONNECTIONS: u16 = 16;

    /// Whether nothing is chosen.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The calls of one measurement that asked for payload or carried it, all flows together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rpcs {
    /// Bytes that one call asks for or carries.
    pub call_bytes: Bytes,
    /// Calls in flight on each connection at most.
    pub slots: u16,
    /// Calls that were answered.
    pub answered: u64,
    /// Answers that brought less than was asked for, and the rest was asked for again; or that took less, and the rest is
    /// not counted.
    pub short: u64,
    /// Calls that were made again, as their connection broke or no answer came.
    #[serde(default = "unkept_count")]
    pub retransmitted: Known<u64>,
    /// Calls that the server asked to make again later (`NFS3ERR_JUKEBOX`).
    #[serde(default = "unkept_count")]
    pub put_off: Known<u64>,
    /// Connections that took the place of one that broke, or that was given up.
    #[serde(default = "unkept_count")]
    pub reconnects: Known<u64>,
    /// Median time from a call to the end of its answer, microseconds.
    pub round_trip_us: Known<f64>,
    /// Their mean.
    #[serde(default = "unkept_time")]
    pub mean_round_trip_us: Known<f64>,
    /// The time that 99 % of them took at most.
    #[serde(default = "unkept_time")]
    pub p99_round_trip_us: Known<f64>,
    /// The longest of them.
    pub longest_round_trip_us: Known<f64>,
    /// The shortest of them: of a call that waited for no other.
    #[serde(default = "unkept_time")]
    pub shortest_round_trip_us: Known<f64>,
    /// Share of the flows' time between the end of one answer with payload and the beginning of the next: 0 to 1.
    #[serde(default = "unkept_time")]
    pub idle_share: Known<f64>,
    /// Share of the flows' time between the break of a connection and the first payload on the one after it: 0 to 1.
    #[serde(default = "unkept_time")]
    pub reconnecting_share: Known<f64>,
}

/// What the READs of a comparison were like, if its arms read from an NFS server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReadTable {
    /// Payload of a segment that arrives at this end in the first arm's runs, bytes (`tcpi_rcv_mss`).
    pub segment_bytes: Known<u64>,
    /// Frames that the receive ring of this host's device holds.
    pub ring_frames: Known<u64>,
    /// The arms of the comparison, in its order.
    pub arms: Vec<ReadArm>,
}

/// The READs of one arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReadArm {
    /// The values of the settings.
    pub values: Vec<String>,
    /// Bytes that one READ asks for.
    pub call_bytes: Known<u64>,
    /// READs in flight on each connection at most.
    pub slots: Known<u64>,
    /// Segments of one whole answer, which come back to back.
    pub answer_segments: Known<u64>,
    /// Median of the runs' median round trips, microseconds.
    pub round_trip_us: Known<f64>,
    /// Packets that this host dropped between its card and its sockets, all runs together.
    pub dropped: Known<u64>,
    /// READs that were sent again, all runs together.
    pub retransmitted: Known<u64>,
}

/// A count that older records lack.
fn unkept_count() -> Known<u64> {
    Known::missing(UNKEPT)
}

/// A time that older records lack.
fn unkept_time() -> Known<f64> {
    Known::missing(UNKEPT)
}
