//! Where the flows' threads should run: on the memory node of the path's device, and off the CPUs that serve its
//! interrupts (Documentation/networking/scaling.rst; Documentation/ABI/testing/sysfs-class-net and sysfs-bus-pci;
//! proc_irq(5)).

use std::collections::BTreeSet;

use goodput_model::{CpuList, Missing};

use crate::device::{Place, directory, pci_numbers};
use crate::parse::vectors::{DeviceMatch, of_device};
use crate::parse::{cpu_list, per_cpu};
use crate::{Context, Root};

/// Most interrupts of a device whose CPUs are looked up.
const MAX_INTERRUPTS: usize = 1024;

/// A device and the CPUs around it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// Name of the device.
    pub device: String,
    /// Its memory node, if it is on one, and the CPUs of that node.
    pub node: Option<(u16, Vec<u16>)>,
    /// CPUs that serve its interrupts.
    pub interrupted: BTreeSet<u16>,
    /// For each core with several CPUs, all of its CPUs in rising order.
    pub cores: Vec<Vec<u16>>,
}

/// CPUs for the flows' threads, and the reason for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuChoice {
    /// The CPUs, the best first; empty if the scheduler had better decide.
    pub cpus: Vec<u16>,
    /// The reason, for a person.
    pub why: String,
}

/// Reads the surroundings of the path's device. Virtual devices are near nothing and have no interrupts.
pub fn surroundings(context: &Context) -> Result<Surroundings, Missing> {
    let context = context.resolved();
    let device = context.device_name()?;
    let directory = directory(&context)?;
    // A device without a bus has no such link (drivers/base/core.c, `device_add_class_symlinks`).
    if context.root.read_if_there(&format!("{directory}/device/uevent"))?.is_none() {
        return Err(Missing::because(format!("{device} is a virtual device, on no bus")));
    }
    let place = Place::of(&context)?;
    Ok(look(&context.root, &directory, &device, place.pci_address()))
}

fn look(root: &Root, directory: &str, device: &str, address: Option<&str>) -> Surroundings {
    let wanted = DeviceMatch { device, address, numbers: address.and_then(pci_numbers) };
    Surroundings {
        device: device.into(),
        node: node(root, directory),
        interrupted: interrupted(root, wanted),
        cores: cores(root),
    }
}

/// The node of the device with its CPUs. Firmware that reports no node gives -1.
fn node(root: &Root, directory: &str) -> Option<(u16, Vec<u16>)> {
    let number = root.read(&format!("{directory}/device/numa_node")).ok()?.trim().parse().ok()?;
    Some((number, list(root, &format!("{directory}/device/local_cpulist"))?))
}

/// CPUs to which the kernel assigns the device's interrupts; if the kernel reports none, the CPUs that have had any.
fn interrupted(root: &Root, wanted: DeviceMatch<'_>) -> BTreeSet<u16> {
    let Ok(text) = root.read("proc/interrupts") else { return BTreeSet::new() };
    let Ok(table) = per_cpu::parse("/proc/interrupts", &text) else { return BTreeSet::new() };
    let vectors = of_device(&table, wanted);
    let effective =
        |interrupt: &u32| list(root, &format!("proc/irq/{interrupt}/effective_affinity_list"));
    let lists: Option<Vec<_>> =
        vectors.interrupts.iter().take(MAX_INTERRUPTS).map(effective).collect();
    match lists {
        Some(cpus) => cpus.into_iter().flatten().collect(),
        None => {
            let counted = table.cpus.iter().zip(&vectors.counts).filter(|(_, count)| **count > 0);
            counted.filter_map(|(cpu, _)| u16::try_from(*cpu).ok()).collect()
        }
    }
}

/// The CPUs of each core that has several.
fn cores(root: &Root) -> Vec<Vec<u16>> {
    let all = list(root, "sys/devices/system/cpu/online").unwrap_or_default();
    let siblings = |cpu: &u16| {
        let file = format!("sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        list(root, &file).filter(|core| core.len() > 1 && core.first() == Some(cpu))
    };
    all.iter().filter_map(siblings).collect()
}

fn list(root: &Root, file: &str) -> Option<Vec<u16>> {
    let cpus = cpu_list::parse("a list of CPUs", &root.read(file).ok()?).ok()?;
    cpus.into_iter().map(|cpu| u16::try_from(cpu).ok()).collect()
}

impl Surroundings {
    /// CPUs for `flows` threads, out of the `allowed` ones.
    pub fn choose_cpus(&self, allowed: &[u16], flows: usize) -> CpuChoice {
        let device = &self.device;
        let (near, place) = match &self.node {
            Some((node, cpus)) => (
                allowed.iter().copied().filter(|cpu| cpus.contains(cpu)).collect(),
                format!("memory node {node}, where {device} is"),
            ),
            None => (allowed.to_vec(), String::from("any memory node")),
        };
        if near.is_empty() {
            let why = format!("no CPU of {place} is allowed; the scheduler decides");
            return CpuChoice { cpus: Vec::new(), why };
        }
        if near == allowed && !near.iter().any(|cpu| self.interrupted.contains(cpu)) {
            let why = format!(
                "every allowed CPU is equally near to {device} and equally quiet; the scheduler decides"
            );
            return CpuChoice { cpus: Vec::new(), why };
        }
        let (mut loud, mut cpus): (Vec<u16>, Vec<u16>) =
            near.iter().partition(|cpu| self.interrupted.contains(cpu));
        cpus.sort_by_key(|cpu| self.rank(*cpu));
        if cpus.is_empty() && near == allowed {
            let why =
                format!("every allowed CPU serves {device}'s interrupts; the scheduler decides");
            return CpuChoice { cpus, why };
        }
        let avoided = CpuList(&loud).to_string();
        let mut why = match loud.is_empty() {
            true => format!("{place}; none of its CPUs serves {device}'s interrupts"),
            false => format!("{place}, off the CPUs that serve its interrupts ({avoided})"),
        };
        if cpus.len() < flows && !loud.is_empty() {
            why = format!(
                "{place}; also on CPUs that serve its interrupts, because there are no others ({avoided})"
            );
            loud.sort_by_key(|cpu| self.rank(*cpu));
            cpus.append(&mut loud);
        }
        CpuChoice { cpus, why }
    }

    /// The lower the better: whether interrupts are served on the same core, then the CPU's index within its core, so
    /// that each flow has its own core as long as there are enough.
    fn rank(&self, cpu: u16) -> (bool, usize, u16) {
        let core = self.cores.iter().find(|core| core.contains(&cpu));
        let place = core.and_then(|core| core.iter().position(|one| *one == cpu)).unwrap_or(0);
        let beside = core.is_some_and(|core| core.iter().any(|c| self.interrupted.contains(c)));
        (beside, place, cpu)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CARD: &str = "0000:81:00.0";

    /// A machine with two nodes of 8 CPUs and two CPUs per core, numbered as Linux does: node 0 has 0-3 and 8-11, node
    /// 1 has 4-7 and 12-15. The card is on node 1 and has 8 queues, whose CPUs `placed` lists.
    fn machine(placed: &[u16]) -> (tempfile::TempDir, Surroundings) {
        let host = tempfile::tempdir().unwrap();
        let put = |file: &str, text: &str| {
            let path = host.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, format!("{text}\n")).unwrap();
        };
        put("sys/class/net/eth0/device/numa_node", "1");
        put("sys/class/net/eth0/device/local_cpulist", "4-7,12-15");
        put("sys/devices/system/cpu/online", "0-15");
        for cpu in 0..16 {
            let file = format!("sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
            put(&file, &format!("{},{}", cpu % 8, cpu % 8 + 8));
        }
        let mut table: String = (0..16).map(|cpu| format!(" CPU{cpu}")).collect();
        for (queue, cpu) in placed.iter().enumerate() {
            let counts: String = (0..16).map(|c| if c == *cpu { " 5000" } else { " 0" }).collect();
            let irq = 64 + queue;
            table += &format!("\n{irq}:{counts} IR-PCI-MSIX-{CARD} {queue}-edge eth0-TxRx-{queue}");
            put(&format!("proc/irq/{irq}/effective_affinity_list"), &cpu.to_string());
        }
        put("proc/interrupts", &format!("{table}\nERR: 0"));
        let seen = look(&Root::at(host.path()), "sys/class/net/eth0", "eth0", Some(CARD));
        (host, seen)
    }

    fn all() -> Vec<u16> {
        (0..16).collect()
    }

    #[test]
    fn flows_sit_on_the_cards_node_off_its_interrupts_and_on_cores_of_their_own() {
        let (_host, seen) = machine(&[4, 5, 4, 5, 4, 5, 4, 5]);
        assert_eq!(seen.node, Some((1, vec![4, 5, 6, 7, 12, 13, 14, 15])));
        assert_eq!(seen.interrupted, BTreeSet::from([4, 5]));
        let choice = seen.choose_cpus(&all(), 2);
        // 12 and 13 share their cores with 4 and 5, so they come last.
        assert_eq!(choice.cpus, [6, 7, 14, 15, 12, 13]);
        let why = "memory node 1, where eth0 is, off the CPUs that serve its interrupts (4-5)";
        assert_eq!(choice.why, why);
        assert_eq!(seen.choose_cpus(&[0, 5, 7, 12], 2).cpus, [7, 12], "only of what is allowed");
    }

    #[test]
    fn more_flows_than_quiet_cpus_take_the_others_too_and_say_so() {
        let (_host, seen) = machine(&[4, 5, 6, 7, 12, 13, 14, 4]);
        assert_eq!(seen.choose_cpus(&all(), 1).cpus, [15]);
        let crowded = seen.choose_cpus(&all(), 2);
        assert_eq!(crowded.cpus, [15, 4, 5, 6, 7, 12, 13, 14]);
        assert!(crowded.why.contains("because there are no others"), "{}", crowded.why);
        let (_host, full) = machine(&[4, 5, 6, 7, 12, 13, 14, 15]);
        assert_eq!(full.choose_cpus(&all(), 1).cpus.len(), 8, "a card with a queue for every CPU");
    }

    #[test]
    fn without_anything_to_choose_by_the_scheduler_decides() {
        let (_host, seen) = machine(&[4]);
        let elsewhere = seen.choose_cpus(&[0, 1], 1);
        assert!(elsewhere.cpus.is_empty() && elsewhere.why.contains("node 1"), "{elsewhere:?}");
        let bare = Surroundings { device: "eth0".into(), ..Surroundings::default() };
        assert!(bare.choose_cpus(&all(), 4).cpus.is_empty());
    }

    #[test]
    fn an_older_kernel_shows_by_its_counts_where_interrupts_go() {
        let (host, _) = machine(&[6]);
        std::fs::remove_dir_all(host.path().join("proc/irq")).unwrap();
        std::fs::write(host.path().join("sys/class/net/eth0/device/numa_node"), "-1\n").unwrap();
        let seen = look(&Root::at(host.path()), "sys/class/net/eth0", "eth0", Some(CARD));
        assert_eq!((&seen.node, seen.interrupted.len()), (&None, 1));
        assert_eq!(seen.choose_cpus(&[4, 5, 6], 1).cpus, [4, 5]);
    }
}
