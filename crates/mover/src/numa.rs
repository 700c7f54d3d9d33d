//! The memory node of the CPU that a thread runs on.
//!
//! The kernel takes a page from the node of the CPU that touches it first, unless the process has another policy
//! (Documentation/admin-guide/mm/numa_memory_policy.rst). So memory is local if its flow's thread touches it first, and if
//! flows on different nodes don't share it.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use rustix::thread::sched_getcpu;

/// The node of each CPU; empty if there is only one node.
#[derive(Debug, Default, PartialEq, Eq)]
struct Nodes(Vec<u16>);

/// The memory node of the calling thread's CPU, or 0 if the host has only one or does not report any.
pub(crate) fn own_node() -> u16 {
    static NODES: OnceLock<Nodes> = OnceLock::new();
    let nodes = NODES.get_or_init(|| Nodes::read(Path::new("/sys/devices/system/node")));
    nodes.own(sched_getcpu)
}

impl Nodes {
    /// From `node*/cpulist` in `folder` (Documentation/ABI/stable/sysfs-devices-node).
    fn read(folder: &Path) -> Self {
        let Ok(entries) = fs::read_dir(folder) else { return Self::default() };
        let mut of_cpu = Vec::new();
        for entry in entries.flatten() {
            let name = entry.file_name();
            let node = name.to_str().and_then(|name| name.strip_prefix("node")?.parse().ok());
            let (Some(node), Ok(list)) = (node, fs::read_to_string(entry.path().join("cpulist")))
            else {
                continue;
            };
            for cpu in cpus(&list) {
                let room = of_cpu.len().max(usize::from(cpu) + 1);
                of_cpu.resize(room, 0);
                of_cpu[usize::from(cpu)] = node;
            }
        }
        let has_several = of_cpu.windows(2).any(|pair| pair[0] != pair[1]);
        if has_several { Self(of_cpu) } else { Self::default() }
    }

    fn own(&self, cpu: impl Fn() -> usize) -> u16 {
        if self.0.is_empty() { 0 } else { self.0.get(cpu()).copied().unwrap_or(0) }
    }
}

/// CPUs of a list such as `0-3,8` (cpuset(7), "List format"). Parts of another form are left out.
fn cpus(list: &str) -> impl Iterator<Item = u16> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<u16>().ok()?..=last.parse().ok()?)
    };
    list.trim().split(',').filter_map(range).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(nodes: &[(&str, &str)]) -> Nodes {
        let folder = tempfile::tempdir().unwrap();
        for (name, list) in nodes {
            fs::create_dir(folder.path().join(name)).unwrap();
            fs::write(folder.path().join(name).join("cpulist"), list).unwrap();
        }
        fs::write(folder.path().join("possible"), "0-1\n").unwrap();
        Nodes::read(folder.path())
    }

    #[test]
    fn each_cpu_has_the_node_that_lists_it() {
        let nodes = host(&[("node0", "0-1,4\n"), ("node1", "2-3,5\n"), ("node2", "\n")]);
        let of = [0, 1, 2, 3, 4, 5].map(|cpu| nodes.own(|| cpu));
        assert_eq!(of, [0, 0, 1, 1, 0, 1]);
        assert_eq!(nodes.own(|| 99), 0, "a CPU that came later");
    }

    #[test]
    fn a_host_with_one_node_or_none_asks_for_no_cpu() {
        let unasked = || panic!("there is no choice");
        assert_eq!(host(&[("node0", "0-7\n")]).own(unasked), 0);
        assert_eq!(Nodes::read(Path::new("/nonexistent")).own(unasked), 0);
        assert_eq!(host(&[("node0", "x-\n"), ("nodeX", "0\n")]).own(unasked), 0);
    }
}
