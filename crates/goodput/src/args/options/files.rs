//! Options that say where payload comes from and goes to.

use clap::Args;
use goodput_model::{Bytes, Cache, Sink, Source, Storage};

use super::words::Words;
use crate::args::values::size;

/// Files instead of memory.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Files")]
pub struct StorageArgs {
    /// Send this file, once unless -t or -n is given; - is standard input
    ///
    /// With --reverse the file is at the far end, in the directory given by `serve --files`.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["udp", "both"], hide_short_help = true)]
    pub source: Option<String>,
    /// Send a file of this size from memory, once unless -t or -n is given
    #[arg(long, value_name = "BYTES", value_parser = size::positive,
          conflicts_with_all = ["source", "udp", "both"], hide_short_help = true)]
    pub size: Option<Bytes>,
    /// Drop the file from the page cache first
    ///
    /// Otherwise goodput reads the file once before it measures.
    #[arg(long, requires = "source", hide_short_help = true)]
    pub cold: bool,
    /// Write the payload to this file; - is standard output
    ///
    /// The file is at the far end, in the directory given by `serve --sinks`; with --reverse it is here. Several flows
    /// write FILE.0, FILE.1 and so on.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["udp", "both"], hide_short_help = true)]
    pub sink: Option<String>,
    /// Bypass the page cache when writing (O_DIRECT)
    #[arg(long, requires = "sink", hide_short_help = true)]
    pub direct: bool,
    /// End a flow only when everything it wrote is on the disk (fsync)
    #[arg(long, requires = "sink", hide_short_help = true)]
    pub fsync: bool,
    /// Write a header of this many bytes before each file
    ///
    /// The header is a write of its own, as in a web server.
    #[arg(long, value_name = "BYTES", hide_short_help = true)]
    pub header: Option<Bytes>,
    /// Tell the kernel that data follows the header (MSG_MORE)
    #[arg(long, requires = "header", hide_short_help = true)]
    pub more: bool,
}

impl StorageArgs {
    /// What of it a plan has.
    pub fn storage(&self) -> Storage {
        let sink = self.sink.clone();
        Storage {
            source: self.source(),
            sink: sink.map(|name| Sink { name, direct: self.direct, fsync: self.fsync }),
            sink_alone: false,
            header_bytes: self.header.map_or(0, |size| u32::try_from(size.0).unwrap_or(u32::MAX)),
            header_more: self.more,
        }
    }

    fn source(&self) -> Option<Source> {
        let cache = if self.cold { Cache::Cold } else { Cache::Warm };
        match self.source.as_deref() {
            Some("-") => Some(Source::Input),
            Some(name) => Some(Source::File { name: name.into(), cache }),
            None => self.size.map(Source::Memory),
        }
    }

    /// Those of a plan. Standard input can be read only once.
    pub fn words(storage: &Storage) -> Words {
        let (file, cold, size) = match &storage.source {
            Some(Source::File { name, cache }) => (Some(name), *cache == Cache::Cold, None),
            Some(Source::Memory(size)) => (None, false, Some(size.0)),
            Some(Source::Input) | None => (None, false, None),
        };
        let sink = storage.sink.as_ref();
        let header = storage.header_bytes;
        Words::default()
            .value("source", file)
            .value("size", size)
            .flag("cold", cold)
            .value("sink", sink.map(|sink| &sink.name))
            .flag("direct", sink.is_some_and(|sink| sink.direct))
            .flag("fsync", sink.is_some_and(|sink| sink.fsync))
            .value("header", (header > 0).then_some(header))
            .flag("more", storage.header_more)
    }
}
