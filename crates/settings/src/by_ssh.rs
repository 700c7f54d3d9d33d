//! Runs that change this host by SSH. They keep their journals elsewhere; here a process stands ready to put back what
//! they change (`goodput-remote`, `ssh/dead_man.sh`). As long as it lives, such a run is at work.

use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use crate::error::SettingError;
use crate::life;
use crate::place::Place;

/// The name of that process: what follows its script in its command line. Behind the name stand two more words, the
/// process's network namespace (`net:[4026531840]`, namespaces(7)), and the process that started it, as its process namespace
/// counts. Only root may look up the namespace of root's process (proc_pid_ns(5)), but everyone may read its words.
pub const DEAD_MAN: &str = "goodput-dead-man";

/// Fails if a run changes `place` by SSH now, or if what an ended one left is put back there. A process counts only if root
/// or this user started it: anybody can give a process such words.
pub(crate) fn refuse(place: &Place) -> Result<(), SettingError> {
    let processes = fs::read_dir("/proc").ok().into_iter().flatten().flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut puts_back = None;
    for pid in ids {
        let process = Path::new("/proc").join(pid.to_string());
        if !is_dead_man(&process, place).unwrap_or(false) || !is_trusted(&process).unwrap_or(false)
        {
            continue;
        }
        if !is_putting_back(&process, pid).unwrap_or(true) {
            return Err(SettingError::Busy { pid });
        }
        puts_back = Some(pid);
    }
    puts_back.map_or(Ok(()), |pid| Err(SettingError::PutsBackBySsh { pid }))
}

/// Whether the run of a dead-man is over: its parent is not the process that started it, or has no other child, which the
/// run's shell is. An older goodput does not say who started it. `None` if it has ended.
fn is_putting_back(process: &Path, pid: u32) -> Option<bool> {
    let command = fs::read_to_string(process.join("cmdline")).ok()?;
    let starter = command.split('\0').skip_while(|word| *word != DEAD_MAN).nth(4);
    let starter: Option<u32> = starter.and_then(|word| word.parse().ok());
    let Some(starter) = starter else { return Some(false) };
    let parent = number(process, "PPid:")?;
    let of_parent = Path::new("/proc").join(parent.to_string());
    // A kernel before 4.1 does not say how inner namespaces count.
    let as_it_counts = number(&of_parent, "NSpid:").unwrap_or(parent);
    Some(as_it_counts != starter || !has_other_child(parent, pid))
}

/// Whether a process has a child that lives, other than `pid`.
fn has_other_child(parent: u32, pid: u32) -> bool {
    let processes = fs::read_dir("/proc").ok().into_iter().flatten().flatten();
    let mut others = processes.filter(|entry| entry.file_name() != pid.to_string().as_str());
    others.any(|entry| {
        number(&entry.path(), "PPid:") == Some(parent) && life::is_running(&entry.path())
    })
}

/// The last number in a line of a process's status (proc_pid_status(5)): of those of `NSpid`, its own namespace's.
fn number(process: &Path, field: &str) -> Option<u32> {
    let status = fs::read_to_string(process.join("status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    line.split_whitespace().last()?.parse().ok()
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
    // sh -c SCRIPT NAME MARK SECONDS NAMESPACE STARTER
    let mut words = command.split(|byte| *byte == 0).skip(1);
    let is_named = words.next()? == b"-c" && words.nth(1)? == DEAD_MAN.as_bytes();
    let namespace = words.nth(2).filter(|word| !word.is_empty()).map(<[u8]>::to_owned);
    // An older goodput does not say it.
    let looked_up =
        || fs::read_link(process.join("ns/net")).ok().map(|name| name.into_os_string().into_vec());
    let own = format!("net:[{}]", place.netns).into_bytes();
    Some(is_named && namespace.or_else(looked_up)? == own)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    use super::*;
    use crate::testing::in_scene;

    /// The process that started a dead-man, with the run's shell as its other child.
    const RUN: &str = "exec 3<&0; sleep 1000 3<&- >&- & echo $!; \
        sh -c 'echo ready; read line; :' goodput-dead-man mark 30 \"$0\" $$ <&3";

    #[test]
    fn a_run_by_ssh_is_over_once_its_shell_has_ended() {
        in_scene(|_| {
            let namespace = fs::read_link("/proc/thread-self/ns/net").unwrap();
            let mut run = Command::new("sh")
                .args(["-c", RUN])
                .arg(&namespace)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let said = BufReader::new(run.stdout.take().unwrap()).lines();
            let said: Vec<_> = said.take(2).map(Result::unwrap).collect();
            assert_eq!(said[1], "ready");
            let here = Place::here().unwrap();
            assert!(matches!(refuse(&here), Err(SettingError::Busy { .. })));
            assert!(Command::new("kill").args(["-9", &said[0]]).status().unwrap().success());
            goodput_testing::wait_for("the end of the run to be seen", || {
                matches!(refuse(&here), Err(SettingError::PutsBackBySsh { .. }))
            });
            drop(run.stdin.take());
            run.wait().unwrap();
            assert!(refuse(&here).is_ok());
        });
    }
}
