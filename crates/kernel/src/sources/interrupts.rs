//! The CPUs on which the interrupts of the path's device arrive (/proc/interrupts).

use std::collections::BTreeSet;

use goodput_model::{Missing, Snapshot};

use super::Source;
use super::softirq::{put_per_cpu, total};
use crate::Context;
use crate::device::{self, Place, pci_numbers};
use crate::parse::ParseError;
use crate::parse::cpu_list;
use crate::parse::per_cpu::{self, Table};
use crate::parse::vectors::{DeviceMatch, Vectors, of_device};

const FILE: &str = "proc/interrupts";
/// Most interrupts whose CPUs are looked up.
const MAX_INTERRUPTS: usize = 128;
const NAME: &str = "/proc/interrupts";

pub(super) struct Interrupts;

impl Source for Interrupts {
    fn id(&self) -> &'static str {
        "interrupts"
    }

    fn summary(&self) -> &'static str {
        "interrupts of the path's device on each CPU; for a USB device, those of its controller"
    }

    fn can_run(&self, context: &Context) -> Result<(), Missing> {
        context.device_name().map(drop)?;
        context.root.readable(FILE)
    }

    fn snapshot(&self, context: &Context, snapshot: &mut Snapshot) -> Result<(), Missing> {
        let device = context.device_name()?;
        let place = Place::of(context)?;
        let address = place.pci_address();
        let numbers = address.and_then(pci_numbers);
        let text = context.root.read(FILE)?;
        let table = table(&text)?;
        let vectors = of_device(&table, DeviceMatch { device: &device, address, numbers });
        if vectors.interrupts.is_empty() {
            return Err(Missing::because(format!("{NAME} has no line for {device}")));
        }
        put(snapshot, &table, &vectors);
        match affinity(context, &vectors.interrupts) {
            Ok(cpus) => snapshot.put("interrupts.affinity", cpus),
            Err(why) => snapshot.lacks("interrupts.affinity", why.to_string()),
        }
        match device::directory(context).and_then(|device| allowed(context, &device)) {
            Ok(cpus) => snapshot.put("interrupts.allowed", cpus),
            Err(why) => snapshot.lacks("interrupts.allowed", why.to_string()),
        }
        Ok(())
    }
}

/// CPUs on which the device's interrupts may arrive, all together: "0,1". The kernel's actual choice takes precedence
/// (`effective_affinity_list`, Linux 4.13 and later).
fn affinity(context: &Context, interrupts: &[u32]) -> Result<String, Missing> {
    let mut cpus = BTreeSet::new();
    for interrupt in interrupts.iter().take(MAX_INTERRUPTS) {
        let directory = format!("proc/irq/{interrupt}");
        let effective =
            context.root.read_if_there(&format!("{directory}/effective_affinity_list"))?;
        let text = match effective.filter(|text| !text.trim().is_empty()) {
            Some(text) => text,
            None => context.root.read(&format!("{directory}/smp_affinity_list"))?,
        };
        cpus.extend(cpu_list::parse("/proc/irq/*/smp_affinity_list", &text)?);
    }
    Ok(cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(","))
}

/// The CPUs to which the interrupts of the `device` with this directory may go, as `goodput settings get irq.affinity` prints
/// them: one list if all interrupts have the same, otherwise one each in the order of their numbers. The setting's
/// interrupts are all that the driver has, in use or not. The interrupts of a virtio device are its PCI device's.
fn allowed(context: &Context, device: &str) -> Result<String, Missing> {
    let folders = ["device/msi_irqs", "device/../msi_irqs"];
    let mut numbers: Vec<u32> = Vec::new();
    for folder in folders {
        let names = context.root.names(&format!("{device}/{folder}"))?;
        numbers = names.into_iter().flatten().filter_map(|name| name.parse().ok()).collect();
        if !numbers.is_empty() {
            break;
        }
    }
    if numbers.is_empty() || numbers.len() > MAX_INTERRUPTS {
        let why = format!("the device has {} MSI vectors in /sys", numbers.len());
        return Err(Missing::because(why));
    }
    numbers.sort_unstable();
    let list = |number: &u32| {
        let text = context.root.read(&format!("proc/irq/{number}/smp_affinity_list"));
        text.map(|text| text.trim().to_owned())
    };
    let mut lists: Vec<String> = numbers.iter().map(list).collect::<Result<_, _>>()?;
    if lists.windows(2).all(|pair| pair[0] == pair[1]) {
        lists.truncate(1);
    }
    Ok(lists.join(" "))
}

/// The lines with names follow those of devices; if they are missing, the file was cut short.
fn table(text: &str) -> Result<Table<'_>, ParseError> {
    let last = text.lines().next_back().and_then(|line| line.split_once(':'));
    match last {
        Some((name, _)) if name.trim().parse::<u32>().is_err() => per_cpu::parse(NAME, text),
        _ => Err(ParseError::new(NAME, "it ends with the devices")),
    }
}

fn put(snapshot: &mut Snapshot, table: &Table<'_>, vectors: &Vectors) {
    snapshot.put("interrupts.vectors", vectors.interrupts.len() as u64);
    snapshot.put("interrupts.device", total(&vectors.counts));
    put_per_cpu(snapshot, "interrupts.device", &table.cpus, &vectors.counts);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpus_of_all_interrupts_are_put_together() {
        let host = tempfile::tempdir().unwrap();
        for (file, text) in [
            ("24/effective_affinity_list", "3\n"),
            ("24/smp_affinity_list", "0-3\n"),
            ("25/smp_affinity_list", "0-1\n"),
        ] {
            let path = host.path().join("proc/irq").join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let context = Context { root: crate::Root::at(host.path()), ..Context::default() };
        assert_eq!(affinity(&context, &[24, 25]).as_deref(), Ok("0,1,3"));
        assert!(affinity(&context, &[26]).is_err());
    }

    #[test]
    fn the_cpus_that_interrupts_may_go_to_are_those_of_the_setting() {
        let host = tempfile::tempdir().unwrap();
        let put = |file: &str, text: &str| {
            let path = host.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let context = Context { root: crate::Root::at(host.path()), ..Context::default() };
        let device = "sys/class/net/eth0";
        put("sys/class/net/eth0/device/power", "");
        assert!(allowed(&context, device).is_err(), "it has no vectors");
        for number in ["9", "40", "41"] {
            put(&format!("proc/irq/{number}/effective_affinity_list"), "2\n");
            put(&format!("proc/irq/{number}/smp_affinity_list"), "0-3\n");
            // As for virtio.
            put(&format!("{device}/msi_irqs/{number}"), "msix\n");
        }
        assert_eq!(allowed(&context, device).as_deref(), Ok("0-3"), "not the effective one");
        put("proc/irq/9/smp_affinity_list", "1\n");
        assert_eq!(allowed(&context, device).as_deref(), Ok("1 0-3 0-3"), "in order of numbers");
        std::fs::remove_file(host.path().join("proc/irq/9/smp_affinity_list")).unwrap();
        assert!(allowed(&context, device).is_err());
    }

    #[test]
    fn each_cpu_has_its_share_and_a_file_cut_short_has_none() {
        let text = "  CPU0 CPU2\n 24: 3 4 GICv3 36 Level eth0\nErr: 0\n";
        let table = table(text).unwrap();
        let wanted = DeviceMatch { device: "eth0", address: None, numbers: None };
        let mut snapshot = Snapshot::default();
        put(&mut snapshot, &table, &of_device(&table, wanted));
        assert_eq!(snapshot.count("interrupts.vectors"), Ok(1));
        assert_eq!(snapshot.count("interrupts.device"), Ok(7));
        assert_eq!(snapshot.count("interrupts.device.2"), Ok(4));
        assert!(super::table(&text[..text.find("Err").unwrap()]).is_err());
    }
}
