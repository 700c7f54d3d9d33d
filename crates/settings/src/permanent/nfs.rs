//! Options that make a kernel mount read as a measurement did.

use goodput_model::Permanent;

use super::{entry, in_bytes, module_option};
use crate::value;

/// A mount option with a size (nfs(5)); by default the server and the kernel agree on one.
pub(crate) fn mount_option(name: &str, size: &str) -> Vec<Permanent> {
    match size {
        value::DEFAULT => Vec::new(),
        size => vec![entry("/etc/fstab", format!("{name}={}", in_bytes(size)))],
    }
}

/// Calls in flight on one connection of NFS version 3 (net/sunrpc/xprtsock.c).
pub(crate) fn sunrpc_slots(count: &str) -> Vec<Permanent> {
    match count {
        value::DEFAULT => Vec::new(),
        count => module_option("sunrpc.tcp_max_slot_table_entries", count).into_iter().collect(),
    }
}
