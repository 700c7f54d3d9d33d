//! How files of NFS servers are read.

use clap::Args;
use goodput_model::{Bytes, NfsPlan};

use crate::args::values::size;

/// Options for targets that begin with nfs://.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "File servers")]
pub struct NfsArgs {
    /// Size of one NFS READ [default: 1M, or the most that the server allows]
    #[arg(long, value_name = "BYTES", value_parser = size::nfs_read, hide_short_help = true)]
    pub rsize: Option<Bytes>,
    /// NFS READs in flight on each connection [default: 16]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=i64::from(NfsPlan::MOST_SLOTS)), hide_short_help = true)]
    pub slots: Option<u16>,
}

impl NfsArgs {
    pub fn plan(&self) -> NfsPlan {
        NfsPlan { rsize_bytes: self.rsize, slots: self.slots }
    }
}
