//! The CPUs that each queue is steered to, its limits, and how a device is polled (sysfs,
//! Documentation/networking/scaling.rst).

use std::io::{Read, Write};
use std::os::fd::OwnedFd;

use rustix::fs::{Dir, Mode, OFlags, openat};

use super::Cells;
use super::devices::Part;
use super::host::{Host, Trouble};
use crate::machine::sysfs::attribute;

pub(super) const ID: &str = "queue";

/// Files of a device.
const DEVICE: [&str; 3] = ["threaded", "gro_flush_timeout", "napi_defer_hard_irqs"];
/// Files of a receive queue.
const RECEIVE: [&str; 2] = ["rps_cpus", "rps_flow_cnt"];
/// Files of a transmit queue.
const SEND: [&str; 6] = [
    "xps_cpus",
    "xps_rxqs",
    "tx_maxrate",
    "byte_queue_limits/hold_time",
    "byte_queue_limits/limit_min",
    "byte_queue_limits/limit_max",
];

pub(super) fn capture(host: &mut Host, part: &Part, cells: &mut Cells) -> Result<(), Trouble> {
    for link in &part.links {
        let device = host.sysfs.device(link).ok_or(Trouble::Hidden)?;
        let mut keep = |file: String| {
            // A device without such a file, or with only one queue, can't lose its content.
            if let Ok(text) = read(&device, &file) {
                cells.insert(format!("{ID}/{}/{file}", link.name), text);
            }
        };
        DEVICE.iter().for_each(|file| keep((*file).into()));
        for queue in queues(&device) {
            let files: &[&str] = if queue.starts_with("rx-") { &RECEIVE } else { &SEND };
            files.iter().for_each(|file| keep(format!("queues/{queue}/{file}")));
        }
    }
    Ok(())
}

pub(super) fn write(host: &mut Host, name: &str, file: &str, wanted: &str) -> Result<(), Trouble> {
    let device = host.sysfs.device(host.link(name)?).ok_or(Trouble::Hidden)?;
    Ok(attribute(&device, file, OFlags::WRONLY)?.write_all(wanted.as_bytes())?)
}

fn read(device: &OwnedFd, file: &str) -> std::io::Result<String> {
    let mut text = String::new();
    attribute(device, file, OFlags::RDONLY)?.read_to_string(&mut text)?;
    Ok(text.trim().into())
}

fn queues(device: &OwnedFd) -> Vec<String> {
    let folder = openat(device, "queues", OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    let entries = folder.and_then(Dir::read_from).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("rx-") || name.starts_with("tx-")).collect()
}
