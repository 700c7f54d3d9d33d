//! The CPUs that the interrupts of a device go to (/proc/irq, Documentation/core-api/irq).
//!
//! A driver that changes its queues gives its interrupts back and asks for others, with the
//! affinity of a new one and perhaps another number; the name that it gives each stays.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Dir, Mode, OFlags, openat};

use super::Cells;
use super::devices::Part;
use super::host::{Host, Trouble};

pub(super) const ID: &str = "interrupt";

pub(super) fn capture(host: &mut Host, part: &Part, cells: &mut Cells) -> Result<(), Trouble> {
    for link in &part.links {
        for (name, file) in affinities(host, &link.name)? {
            if let Ok(cpus) = fs::read_to_string(file) {
                cells.insert(format!("{ID}/{}/{name}", link.name), cpus.trim().into());
            }
        }
    }
    Ok(())
}

pub(super) fn write(
    host: &mut Host,
    device: &str,
    name: &str,
    wanted: &str,
) -> Result<(), Trouble> {
    let found = affinities(host, device)?.into_iter().find(|(found, _)| found == name);
    let (_, file) = found.ok_or(Trouble::Gone)?;
    Ok(fs::write(file, wanted)?)
}

/// The name and the file of each interrupt that the device behind a link has.
fn affinities(host: &Host, name: &str) -> Result<Vec<(String, PathBuf)>, Trouble> {
    let device = host.sysfs.device(host.link(name)?).ok_or(Trouble::Hidden)?;
    Ok(interrupts(&device, Path::new("/proc/irq")))
}

/// The name and the file of each interrupt of the device with this directory in /sys, as `irq` has them.
fn interrupts(device: &OwnedFd, irq: &Path) -> Vec<(String, PathBuf)> {
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    // A virtual device has none.
    let listed = openat(device, "device/msi_irqs", flags, Mode::empty()).and_then(Dir::read_from);
    let numbers = listed.into_iter().flatten().flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str().ok()?.parse::<u32>().ok());
    let file = |number: u32| {
        let folder = irq.join(number.to_string());
        let name = action(&folder).unwrap_or_else(|| number.to_string());
        (name, folder.join("smp_affinity_list"))
    };
    numbers.map(file).collect()
}

/// The name that the driver gave an interrupt: the directory below its own.
fn action(folder: &Path) -> Option<String> {
    let entries = fs::read_dir(folder).ok()?.flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.filter_map(|entry| entry.file_name().into_string().ok()).next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Gives a device these interrupts, as a driver asks for them.
    fn ask_for(root: &Path, numbers: [u32; 2]) {
        let _ = fs::remove_dir_all(root);
        for (queue, number) in numbers.into_iter().enumerate() {
            let folder = root.join(format!("irq/{number}"));
            fs::create_dir_all(folder.join(format!("eth0-TxRx-{queue}"))).unwrap();
            fs::write(folder.join("smp_affinity_list"), "0-3\n").unwrap();
            fs::create_dir_all(root.join("device/msi_irqs")).unwrap();
            fs::write(root.join(format!("device/msi_irqs/{number}")), "msix\n").unwrap();
        }
    }

    #[test]
    fn an_interrupt_is_known_by_its_name_when_the_driver_asks_for_others() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("host");
        let look = || {
            let device = rustix::fs::open(&root, OFlags::DIRECTORY, Mode::empty()).unwrap();
            interrupts(&device, &root.join("irq")).into_iter().collect::<BTreeMap<_, _>>()
        };
        ask_for(&root, [40, 41]);
        let before = look();
        assert_eq!(before.keys().collect::<Vec<_>>(), ["eth0-TxRx-0", "eth0-TxRx-1"]);
        ask_for(&root, [57, 40]);
        let after = look();
        assert_eq!(after.keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>());
        assert_eq!(after["eth0-TxRx-1"], root.join("irq/40/smp_affinity_list"));
        fs::remove_dir_all(root.join("device")).unwrap();
        assert!(look().is_empty(), "a virtual device has none");
    }
}
