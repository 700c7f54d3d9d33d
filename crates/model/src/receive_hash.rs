//! How the card of an end spreads what it receives over its queues.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a card's Toeplitz hash of addresses and ports needs to be computed elsewhere (RSS,
/// Documentation/networking/scaling.rst).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReceiveHash {
    /// Name of the device.
    pub device: String,
    /// The key; the longest input, of IPv6, takes 40 bytes of it.
    pub key: Vec<u8>,
    /// The queue of each remainder of the hash; as many as a power of two.
    pub table: Vec<u16>,
}

impl ReceiveHash {
    /// Bytes of a key that an input of addresses and ports takes, at most: 36 bytes and a word.
    pub const KEY_BYTES: usize = 40;
    /// Longest key and table that any peer may report.
    pub const LONGEST: (usize, usize) = (256, 4096);

    /// Whether it can be computed with.
    pub fn is_sound(&self) -> bool {
        let (key, table) = Self::LONGEST;
        (Self::KEY_BYTES..=key).contains(&self.key.len())
            && self.table.len().is_power_of_two()
            && self.table.len() <= table
    }
}
