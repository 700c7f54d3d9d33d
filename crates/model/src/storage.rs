//! Where payload comes from and goes to, if that is not memory, and what is written before it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::known::Known;
use crate::units::{BitRate, Bytes};

/// The storage of one measurement. The source is at the end that sends, the sink at the one that
/// receives.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Storage {
    /// What is sent; `None`: random bytes of memory, again and again.
    pub source: Option<Source>,
    /// Where what arrives is written to; `None`: nowhere.
    pub sink: Option<Sink>,
    /// Whether the sink is written alone before the flows begin, so that its own rate is known as a source's always is.
    pub sink_alone: bool,
    /// Bytes of an application's header, written in one call before each transfer of the source.
    pub header_bytes: u32,
    /// Whether the header is written with `MSG_MORE` (send(2)): more will follow.
    pub header_more: bool,
}

/// What is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// A file of the sending end.
    File {
        /// Its path at the near end; at the far end its path within the directory that is served.
        name: String,
        /// Whether it is read from the disk.
        cache: Cache,
    },
    /// A file in memory of this many random bytes.
    Memory(Bytes),
    /// The near end's standard input.
    Input,
}

/// State of the page cache before a file is sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cache {
    /// Read once before it is sent.
    #[default]
    Warm,
    /// Dropped before it is sent, as far as the kernel does so.
    Cold,
}

/// Where what arrives is written to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sink {
    /// Its path at the near end, `-` for standard output; at the far end its name in the directory
    /// that takes files. Of several flows, each writes a file of its own, with its number as suffix.
    pub name: String,
    /// Whether it is written past the page cache (`O_DIRECT`, open(2)).
    #[serde(default)]
    pub direct: bool,
    /// Whether the flow ends only when all is on the disk (fsync(2)).
    #[serde(default)]
    pub fsync: bool,
}

impl Storage {
    /// Whether payload is memory at both ends, and nothing else.
    pub fn is_memory(&self) -> bool {
        *self == Self::default()
    }
}

impl Source {
    /// Its name, for a person.
    pub fn name(&self) -> &str {
        match self {
            Self::File { name, .. } => name,
            Self::Memory(_) => "memory",
            Self::Input => "standard input",
        }
    }
}

/// What the storage of one direction was found to be beside the network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StorageResult {
    /// Name of the source; none if it is memory without an end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Bytes of the source.
    pub source_bytes: Known<u64>,
    /// State of the page cache that the source was brought into: `warm`, `cold`, `memory`, `input`.
    pub cache: Known<String>,
    /// Share of the source that was in the page cache before, percent.
    pub resident_percent: Known<f64>,
    /// Rate of the source when it was read alone before.
    pub alone_bits_per_s: Known<BitRate>,
    /// Share of the run that the sender's threads slept in the calls that read the source, percent.
    pub source_wait_percent: Known<f64>,
    /// Name of the sink.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sink: Option<String>,
    /// Rate of the sink when it was written alone before.
    #[serde(default = "not_written_alone")]
    pub sink_alone_bits_per_s: Known<BitRate>,
    /// Share of the run that the receiver's threads slept in the calls that write to the sink,
    /// percent.
    pub sink_wait_percent: Known<f64>,
    /// Share of the run that the sender's threads waited for space in their send buffers, percent.
    pub network_wait_percent: Known<f64>,
    /// What took most of the time.
    pub slowest: Known<Slowest>,
}

fn not_written_alone() -> Known<BitRate> {
    Known::missing("the sink was not written alone")
}

/// The slowest part of a file transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Slowest {
    /// Reading the source.
    Source,
    /// The sender's CPU.
    SenderCpu,
    /// The network.
    Network,
    /// The receiver's CPU.
    ReceiverCpu,
    /// Writing to the sink.
    Sink,
}
