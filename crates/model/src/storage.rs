//! Where payload comes from and goes to, where that is not memory, and what is written before it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Bytes;

/// The storage of one measurement. The source is at the end that sends, the sink at the one that
/// receives.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Storage {
    /// What is sent; `None`: random bytes of memory, again and again.
    pub source: Option<Source>,
    /// Where what arrives is written to; `None`: nowhere.
    pub sink: Option<Sink>,
    /// Bytes of an application's header, written by itself before each transfer of the source.
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
