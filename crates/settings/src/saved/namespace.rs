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

/// More processes never lead to one.
const MAX_PARENTS: usize = 64;

/// Whether the thread that asks is in another network namespace than the host's first process, and sees the same /etc.
/// A sandbox may hide the first process. Then the processes that led to this one stand for it: one of them that sees the
/// same /etc was in the namespace that /etc is about. What can't be seen does not say so.
pub fn is_foreign(host: &mut dyn SavingHost) -> bool {
    let Some(own) = seen(host, "/proc/thread-self") else { return false };
    match seen(host, "/proc/1") {
        Some(first) => is_apart(&own, &first),
        None => {
            let parents = parents(|process| host.read(&format!("/proc/{process}/status")));
            let seen = parents.iter().filter_map(|parent| seen(host, &format!("/proc/{parent}")));
            seen.collect::<Vec<_>>().iter().any(|parent| is_apart(&own, parent))
        }
    }
}

/// The parent of this process, its parent, and so on, from what `status` has of a process (proc_pid_status(5)).
fn parents(mut status: impl FnMut(&str) -> Option<String>) -> Vec<String> {
    let mut parents: Vec<String> = Vec::new();
    while parents.len() < MAX_PARENTS {
        let text = status(parents.last().map_or("self", String::as_str)).unwrap_or_default();
        let parent = text.lines().find_map(|line| line.strip_prefix("PPid:"));
        match parent.map(str::trim).filter(|parent| *parent != "0") {
            Some(parent) => parents.push(parent.into()),
            None => break,
        }
    }
    parents
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

    /// A host that hides its first process from those that see these: the shell that entered the namespace, and itself.
    struct Sandbox {
        shell_files: &'static str,
    }

    impl SavingHost for Sandbox {
        fn read(&mut self, path: &str) -> Option<String> {
            let parent = match path {
                "/proc/self/status" => 20,
                "/proc/20/status" => 1,
                _ => return None,
            };
            Some(format!("Name:\tsh\nPid:\t7\nPPid:\t{parent}\nUid:\t0\n"))
        }

        fn list(&mut self, _: &str) -> Vec<String> {
            Vec::new()
        }

        fn device(&mut self, _: &str) -> Option<super::super::host::Device> {
            None
        }

        fn identity(&mut self, path: &str) -> Option<String> {
            let said = match path {
                "/proc/thread-self/ns/net" => "4:2",
                "/proc/20/ns/net" => "4:1",
                "/proc/thread-self/root/etc" => "65024:19",
                "/proc/20/root/etc" => self.shell_files,
                _ => return None,
            };
            Some(said.into())
        }

        fn udev_version(&mut self) -> Option<String> {
            None
        }
    }

    #[test]
    fn where_the_first_process_is_hidden_the_parents_stand_for_it() {
        assert!(is_foreign(&mut Sandbox { shell_files: "65024:19" }));
        assert!(!is_foreign(&mut Sandbox { shell_files: "65024:20" }), "/etc is the sandbox's own");
        let line = |process: &str| Some(format!("PPid:\t{process}0\n"));
        assert_eq!(parents(line).len(), MAX_PARENTS, "no chain without end");
    }

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
