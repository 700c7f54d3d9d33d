//! The CPUs that the interrupts of a device go to (/proc/irq, Documentation/core-api/irq).
//!
//! A driver that changes its queues gives its interrupts back and asks for others, with the
//! affinity of a new one and perhaps another number; the name that it gives each stays.

use std::fs;
use std::path::PathBuf;

use rustix::fs::{Dir, Mode, OFlags, openat};

use super::devices::Part;
use super::host::{Host, Trouble};
use super::{Cells, of_device};

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
    path: &str,
    _now: Option<&str>,
    wanted: &str,
) -> Result<(), Trouble> {
    let (device, name) = of_device(path)?;
    let found = affinities(host, device)?.into_iter().find(|(found, _)| found == name);
    let (_, file) = found.ok_or(Trouble::Gone)?;
    Ok(fs::write(file, wanted)?)
}

/// The name and the file of each interrupt that the device behind a link has.
fn affinities(host: &Host, name: &str) -> Result<Vec<(String, PathBuf)>, Trouble> {
    let device = host.sysfs.device(host.link(name)?).ok_or(Trouble::Hidden)?;
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    // A virtual device has none.
    let listed = openat(device, "device/msi_irqs", flags, Mode::empty()).and_then(Dir::read_from);
    let numbers = listed.into_iter().flatten().flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str().ok()?.parse::<u32>().ok());
    Ok(numbers
        .map(|number| {
            let folder = PathBuf::from(format!("/proc/irq/{number}"));
            (
                action(&folder).unwrap_or_else(|| number.to_string()),
                folder.join("smp_affinity_list"),
            )
        })
        .collect())
}

/// The name that the driver gave an interrupt: the directory below its own.
fn action(folder: &std::path::Path) -> Option<String> {
    let entries = fs::read_dir(folder).ok()?.flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.filter_map(|entry| entry.file_name().into_string().ok()).next()
}
