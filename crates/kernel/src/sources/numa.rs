//! Memory nodes of the machine, and on which of them our process may run (/sys/devices/system/node;
//! Documentation/admin-guide/mm/numaperf.rst). The node of the path's device is in the area `bus`. No machine with more
//! than one node was available.

use std::collections::BTreeSet;

use goodput_model::{Missing, Snapshot};

use super::Source;
use crate::Context;
use crate::parse::cpu_list;

const ONLINE: &str = "sys/devices/system/node/online";
/// More nodes than real machines have; large ones have 8 to 32.
const MAX_NODES: usize = 64;

pub(super) struct Numa;

impl Source for Numa {
    fn id(&self) -> &'static str {
        "numa"
    }

    fn summary(&self) -> &'static str {
        "memory nodes of the machine, and those whose CPUs goodput may use"
    }

    fn can_run(&self, context: &Context) -> Result<(), Missing> {
        context.root.readable(ONLINE)
    }

    fn snapshot(&self, context: &Context, snapshot: &mut Snapshot) -> Result<(), Missing> {
        let online = context.root.read(ONLINE)?;
        let nodes = cpu_list::parse("/sys/devices/system/node/online", &online)?;
        snapshot.put("numa.nodes", nodes.len() as u64);
        match ours(context, &nodes) {
            Ok(ours) => snapshot.put("numa.process_nodes", ours),
            Err(why) => snapshot.lacks("numa.process_nodes", why.to_string()),
        }
        Ok(())
    }

    fn lasts(&self, _name: &str) -> bool {
        true
    }
}

/// The nodes with a CPU that our process may use: "0" or "0,1".
fn ours(context: &Context, nodes: &[u32]) -> Result<String, Missing> {
    let allowed = rustix::thread::sched_getaffinity(None)
        .map_err(|error| Missing::because(format!("sched_getaffinity: {error}")))?;
    let mut ours = BTreeSet::new();
    for node in nodes.iter().take(MAX_NODES) {
        let text = context.root.read(&format!("sys/devices/system/node/node{node}/cpulist"))?;
        // A memory-only node has no CPUs.
        if text.trim().is_empty() {
            continue;
        }
        let cpus = cpu_list::parse("/sys/devices/system/node/node*/cpulist", &text)?;
        let most = rustix::thread::CpuSet::MAX_CPU as u32;
        if cpus.iter().any(|cpu| *cpu < most && allowed.is_set(*cpu as usize)) {
            ours.insert(*node);
        }
    }
    Ok(ours.iter().map(u32::to_string).collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Root;

    #[test]
    fn nodes_of_memory_alone_are_nobodys() {
        let host = tempfile::tempdir().unwrap();
        let node = |name: &str| host.path().join("sys/devices/system/node").join(name);
        for (name, cpus) in [("node0", "0-1023\n"), ("node1", "\n")] {
            std::fs::create_dir_all(node(name)).unwrap();
            std::fs::write(node(name).join("cpulist"), cpus).unwrap();
        }
        std::fs::write(node("online"), "0-1\n").unwrap();
        let context = Context { root: Root::at(host.path()), ..Context::default() };
        let mut snapshot = Snapshot::default();
        Numa.snapshot(&context, &mut snapshot).unwrap();
        assert_eq!(snapshot.count("numa.nodes"), Ok(2));
        assert_eq!(snapshot.text("numa.process_nodes"), Ok("0"));
    }
}
