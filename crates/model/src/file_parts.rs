//! Which part of a file transfer is slowest: the disks or the network, each measured alone, and all together.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::effect::Effect;
use crate::known::Known;
use crate::units::BitRate;

/// A part of a file transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FilePart {
    /// Reading the source, without the network.
    Source,
    /// The network, from memory to memory.
    Network,
    /// Writing to the sink, without the network.
    Sink,
    /// All of them at once.
    Together,
}

/// Rate of one part alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PartRate {
    /// The part of the transfer.
    pub part: FilePart,
    /// Median rate of the counted runs, bits per second.
    pub rate_bits_per_s: Known<BitRate>,
    /// Effect against the slowest part; absent for the slowest part itself and with fewer than two blocks.
    pub against_slowest: Option<Effect>,
    /// Highest rate of the transfer if this part had no limit, bits per second: the rate of the slowest other part.
    /// Missing for all parts together.
    pub without_it_bits_per_s: Known<BitRate>,
}

/// The parts of a file transfer, and which limits it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileParts {
    /// Each part and all together; the slowest part first.
    pub parts: Vec<PartRate>,
    /// Number of counted blocks; each measured every part once.
    pub n: usize,
    /// The limiting part, if every other part is proven to be faster; otherwise missing.
    pub limit: Known<FilePart>,
}
