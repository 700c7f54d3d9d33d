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

/// What one part alone moved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PartRate {
    /// Which part.
    pub part: FilePart,
    /// Median rate of the counted runs.
    pub rate_bits_per_s: Known<BitRate>,
    /// Against the slowest part; `None` for the slowest part itself and for fewer than two blocks.
    pub against_slowest: Option<Effect>,
    /// What the transfer could reach at most if this part were as fast as one likes: the slowest of the other parts.
    /// Missing for all together.
    pub without_it_bits_per_s: Known<BitRate>,
}

/// The parts of a file transfer, and which limits it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileParts {
    /// Each part and all together; the slowest part first.
    pub parts: Vec<PartRate>,
    /// Blocks that count: each measured every part once.
    pub n: usize,
    /// The part that limits: every other is shown to be faster. Missing if the runs have not shown it.
    pub limit: Known<FilePart>,
}
