//! The CPUs that the interrupts of a device go to (/proc/irq, Documentation/core-api/irq).
//!
//! A driver that changes its queues frees its interrupts and requests others, with default
//! affinity and perhaps another number; the name that it gives each stays.

use std::fs;
use std::path::{Path, PathBuf};

use super::Cells;
use super::devices::Part;
use super::host::{Host, Trouble};
use crate::machine::interrupts;

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
    let found = interrupts(&device, Path::new("/proc/irq"));
    Ok(found.into_iter().map(|interrupt| (interrupt.name, interrupt.affinity)).collect())
}
