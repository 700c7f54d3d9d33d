//! How files of NFS servers, and files on mounts, are read and written.

use clap::Args;
use goodput_model::{Bytes, MountPlan, NfsPlan};

use super::words::Words;
use crate::args::values::number::whole;
use crate::args::values::size;

/// Options for targets that begin with nfs://, or that are paths.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "File servers")]
pub struct NfsArgs {
    /// Size of one NFS READ [default: 1M, or the most that the server allows]
    #[arg(long, value_name = "BYTES", value_parser = size::nfs_read, hide_short_help = true)]
    pub rsize: Option<Bytes>,
    /// NFS READs or WRITEs in flight on each connection [default: 16]
    #[arg(long, value_name = "N", value_parser = whole("a number of requests", 1..=NfsPlan::MOST_SLOTS), hide_short_help = true)]
    pub slots: Option<u16>,
    /// Size of one NFS WRITE [default: 1M, or the most that the server allows; on a mount, that of the mount]
    #[arg(long, value_name = "BYTES", value_parser = size::nfs_read, hide_short_help = true)]
    pub wsize: Option<Bytes>,
    /// Connections of an NFS mount [default: as mounted]
    #[arg(long, value_name = "N", value_parser = whole("a number of connections", 1..=NfsPlan::MOST_CONNECTIONS), hide_short_help = true)]
    pub nconnect: Option<u16>,
    /// Read a file on a mount through the page cache, as most programs do
    ///
    /// goodput drops the file from the page cache before each pass, and the kernel reads ahead. Without this option,
    /// goodput reads the file past the page cache (O_DIRECT), if its file system supports that.
    #[arg(long, hide_short_help = true)]
    pub page_cache: bool,
}

impl NfsArgs {
    pub fn plan(&self) -> NfsPlan {
        NfsPlan {
            rsize_bytes: self.rsize,
            slots: self.slots,
            wsize_bytes: self.wsize,
            nconnect: self.nconnect,
        }
    }

    pub fn mount(&self) -> MountPlan {
        MountPlan { direct: self.page_cache.then_some(false) }
    }

    /// Those of a plan.
    pub fn words(nfs: &NfsPlan, mount: MountPlan) -> Words {
        Words::default()
            .value("rsize", nfs.rsize_bytes.map(|bytes| bytes.0))
            .value("slots", nfs.slots)
            .value("wsize", nfs.wsize_bytes.map(|bytes| bytes.0))
            .value("nconnect", nfs.nconnect)
            .flag("page-cache", mount.direct == Some(false))
    }
}
