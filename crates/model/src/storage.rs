//! Where payload comes from and goes to if it is not memory.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::known::Known;
use crate::units::{BitRate, Bytes};

/// Where payload comes from and goes to. The source is at the sending end, the sink at the receiving end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Storage {
    /// What the sender sends; absent: random bytes of memory, repeatedly.
    pub source: Option<Source>,
    /// Where the receiver writes what arrives; absent: nowhere.
    pub sink: Option<Sink>,
    /// Whether to write to the sink alone before the flows begin, to learn its own rate. A source is always read
    /// alone first.
    pub sink_alone: bool,
    /// Length of an application's header, bytes. The sender writes it in one call before each transfer of the
    /// source.
    pub header_bytes: u32,
    /// Whether the header is written with `MSG_MORE` (send(2)), which says that more data follows.
    pub header_more: bool,
}

/// What the sender sends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// A file of the sending end.
    File {
        /// Path of the file at the near end; at the far end, its path within the served directory.
        name: String,
        /// State of the page cache before the file is sent.
        cache: Cache,
    },
    /// A file in memory that consists of this number of random bytes.
    Memory(Bytes),
    /// The near end's standard input.
    Input,
}

/// State of the page cache before a file is sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cache {
    /// The file was read once before it is sent.
    #[default]
    Warm,
    /// The file was dropped from the page cache before it is sent, as far as the kernel does this.
    Cold,
}

/// Where the receiver writes what arrives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sink {
    /// At the near end the file's path, or `-` for standard output; at the far end the file's name in the directory
    /// for received files. Each of several flows writes its own file, with its number as a suffix.
    pub name: String,
    /// Whether writes bypass the page cache (`O_DIRECT`, open(2)).
    #[serde(default)]
    pub direct: bool,
    /// Whether the flow ends only when all data is on the disk (fsync(2)).
    #[serde(default)]
    pub fsync: bool,
}

impl Storage {
    /// Whether payload is memory at both ends.
    pub fn is_memory(&self) -> bool {
        *self == Self::default()
    }
}

impl Source {
    /// Name of the source, for a person.
    pub fn name(&self) -> &str {
        match self {
            Self::File { name, .. } => name,
            Self::Memory(_) => "memory",
            Self::Input => "standard input",
        }
    }
}

/// How fast one direction's files are, compared with the network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StorageResult {
    /// Name of the source; absent if payload is endless memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Length of the source, bytes.
    pub source_bytes: Known<u64>,
    /// State of the page cache that goodput prepared for the source: `warm`, `cold`, `memory`, `input`.
    pub cache: Known<String>,
    /// Share of the source that was in the page cache before the flows began, percent.
    pub resident_percent: Known<f64>,
    /// Rate at which the source was read alone before the flows began, bits per second.
    pub alone_bits_per_s: Known<BitRate>,
    /// Share of the run in which the sender's threads slept in calls that read the source, percent.
    pub source_wait_percent: Known<f64>,
    /// Name of the sink; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sink: Option<String>,
    /// Rate at which the sink was written alone before the flows began, bits per second.
    #[serde(default = "not_written_alone")]
    pub sink_alone_bits_per_s: Known<BitRate>,
    /// Share of the run in which the receiver's threads slept in calls that write to the sink, percent.
    pub sink_wait_percent: Known<f64>,
    /// Share of the run in which the sender's threads waited for space in their send buffers, percent.
    pub network_wait_percent: Known<f64>,
    /// The part of the transfer that took most of the time.
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
