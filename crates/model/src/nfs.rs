//! How files of an NFS server are read, and how its answers were.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::known::Known;
use crate::units::Bytes;

/// How files of an NFS server are read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NfsPlan {
    /// Bytes of one READ, 1 byte to 64 MiB; `None`: 1 MiB, or the most that the server allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rsize_bytes: Option<Bytes>,
    /// READs in flight on each connection, 1 to [`Self::MOST_SLOTS`]; `None`: 16.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slots: Option<u16>,
}

impl NfsPlan {
    /// Bytes of one READ at most.
    pub const MOST_RSIZE_BYTES: u64 = 64 << 20;
    /// READs in flight at most.
    pub const MOST_SLOTS: u16 = 1024;

    /// Whether nothing is chosen.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The calls of one measurement that asked for payload, all flows together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rpcs {
    /// Bytes that one call asks for.
    pub call_bytes: Bytes,
    /// Calls in flight on each connection at most.
    pub slots: u16,
    /// Calls that were answered.
    pub answered: u64,
    /// Answers that brought less than was asked for; the rest was asked for again.
    pub short: u64,
    /// Median time from a call to the end of its answer, microseconds.
    pub round_trip_us: Known<f64>,
    /// The longest of them.
    pub longest_round_trip_us: Known<f64>,
}
