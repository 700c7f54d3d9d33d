//! Runs that change this host by SSH. They keep their journals elsewhere; here a process stands ready to put back what
//! they change (`goodput-remote`, `ssh/dead_man.sh`). As long as it lives, such a run is at work.

use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use crate::error::SettingError;
use crate::place::Place;

/// The name of that process: what follows its script in its command line. Behind the name stand two more words and the
/// process's network namespace (`net:[4026531840]`, namespaces(7)): only root may look up the namespace of root's process
/// (proc_pid_ns(5)), but everyone may read its words.
pub const DEAD_MAN: &str = "goodput-dead-man";

/// Fails if a run changes `place` by SSH now. A process counts only if root or this user started it: anybody can give a
/// process such words.
pub(crate) fn refuse(place: &Place) -> Result<(), SettingError> {
    let processes = fs::read_dir("/proc").ok().into_iter().flatten().flatten();
    let mut ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_at_work = |process: &Path| {
        is_dead_man(process, place).unwrap_or(false) && is_trusted(process).unwrap_or(false)
    };
    match ids.find(|id| is_at_work(Path::new(&format!("/proc/{id}")))) {
        Some(pid) => Err(SettingError::Busy { pid }),
        None => Ok(()),
    }
}

/// Judged by who started the process: a program with set-user-ID runs as root, with words that its user chose
/// (proc_pid_status(5): the first number of `Uid`). `None` if the process has ended.
pub(crate) fn is_trusted(process: &Path) -> Option<bool> {
    let status = fs::read_to_string(process.join("status")).ok()?;
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    let owner: u32 = ids.split_whitespace().next()?.parse().ok()?;
    Some(owner == 0 || owner == rustix::process::geteuid().as_raw())
}

/// `None` if the process has ended, or shows too few words.
fn is_dead_man(process: &Path, place: &Place) -> Option<bool> {
    let command = fs::read(process.join("cmdline")).ok()?;
    // sh -c SCRIPT NAME MARK SECONDS NAMESPACE
    let mut words = command.split(|byte| *byte == 0).skip(1);
    let is_named = words.next()? == b"-c" && words.nth(1)? == DEAD_MAN.as_bytes();
    let namespace = words.nth(2).filter(|word| !word.is_empty()).map(<[u8]>::to_owned);
    // An older goodput does not say it.
    let looked_up =
        || fs::read_link(process.join("ns/net")).ok().map(|name| name.into_os_string().into_vec());
    let own = format!("net:[{}]", place.netns).into_bytes();
    Some(is_named && namespace.or_else(looked_up)? == own)
}
