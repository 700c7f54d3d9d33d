//! How a host's network card spreads received packets over its queues.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A card's Toeplitz hash of addresses and ports (RSS, Documentation/networking/scaling.rst): all that another host
/// needs to compute it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReceiveHash {
    /// Name of the network device.
    pub device: String,
    /// Key of the hash. The longest input, that of IPv6, needs 40 bytes of it.
    pub key: Vec<u8>,
    /// Queue for each remainder of the hash; its length is a power of two.
    pub table: Vec<u16>,
}

impl ReceiveHash {
    /// Bytes of the key that the longest input of addresses and ports needs: 36 bytes and a word.
    pub const KEY_BYTES: usize = 40;
    /// Longest key and longest table that a peer may report.
    pub const MAX_KEY_AND_TABLE_LENGTHS: (usize, usize) = (256, 4096);

    /// Whether the key and the table are complete enough to compute the hash.
    pub fn is_sound(&self) -> bool {
        let (key, table) = Self::MAX_KEY_AND_TABLE_LENGTHS;
        (Self::KEY_BYTES..=key).contains(&self.key.len())
            && self.table.len().is_power_of_two()
            && self.table.len() <= table
    }
}
