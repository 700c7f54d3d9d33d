//! How a file on a mount is read or written, and what the mount asked of its server meanwhile.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::known::Known;
use crate::units::Bytes;

/// How a file on a mount is read or written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MountPlan {
    /// Whether past the page cache (`O_DIRECT`); `None`: if the file system can. Otherwise the file is dropped from the
    /// page cache before each pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direct: Option<bool>,
}

impl MountPlan {
    /// Bytes that are read or written at once if the user names none: enough for several calls of 1 MiB in flight, and
    /// little enough to see how even the rate is.
    pub const STANDARD_CHUNK: Bytes = Bytes(4 << 20);

    /// Whether nothing is chosen.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The mount of a measured file, and what it did while payload moved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MountUse {
    /// Where it is mounted.
    pub point: String,
    /// Type of the file system: "nfs4", "cifs", "ext4", …
    #[serde(rename = "type")]
    pub kind: String,
    /// What is mounted: `SERVER:/EXPORT`, or a device.
    pub source: String,
    /// Its options, as the kernel reports them.
    pub options: String,
    /// Whether a network is in between, as far as the type shows: "network", "local" or "unknown".
    pub reach: MountReach,
    /// Whether goodput mounted it once more for this measurement, in a mount namespace of its own.
    pub private: bool,
    /// Whether the file was read or written past this host's page cache (`O_DIRECT`).
    pub direct: bool,
    /// Share of the file that stayed in the page cache after it was dropped, percent; missing with `O_DIRECT`.
    pub resident_percent: Known<f64>,
    /// How far the kernel reads ahead of a program; without effect on `O_DIRECT`.
    pub read_ahead_bytes: Known<Bytes>,
    /// Connections of an NFS mount.
    pub connections: Known<u64>,
    /// READ, WRITE and COMMIT of an NFS mount, as far as there were any.
    pub calls: Known<Vec<MountCalls>>,
    /// All other calls together.
    pub other_calls: Known<u64>,
}

/// Whether a network is between this host and the files of a mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MountReach {
    /// The file system's server is reached over a network, or could be.
    Network,
    /// The files are on this host.
    Local,
    /// The type does not show it, as with FUSE.
    Unknown,
}

impl MountReach {
    /// Types of file systems whose server is elsewhere (Documentation/filesystems, and the names of `fstype` in nfs(5),
    /// mount.cifs(8), ceph(8)).
    const NETWORK: &[&str] = &[
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "ceph",
        "9p",
        "afs",
        "coda",
        "ncpfs",
        "orangefs",
        "lustre",
        "gfs2",
        "ocfs2",
        "beegfs",
        "gpfs",
        "fuse.sshfs",
        "fuse.glusterfs",
        "fuse.rclone",
        "fuse.s3fs",
        "fuse.cephfs",
        "fuse.juicefs",
        "davfs",
    ];

    /// Whether a network is behind a type of file system.
    pub fn of(kind: &str) -> Self {
        match kind {
            kind if Self::NETWORK.contains(&kind) => Self::Network,
            // A program's own, wherever it has the files from.
            kind if kind == "fuse" || kind.starts_with("fuse.") || kind == "virtiofs" => {
                Self::Unknown
            }
            _ => Self::Local,
        }
    }
}

/// The calls of one kind while payload moved (net/sunrpc/stats.c).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MountCalls {
    /// "READ", "WRITE" or "COMMIT".
    pub name: String,
    /// How many ended.
    pub calls: u64,
    /// How often they were sent: more often than there are calls, if some had to be sent again.
    pub transmissions: u64,
    /// How often one was given up for a time and tried again.
    pub timeouts: u64,
    /// How many ended with an error; old kernels do not count them.
    pub errors: Known<u64>,
    /// Mean bytes of a call and its answer, headers included.
    pub mean_bytes: f64,
    /// Mean time from the beginning of a call until its first byte was sent, microseconds: it waited for a slot, or for
    /// the calls before it.
    pub queue_us: f64,
    /// Mean time from there to the answer, microseconds: network and server.
    pub round_trip_us: f64,
    /// Mean time from the beginning of a call to its end, microseconds.
    pub execute_us: f64,
    /// How many were on their way to the server or back, on the average.
    pub in_flight: Known<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_says_where_the_files_are() {
        assert_eq!(MountReach::of("nfs4"), MountReach::Network);
        assert_eq!(MountReach::of("fuse.sshfs"), MountReach::Network);
        assert_eq!(MountReach::of("fuse.unheard"), MountReach::Unknown);
        assert_eq!(MountReach::of("ext4"), MountReach::Local);
    }
}
