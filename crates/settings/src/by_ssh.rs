//! Runs that change this host by SSH. They keep their journals elsewhere; here a process stands ready to put back what
//! they change (`goodput-remote`, `ssh/dead_man.sh`). As long as it lives, such a run is at work.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::place::Place;

/// The name of that process: what follows its script in its command line.
pub const DEAD_MAN: &str = "goodput-dead-man";

/// The process of a run that changes `place` by SSH now, if there is one. Counts only if it belongs to root or to this
/// user: anybody can give a process such a name.
pub(crate) fn at_work(place: &Place) -> Option<u32> {
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let mut ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.find(|id| is_dead_man(Path::new(&format!("/proc/{id}")), place).unwrap_or(false))
}

/// Who started the process: a program with set-user-ID runs as root, with words that its user chose
/// (proc_pid_status(5): the first number of `Uid`).
fn real_owner(process: &Path) -> Option<u32> {
    let status = fs::read_to_string(process.join("status")).ok()?;
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    ids.split_whitespace().next()?.parse().ok()
}

/// `None` if the process has ended, or may not be looked at.
fn is_dead_man(process: &Path, place: &Place) -> Option<bool> {
    let owner = real_owner(process)?;
    if owner != 0 && owner != rustix::process::geteuid().as_raw() {
        return Some(false);
    }
    let command = fs::read(process.join("cmdline")).ok()?;
    // sh -c SCRIPT NAME …
    let mut words = command.split(|byte| *byte == 0).skip(1);
    let is_named = words.next() == Some(b"-c") && words.nth(1) == Some(DEAD_MAN.as_bytes());
    if !is_named {
        return Some(false);
    }
    Some(fs::metadata(process.join("ns/net")).ok()?.ino() == place.netns)
}
