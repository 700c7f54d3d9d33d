//! How files of an NFS server are read and written, and how the server responded.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::known::Known;
use crate::units::Bytes;

/// Why older records lack a number.
const UNKEPT: &str = "the goodput that wrote the record did not keep it";

/// How files of an NFS server are read and written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NfsPlan {
    /// Bytes of one READ, 1 byte to 64 MiB; absent: 1 MiB, or the server's maximum if that is smaller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rsize_bytes: Option<Bytes>,
    /// READs or WRITEs in flight on each connection, 1 to [`Self::MOST_SLOTS`]; absent: 16. Only goodput's own
    /// client uses it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slots: Option<u16>,
    /// Bytes of one WRITE; absent: 1 MiB, or the server's maximum if that is smaller. On a mount, absent means the
    /// size that the kernel agreed on with the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wsize_bytes: Option<Bytes>,
    /// Connections of a mount, 1 to [`Self::MOST_CONNECTIONS`]; absent: as mounted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nconnect: Option<u16>,
}

impl NfsPlan {
    /// Largest READ, bytes.
    pub const MOST_RSIZE_BYTES: u64 = 64 << 20;
    /// Most calls in flight on one connection.
    pub const MOST_SLOTS: u16 = 1024;
    /// Most connections of a mount (nfs(5); `NFS_MAX_CONNECTIONS`, fs/nfs/internal.h).
    pub const MOST_CONNECTIONS: u16 = 16;

    /// Whether the user chose nothing.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The calls of one measurement that read or wrote payload, all flows together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rpcs {
    /// Bytes that one call reads or writes.
    pub call_bytes: Bytes,
    /// Most calls in flight on each connection.
    pub slots: u16,
    /// Calls that got a response.
    pub answered: u64,
    /// Calls that read or wrote less than requested. goodput reads the rest with another call; it does not count
    /// the rest of a WRITE.
    pub short: u64,
    /// Calls that were repeated because their connection broke or no response arrived.
    #[serde(default = "unkept_count")]
    pub retransmitted: Known<u64>,
    /// Calls that the server asked to repeat later (`NFS3ERR_JUKEBOX`).
    #[serde(default = "unkept_count")]
    pub put_off: Known<u64>,
    /// Connections that replaced one that broke or was given up.
    #[serde(default = "unkept_count")]
    pub reconnects: Known<u64>,
    /// Median time from a call to the end of its response, microseconds.
    pub round_trip_us: Known<f64>,
    /// Mean time from a call to the end of its response, microseconds.
    #[serde(default = "unkept_time")]
    pub mean_round_trip_us: Known<f64>,
    /// 99th percentile of the times from a call to the end of its response, microseconds.
    #[serde(default = "unkept_time")]
    pub p99_round_trip_us: Known<f64>,
    /// Longest time from a call to the end of its response, microseconds.
    pub longest_round_trip_us: Known<f64>,
    /// Shortest time from a call to the end of its response, microseconds: the time of a call that waited for no
    /// other.
    #[serde(default = "unkept_time")]
    pub shortest_round_trip_us: Known<f64>,
    /// Share of the flows' time between the end of one response with payload and the beginning of the next, 0 to 1.
    #[serde(default = "unkept_time")]
    pub idle_share: Known<f64>,
    /// Share of the flows' time between the break of a connection and the first payload on the next one, 0 to 1.
    #[serde(default = "unkept_time")]
    pub reconnecting_share: Known<f64>,
}

/// The READs of a comparison whose arms read from an NFS server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReadTable {
    /// Payload of a segment that arrives at this end in the first arm's runs, bytes (`tcpi_rcv_mss`).
    pub segment_bytes: Known<u64>,
    /// Number of frames that the receive ring of this host's device holds.
    pub ring_frames: Known<u64>,
    /// The arms, in the order of the comparison.
    pub arms: Vec<ReadArm>,
}

/// The READs of one arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReadArm {
    /// Values of the compared settings.
    pub values: Vec<String>,
    /// Bytes that one READ requests.
    pub call_bytes: Known<u64>,
    /// Most READs in flight on each connection.
    pub slots: Known<u64>,
    /// Segments of one whole response, which arrive back to back.
    pub answer_segments: Known<u64>,
    /// Median of the runs' median round-trip times, microseconds.
    pub round_trip_us: Known<f64>,
    /// Packets that this host dropped between its card and its sockets, all runs together.
    pub dropped: Known<u64>,
    /// READs that were repeated, all runs together.
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
