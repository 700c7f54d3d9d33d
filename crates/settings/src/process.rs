//! Which process is meant by a number: another boot, another container and a later process have the same numbers.

use std::fs;
use std::os::unix::fs::MetadataExt;

use serde::{Deserialize, Serialize};

use crate::life;

/// Where this boot's random id is (random(4)).
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// What distinguishes a process from others with its number. What is absent is unknown: an earlier version of goodput
/// noted less, and /proc may not be there.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessMark {
    /// When the process started, clock ticks since the boot (proc_pid_stat(5), field 22).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<u64>,
    /// Inode number of its process namespace (pid_namespaces(7)): in two containers, two processes have the number 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_namespace: Option<u64>,
    /// The boot in which it runs: a directory may be shared with another machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_boot: Option<String>,
}

impl ProcessMark {
    /// The mark of this process.
    pub fn own() -> Self {
        let boot = fs::read_to_string(BOOT_ID).ok();
        Self {
            started: started("self"),
            process_namespace: fs::metadata("/proc/self/ns/pid").ok().map(|status| status.ino()),
            process_boot: boot.map(|id| id.trim().to_owned()),
        }
    }

    /// The mark of a process that is seen from here.
    pub(crate) fn of(pid: u32) -> Self {
        Self { started: started(&pid.to_string()), ..Self::own() }
    }

    /// Whether the process with this mark and the number `pid` is this one.
    pub fn is_this_process(&self, pid: u32) -> bool {
        pid == std::process::id() && self.may_be(&Self::own())
    }

    /// Whether the process with this mark and the number `pid` is seen to run. A process of another container is not
    /// seen.
    pub(crate) fn is_seen(&self, pid: u32) -> bool {
        // /proc may be that of another process namespace, which shows another process by this number.
        if self.is_this_process(pid) {
            return true;
        }
        life::runs(pid) && self.may_be(&Self::of(pid))
    }

    /// Whether the process belongs to this boot and this container, so that it would be seen if it ran.
    pub(crate) fn is_of_here(&self) -> bool {
        let own = Self::own();
        let is_known = self.process_namespace.is_some() && self.process_boot.is_some();
        is_known
            && self.process_namespace == own.process_namespace
            && self.process_boot == own.process_boot
    }

    /// Whether the process is known to belong to another container of this host.
    pub(crate) fn is_contained(&self) -> bool {
        let own = Self::own();
        let differs =
            self.process_namespace.zip(own.process_namespace).is_some_and(|(a, b)| a != b);
        differs && self.process_boot.is_some() && self.process_boot == own.process_boot
    }

    /// Whether nothing that is known here differs in `now`.
    fn may_be(&self, now: &Self) -> bool {
        fn same<T: PartialEq>(known: &Option<T>, now: &Option<T>) -> bool {
            known.is_none() || known == now
        }
        same(&self.started, &now.started)
            && same(&self.process_namespace, &now.process_namespace)
            && same(&self.process_boot, &now.process_boot)
    }
}

/// When a process started; counted from the state behind its name, which may have any character.
fn started(process: &str) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, behind_name) = stat.rsplit_once(')')?;
    behind_name.split_whitespace().nth(22 - 3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_its_start_its_container_and_its_boot_beside_its_number() {
        let (own, pid) = (ProcessMark::own(), std::process::id());
        assert!(own.started.is_some_and(|ticks| ticks > 0) && own.process_boot.is_some());
        let earlier = ProcessMark::default();
        assert!(own.is_this_process(pid) && earlier.is_this_process(pid));
        assert!(own.is_seen(pid) && earlier.is_seen(pid));
        let later = own.started.map(|ticks| ticks + 1);
        let others = [
            ProcessMark { started: later, ..own.clone() },
            ProcessMark { process_namespace: Some(1), ..own.clone() },
            ProcessMark { process_boot: Some("another".into()), ..own.clone() },
        ];
        for other in others {
            assert!(!other.is_this_process(pid) && !other.is_seen(pid), "{other:?}");
        }
        assert!(!own.is_this_process(pid + 1));
    }

    #[test]
    fn a_mark_is_read_back_and_an_earlier_journal_has_none() {
        let own = ProcessMark::own();
        let text = serde_json::to_string(&own).unwrap();
        assert_eq!(serde_json::from_str::<ProcessMark>(&text).unwrap(), own);
        assert_eq!(serde_json::from_str::<ProcessMark>("{}").unwrap(), ProcessMark::default());
    }
}
