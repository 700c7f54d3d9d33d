//! Whether /etc is about another network than that of the calling thread.
//!
//! The host's files describe the devices and parameters of the host's own network namespace, and are read when the host
//! starts. Another namespace may see the same files, as one does that `ip netns exec` enters. A container has files of
//! its own, and its first process is in its own namespace.

use std::fs;
use std::os::unix::fs::MetadataExt;

/// Device and inode of a file.
type Identity = (u64, u64);

/// What a process sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    network: Identity,
    files: Identity,
}

/// Whether the calling thread is in another network namespace than the first process, and sees the same /etc. What can't
/// be read does not say so.
pub fn is_foreign() -> bool {
    let (own, first) = (seen("/proc/thread-self"), seen("/proc/1"));
    own.zip(first).is_some_and(|(own, first)| is_apart(own, first))
}

fn is_apart(own: Seen, first: Seen) -> bool {
    own.network != first.network && own.files == first.files
}

/// What the process with this directory sees (proc_pid_ns(5), proc_pid_root(5)).
fn seen(process: &str) -> Option<Seen> {
    let identity = |name: &str| -> Option<Identity> {
        let status = fs::metadata(format!("{process}/{name}")).ok()?;
        Some((status.dev(), status.ino()))
    };
    Some(Seen { network: identity("ns/net")?, files: identity("root/etc")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_that_shares_the_files_of_the_host_is_foreign() {
        let own = seen("/proc/thread-self").unwrap();
        goodput_testing::in_namespace(|| {
            let there = seen("/proc/thread-self").unwrap();
            assert!(is_apart(there, own) && !is_apart(own, own));
            let container = Seen { files: (0, 0), ..there };
            assert!(!is_apart(container, own), "it has files of its own");
        });
    }
}
