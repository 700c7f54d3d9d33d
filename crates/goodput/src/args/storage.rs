//! Options that say where payload comes from and goes to.

use clap::Args;
use goodput_model::{Bytes, Cache, Sink, Source, Storage};

use super::measure::positive_bytes;

/// Files instead of memory.
#[derive(Debug, Clone, Args)]
pub struct StorageArgs {
    /// Send this file, once unless -t or -n say otherwise; `-` is standard input. With --reverse a
    /// file of the far end, which serves its directory (`serve --files`)
    #[arg(long, help_heading = "Files", value_name = "FILE", conflicts_with_all = ["udp", "both"])]
    pub source: Option<String>,
    /// Send a file in memory of this size, once unless -t or -n say otherwise
    #[arg(long, help_heading = "Files", value_name = "BYTES", value_parser = positive_bytes,
          conflicts_with_all = ["source", "udp", "both"])]
    pub size: Option<Bytes>,
    /// Drop the file from the page cache first; else it is read once first
    #[arg(long, help_heading = "Files", requires = "source")]
    pub cold: bool,
    /// Write what arrives to this file: at the far end, in the directory that it has for that (`serve
    /// --sinks`), with --reverse here; `-` is standard output. Several flows write FILE.0, FILE.1 …
    #[arg(long, help_heading = "Files", value_name = "FILE", conflicts_with_all = ["udp", "both"])]
    pub sink: Option<String>,
    /// Write past the page cache (O_DIRECT)
    #[arg(long, help_heading = "Files", requires = "sink")]
    pub direct: bool,
    /// A flow ends only when all that it wrote is on the disk (fsync)
    #[arg(long, help_heading = "Files", requires = "sink")]
    pub fsync: bool,
    /// Write so many bytes by themselves before each file, as a server does its header
    #[arg(long, help_heading = "Files", value_name = "BYTES")]
    pub header: Option<Bytes>,
    /// Tell the kernel with the header that more follows (MSG_MORE)
    #[arg(long, help_heading = "Files", requires = "header")]
    pub more: bool,
    /// Let no partial segment leave before the end of a file (TCP_CORK)
    #[arg(long, help_heading = "Files", conflicts_with = "udp")]
    pub cork: bool,
}

impl StorageArgs {
    /// What of it a plan has.
    pub fn storage(&self) -> Storage {
        let sink = self.sink.clone();
        Storage {
            source: self.source(),
            sink: sink.map(|name| Sink { name, direct: self.direct, fsync: self.fsync }),
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
}
