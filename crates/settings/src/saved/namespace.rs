//! Whether /etc of a host is about another network than that of the thread, or the login, that asks.
//!
//! The host's files describe the devices and parameters of the host's own network namespace, and are read when the host
//! starts. Another namespace may see the same files, as one does that `ip netns exec` enters. A container has files of
//! its own, and its first process is in its own namespace.

use super::host::SavingHost;

/// What a process sees.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    network: String,
    files: String,
}

/// Whether the thread that asks is in another network namespace than the host's first process, and sees the same /etc.
/// What can't be seen does not say so.
pub fn is_foreign(host: &mut dyn SavingHost) -> bool {
    let (own, first) = (seen(host, "/proc/thread-self"), seen(host, "/proc/1"));
    own.zip(first).is_some_and(|(own, first)| is_apart(&own, &first))
}

fn is_apart(own: &Seen, first: &Seen) -> bool {
    own.network != first.network && own.files == first.files
}

/// What the process with this directory sees (proc_pid_ns(5), proc_pid_root(5)).
fn seen(host: &mut dyn SavingHost, process: &str) -> Option<Seen> {
    let network = host.identity(&format!("{process}/ns/net"))?;
    Some(Seen { network, files: host.identity(&format!("{process}/root/etc"))? })
}

#[cfg(test)]
mod tests {
    use super::super::host::Here;
    use super::*;
    use std::path::Path;

    #[test]
    fn a_namespace_that_shares_the_files_of_the_host_is_foreign() {
        let seen_here = || seen(&mut Here(Path::new("/")), "/proc/thread-self").unwrap();
        let own = seen_here();
        goodput_testing::in_namespace(|| {
            let there = seen_here();
            assert!(is_apart(&there, &own) && !is_apart(&own, &own));
            let container = Seen { files: "another".into(), ..there };
            assert!(!is_apart(&container, &own), "it has files of its own");
        });
    }
}
