//! Reads and writes the CPUs that the interrupts of a device may go to (/proc/irq,
//! Documentation/core-api/irq/irq-affinity.rst).

use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use goodput_model::SettingRef;
use rustix::fs::{Dir, Mode, OFlags, openat};

use super::host_file::host_file;
use super::{device, sysfs};
use crate::error::{SettingError, from_io};
use crate::setting::Machine;
use crate::{cpus, each};

/// One interrupt of a device.
#[derive(Debug)]
pub(crate) struct Interrupt {
    /// Its number, valid as long as the driver keeps it.
    pub(crate) number: u32,
    /// The name that the driver gave it.
    pub(crate) name: String,
    /// The file that lists the CPUs to which it may go.
    pub(crate) affinity: PathBuf,
}

/// The backend of `irq.affinity`: one list of CPUs if all interrupts have the same, otherwise one each in the order
/// of their numbers, separated by spaces.
pub(crate) struct Affinity;

const ONLINE: &str = "/sys/devices/system/cpu/online";

impl Machine for Affinity {
    fn read(&self, setting: &SettingRef) -> Result<String, SettingError> {
        let read = |interrupt: &Interrupt| {
            let text = fs::read_to_string(&interrupt.affinity);
            let text = text.map_err(|e| from_io(setting, "read it", &interrupt.name, e))?;
            Ok(cpus::parse(&text)
                .map_or_else(|| text.trim().to_owned(), |cpus| cpus::printed(&cpus)))
        };
        let lists: Result<Vec<_>, _> = of_device(setting)?.iter().map(read).collect();
        Ok(each::joined(lists?))
    }

    fn write(&self, setting: &SettingRef, value: &str) -> Result<(), SettingError> {
        for (place, interrupt) in of_device(setting)?.iter().enumerate() {
            if let Some(cpus) = each::own(value, place) {
                #[cfg(test)]
                crate::testing::step();
                fs::write(&interrupt.affinity, cpus)
                    .map_err(|cause| refused(setting, value, interrupt, cause))?;
            }
        }
        Ok(())
    }

    fn normalise(&self, setting: &SettingRef, value: &str) -> Result<String, SettingError> {
        let interrupts = of_device(setting)?.len();
        let online = fs::read_to_string(host_file(ONLINE)).ok();
        let online = online.and_then(|text| cpus::parse(&text)).unwrap_or_default();
        cpus::affinity(setting, value, interrupts, &online)
    }

    fn comes_back(&self, setting: &SettingRef) -> Result<(), SettingError> {
        if !runs("irqbalance") {
            return Ok(());
        }
        let why = "irqbalance is running and would move the interrupts again within seconds; stop it \
                   first (systemctl stop irqbalance)";
        Err(SettingError::Irreversible { setting: setting.clone(), why })
    }

    fn is_between(&self, now: &str, values: &[&str]) -> bool {
        each::is_between(now, values)
    }
}

/// The interrupts of the setting's device.
fn of_device(setting: &SettingRef) -> Result<Vec<Interrupt>, SettingError> {
    let directory = sysfs::directory(setting)?;
    let found = interrupts(&directory, &host_file("/proc/irq"));
    if found.is_empty() {
        let why =
            format!("{} has no interrupts of its own (no MSI vectors)", device::name(setting));
        return Err(SettingError::Scope { setting: setting.clone(), why });
    }
    Ok(found)
}

/// The interrupts of the device with this directory in /sys, in the order of their numbers; `irq` is the folder of
/// interrupts. The interrupts of a virtio device are its PCI device's.
pub(crate) fn interrupts(device: &OwnedFd, irq: &Path) -> Vec<Interrupt> {
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    // A virtual device has none.
    let listed = ["device/msi_irqs", "device/../msi_irqs"]
        .into_iter()
        .find_map(|path| openat(device, path, flags, Mode::empty()).and_then(Dir::read_from).ok());
    let names = listed.into_iter().flatten().flatten();
    let numbers = names.filter_map(|entry| entry.file_name().to_str().ok()?.parse::<u32>().ok());
    let mut found: Vec<_> = numbers
        .map(|number| {
            let folder = irq.join(number.to_string());
            let name = action(&folder).unwrap_or_else(|| number.to_string());
            Interrupt { number, name, affinity: folder.join("smp_affinity_list") }
        })
        .collect();
    found.sort_by_key(|interrupt| interrupt.number);
    found
}

/// The name that the driver gave an interrupt: the directory below its own.
fn action(folder: &Path) -> Option<String> {
    let entries = fs::read_dir(folder).ok()?.flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.filter_map(|entry| entry.file_name().into_string().ok()).next()
}

/// Whether a program of this name runs.
fn runs(program: &str) -> bool {
    let processes = fs::read_dir(host_file("/proc")).into_iter().flatten().flatten();
    processes
        .filter_map(|process| fs::read_to_string(process.path().join("comm")).ok())
        .any(|name| name.trim_end() == program)
}

/// The error if the affinity is not ours to choose (`write_irq_affinity`, kernel/irq/proc.c).
fn refused(
    setting: &SettingRef,
    value: &str,
    interrupt: &Interrupt,
    cause: std::io::Error,
) -> SettingError {
    let operation = format!("change it to {value:?}");
    let managed = [libc::EIO, libc::EPERM].map(Some).contains(&cause.raw_os_error());
    if managed && rustix::process::geteuid().is_root() {
        let cause =
            format!("the kernel places interrupt {} ({}) itself", interrupt.number, interrupt.name);
        return SettingError::Refused { operation, setting: setting.clone(), cause: cause.into() };
    }
    from_io(setting, operation, &interrupt.name, cause)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MadeUp, guard, in_scene};
    use crate::{Changes, read};
    use std::collections::BTreeMap;

    /// Gives a device these interrupts, as if its driver had requested them.
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
            let found = interrupts(&device, &root.join("irq"));
            found.into_iter().map(|i| (i.name, i.affinity)).collect::<BTreeMap<_, _>>()
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
        // Those of a virtio device are its PCI device's.
        let pci = root.join("pci");
        fs::create_dir_all(pci.join("virtio0")).unwrap();
        fs::create_dir_all(pci.join("msi_irqs")).unwrap();
        fs::write(pci.join("msi_irqs/57"), "msix\n").unwrap();
        std::os::unix::fs::symlink("pci/virtio0", root.join("device")).unwrap();
        assert_eq!(look().keys().collect::<Vec<_>>(), ["eth0-TxRx-0"]);
    }

    /// A host with four CPUs, whose eth0 has two interrupts.
    fn host() -> MadeUp {
        MadeUp::host(&[
            ("sys/devices/system/cpu/online", "0-3\n"),
            ("sys/class/net/eth0/device/msi_irqs/40", "msix\n"),
            ("sys/class/net/eth0/device/msi_irqs/41", "msix\n"),
            ("proc/irq/40/smp_affinity_list", "0-3\n"),
            ("proc/irq/41/smp_affinity_list", "0-3\n"),
        ])
    }

    #[test]
    fn interrupts_are_directed_and_come_back() {
        in_scene(|state_dir| {
            let host = host();
            let setting: SettingRef = "irq.affinity@eth0".parse().unwrap();
            assert_eq!(read(&setting).unwrap(), "0-3");
            let mut changes = Changes::begin(state_dir, guard()).unwrap();
            for (typed, effective) in
                [("spread", "0 1"), ("3", "3"), ("2,0,1 3", "0-2 3"), ("0-3", "0-3"), ("1", "1")]
            {
                assert_eq!(changes.apply(&setting, typed).unwrap(), effective);
                assert_eq!(read(&setting).unwrap(), effective);
            }
            let files =
                || ["40", "41"].map(|n| host.read(&format!("proc/irq/{n}/smp_affinity_list")));
            assert_eq!(files(), ["1", "1"]);
            assert!(changes.restore().is_clean());
            assert_eq!(files(), ["0-3", "0-3"]);
        });
    }

    #[test]
    fn cpus_that_are_not_there_and_the_wrong_number_of_lists_are_refused() {
        in_scene(|_| {
            let _host = host();
            let setting: SettingRef = "irq.affinity@eth0".parse().unwrap();
            let said = |text| Affinity.normalise(&setting, text).unwrap_err().to_string();
            assert!(said("4").contains("only the CPUs 0-3"), "{}", said("4"));
            assert!(said("0 1 2").contains("2 interrupts"), "{}", said("0 1 2"));
            for text in ["", "a", "3-1", "1,,2", "-1", "0-99999999"] {
                assert!(said(text).contains("irq.affinity@eth0"), "{text:?}");
            }
        });
    }

    #[test]
    fn irqbalance_would_undo_it_and_is_named() {
        in_scene(|state_dir| {
            let host = host();
            host.write("proc/77/comm", "irqbalance\n");
            let mut changes = Changes::begin(state_dir, guard()).unwrap();
            let error = changes.apply(&"irq.affinity@eth0".parse().unwrap(), "1").unwrap_err();
            let said = error.to_string();
            assert!(said.contains("irqbalance is running"), "{said}");
            assert_eq!(host.read("proc/irq/40/smp_affinity_list"), "0-3\n");
        });
    }
}
