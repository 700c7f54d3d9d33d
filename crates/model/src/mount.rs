//! How a file on a mount is read or written, and which calls the mount made to its server meanwhile.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::known::Known;
use crate::units::Bytes;

/// How a file on a mount is read or written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MountPlan {
    /// Whether to bypass the page cache (`O_DIRECT`); absent: if the file system can. Without `O_DIRECT`, goodput
    /// drops the file from the page cache before each pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direct: Option<bool>,
}

impl MountPlan {
    /// Bytes of one read or write if the user gives none: enough for several calls of 1 MiB in flight, and little
    /// enough to show how even the rate is.
    pub const STANDARD_CHUNK: Bytes = Bytes(4 << 20);

    /// Whether the user chose nothing.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The mount of a measured file, and its calls while payload moved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MountUse {
    /// Directory where the file system is mounted.
    pub point: String,
    /// Type of the file system: "nfs4", "cifs", "ext4", …
    #[serde(rename = "type")]
    pub kind: String,
    /// What is mounted: `SERVER:/EXPORT`, or a device.
    pub source: String,
    /// Mount options, as the kernel reports them.
    pub options: String,
    /// Whether a network is between this host and the files, judging by the file system's type.
    pub reach: MountReach,
    /// Whether goodput mounted the file system once more for this measurement, in a mount namespace of its own.
    pub private: bool,
    /// Whether the reads or writes bypassed this host's page cache (`O_DIRECT`).
    pub direct: bool,
    /// Share of the file that stayed in the page cache after goodput dropped it, percent; missing with `O_DIRECT`.
    pub resident_percent: Known<f64>,
    /// How far the kernel reads ahead of a program, bytes; has no effect with `O_DIRECT`.
    pub read_ahead_bytes: Known<Bytes>,
    /// Connections of an NFS mount to its server.
    pub connections: Known<u64>,
    /// READ, WRITE and COMMIT calls of an NFS mount; kinds without calls are left out.
    pub calls: Known<Vec<MountCalls>>,
    /// Number of all other calls of an NFS mount.
    pub other_calls: Known<u64>,
}

/// Whether a network is between this host and the files of a mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MountReach {
    /// The file system's server is, or could be, reached over a network.
    Network,
    /// The files are on this host.
    Local,
    /// The file system's type does not show it; FUSE is an example.
    Unknown,
}

impl MountReach {
    /// Types of file systems whose server is elsewhere (Documentation/filesystems, and the names of `fstype` in
    /// nfs(5), mount.cifs(8), ceph(8)).
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

    /// Whether a file system of this type has a network behind it.
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
    /// Kind of call: "READ", "WRITE" or "COMMIT".
    pub name: String,
    /// Number of calls that ended.
    pub calls: u64,
    /// Number of transmissions of these calls; larger than `calls` if some were retransmitted.
    pub transmissions: u64,
    /// How often a call timed out and was tried again.
    pub timeouts: u64,
    /// Number of calls that ended with an error; missing on old kernels, which do not count them.
    pub errors: Known<u64>,
    /// Mean size of a call and its response together, bytes, headers included.
    pub mean_bytes: f64,
    /// Mean time from the beginning of a call until its first byte was sent, microseconds. The call waited for a
    /// slot, or for earlier calls.
    pub queue_us: f64,
    /// Mean time from sending a call's first byte to its response, microseconds: network and server.
    pub round_trip_us: f64,
    /// Mean time from the beginning of a call to its end, microseconds.
    pub execute_us: f64,
    /// Mean number of calls in flight at the same time.
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
