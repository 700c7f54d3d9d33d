//! Everything that can go wrong with a setting, with what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use goodput_model::SettingRef;
use goodput_netlink::NetlinkError;

use crate::holder::Holder;
use crate::journal::LockHeld;
use crate::privilege::Privilege;
use crate::scope;

/// What went wrong with a setting. Unless it says otherwise, nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingError {
    /// No such setting.
    #[error("there is no setting {name:?}{}", did_you_mean(nearest))]
    Unknown {
        /// The requested name.
        name: String,
        /// Settings with similar names, the most similar first.
        nearest: Vec<String>,
    },
    /// A kernel parameter that exists, but not here.
    #[error("{name} is not here: {why}")]
    NotHere {
        /// The requested name.
        name: String,
        /// Where it is, or what is missing for it.
        why: &'static str,
    },
    /// The part after `@` is missing, superfluous or names nothing on this host.
    #[error("{setting}: {why}")]
    Scope {
        /// The setting.
        setting: SettingRef,
        /// What is wrong with its scope and what would be right.
        why: String,
    },
    /// The value is not valid for this setting.
    #[error("{setting} can't be set to {value:?}: {why}")]
    BadValue {
        /// The setting.
        setting: SettingRef,
        /// The requested value.
        value: String,
        /// What is wrong and what would be right.
        why: String,
    },
    /// A setting of the plan was named with `far:`.
    #[error("{0} applies to both ends of a measurement; write it without \"far:\"")]
    HoldsAtBothEnds(SettingRef),
    /// A setting of the plan has no value on the machine.
    #[error("{0} belongs to a measurement, not to this host; it has no value between measurements")]
    NotOnTheMachine(SettingRef),
    /// A setting of the machine is not part of the plan.
    #[error("{0} is a setting of the host, not of the measurement")]
    NotInThePlan(SettingRef),
    /// A sysctl whose change can't be undone by writing the old value.
    #[error("goodput does not change {setting}: {why}")]
    Irreversible {
        /// The setting.
        setting: SettingRef,
        /// What writing it does beyond changing the value.
        why: &'static str,
    },
    /// A client of a server may not read or change the setting this way.
    #[error("{setting}: {why}")]
    NotForOthers {
        /// The setting.
        setting: SettingRef,
        /// What is not allowed, and who could allow it.
        why: String,
    },
    /// The journal of a dead run can't be read, so nobody knows what that run left changed.
    #[error("nothing is changed before this is settled: {report}")]
    Unreadable {
        /// The report on the journal: what was put back by it, and what is wrong with it.
        report: String,
    },
    /// The kernel requires a privilege.
    #[error("{setting}: not permitted to {operation}; it needs {needs}")]
    NotPermitted {
        /// What was tried: `read` or `change it to …`.
        operation: String,
        /// The setting.
        setting: SettingRef,
        /// The missing capability and what would give it.
        needs: String,
    },
    /// The kernel rejects the value.
    #[error("{setting}: the kernel refuses to {operation} ({cause})")]
    Refused {
        /// What was tried.
        operation: String,
        /// The setting.
        setting: SettingRef,
        /// The kernel's answer.
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The object of the setting does not exist (any more).
    #[error("{setting}: there is no {what}")]
    Gone {
        /// The setting.
        setting: SettingRef,
        /// The device, route or file that is missing, and what the user can do.
        what: String,
    },
    /// The device was renamed since the change.
    #[error(
        "{setting}: its device is called {now} now; give it its old name for a moment, and run `goodput settings undo`"
    )]
    Renamed {
        /// The setting, with the old name.
        setting: SettingRef,
        /// The new name.
        now: String,
    },
    /// The device exists, but the kernel denies it while the driver restarts the device.
    #[error(
        "{setting}: can't {operation}, the device is not ready ({cause}); try again in a moment"
    )]
    NotReady {
        /// What was tried.
        operation: String,
        /// The setting.
        setting: SettingRef,
        /// The kernel's answer.
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Reading or writing failed in another way.
    #[error("{setting}: can't {operation}: {cause}")]
    Io {
        /// What was tried.
        operation: String,
        /// The setting.
        setting: SettingRef,
        /// The cause.
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The value read back is not the requested one.
    #[error(
        "{setting}: set to {asked:?}, but the kernel made it {effective:?}; {}",
        now_is(not_back)
    )]
    NotEffective {
        /// The setting.
        setting: SettingRef,
        /// What was written.
        asked: String,
        /// What was read back.
        effective: String,
        /// Why the original could not be put back, if that failed.
        not_back: Option<Box<SettingError>>,
    },
    /// The value is back, but some of what the kernel changed along with it is not.
    #[error("{setting} is back, but not what changed with it: {left}")]
    SideEffects {
        /// The setting.
        setting: SettingRef,
        /// What differs, and why it could not be written.
        left: String,
    },
    /// Someone else changed the setting between two changes of ours.
    #[error("{setting} is now {now:?}, changed by someone else (goodput set {ours:?}); left alone")]
    ChangedByOther {
        /// The setting.
        setting: SettingRef,
        /// Its value now.
        now: String,
        /// What we had set.
        ours: String,
    },
    /// Another run changes settings of this host, so that both would measure each other's changes.
    #[error(
        "can't change settings now: another goodput (process {pid}) is changing settings of this host, and each would \
         spoil the other's runs; wait until it is done"
    )]
    Busy {
        /// The other process.
        pid: u32,
    },
    /// The same for a run in another container that shares this network namespace.
    #[error(
        "can't change settings now: another goodput, in another container (process {pid} there), is changing settings \
         of this network namespace, and each would spoil the other's runs; wait until it is done, or end it there (journal {})",
        journal.display()
    )]
    BusyElsewhere {
        /// The other process, as that container counts.
        pid: u32,
        /// Its journal.
        journal: PathBuf,
    },
    /// What a run left is being put back, and who does that would take a change for one of that run.
    #[error(
        "can't change settings now: {holder}; wait until that is done, and try again (journal {})",
        journal.display()
    )]
    GuardAtWork {
        /// Who puts back, as far as is known.
        holder: Holder,
        /// The journal of that run.
        journal: PathBuf,
    },
    /// The same, after a run that changed this host by SSH.
    #[error(
        "can't change settings now: process {pid} puts back what a run by SSH changed here; wait until that is done, and \
         try again"
    )]
    PutsBackBySsh {
        /// Who puts back.
        pid: u32,
    },
    /// Another run is changing the setting at this moment.
    #[error("{setting} is being changed by another goodput (process {pid}); wait until it is done")]
    InUse {
        /// The setting.
        setting: SettingRef,
        /// The other process.
        pid: u32,
    },
    /// Who holds the journal of the run that changed the setting is no run that is seen from here.
    #[error(
        "{setting} is still as another run set it: {holder}; wait until that is done (journal {})",
        journal.display()
    )]
    Held {
        /// The setting.
        setting: SettingRef,
        /// Who that is, as far as is known.
        holder: Holder,
        /// The journal of that run.
        journal: PathBuf,
    },
    /// A dead run left the setting changed, and it is not put back yet.
    #[error(
        "{setting} is still as an interrupted run left it; put it back first with `goodput --state-dir {} settings undo` \
         (journal {})",
        journal.parent().unwrap_or(journal).display(),
        journal.display()
    )]
    LeftChanged {
        /// The setting.
        setting: SettingRef,
        /// The journal of that run.
        journal: PathBuf,
    },
    /// The journal could not be kept, so nothing may be changed.
    #[error(
        "can't {operation} the journal in {}: {cause}; without a journal goodput changes nothing; --state-dir names another \
         directory",
        path.display()
    )]
    Journal {
        /// What was tried.
        operation: &'static str,
        /// The journal or its directory.
        path: PathBuf,
        /// The cause.
        cause: io::Error,
    },
    /// The list of all open journals could not be kept. It is in one place, whatever directory the journals are in.
    #[error(
        "can't {operation} {}, the list of all journals: {cause}; without that list goodput changes nothing, because it \
         can't see what other runs change; make it a directory to which only you can write (--state-dir does not move it)",
        path.display()
    )]
    List {
        /// What was tried.
        operation: &'static str,
        /// The list's directory.
        path: PathBuf,
        /// The cause.
        cause: io::Error,
    },
    /// Another process holds the lock of a directory of journals, or of their list, for too long.
    #[error("can't change settings now: {0}; wait until that process is done, or end it")]
    Locked(String),
    /// There is no place for the journal.
    #[error("no directory for the journal: {0}; set XDG_STATE_HOME or HOME to an absolute path")]
    NoStateDir(&'static str),
    /// The process that would put settings back if this one is killed is not running.
    #[error("the guard that puts settings back is not running ({0}); goodput changes nothing more")]
    Guard(String),
    /// The process that changes settings for clients of a server is not running.
    #[error("the settings helper is not running: {0}")]
    Helper(String),
    /// The identity of this host or its network namespace could not be read.
    #[error("can't read {path}: {cause}; is /proc mounted?")]
    Identity {
        /// The file.
        path: &'static str,
        /// The cause.
        cause: io::Error,
    },
    /// The calling thread is not in the network namespace in which the changes began.
    #[error("{0}: this thread is not in the network namespace of the earlier changes")]
    OtherNamespace(SettingRef),
    /// These changes have already been put back or kept.
    #[error("{0}: these changes are already put back or kept; begin new ones")]
    Closed(SettingRef),
}

impl SettingError {
    /// The same, for a change to `value` of which `part` is what failed.
    pub(crate) fn in_a_change_to(mut self, value: &str, part: &str) -> Self {
        if let Self::NotPermitted { operation, .. }
        | Self::Refused { operation, .. }
        | Self::NotReady { operation, .. }
        | Self::Io { operation, .. } = &mut self
        {
            *operation = format!("change it to {value:?} ({part})");
        }
        self
    }

    /// The setting of which the kernel did not take a value, if that is why, and nothing stayed changed.
    pub fn not_taken(&self) -> Option<&SettingRef> {
        match self {
            Self::NotEffective { setting, not_back: None, .. } | Self::Refused { setting, .. } => {
                Some(setting)
            }
            _ => None,
        }
    }

    /// Whether another run changes this host now, or somebody puts back here what a run left: later it may be possible.
    pub fn is_busy(&self) -> bool {
        matches!(
            self,
            Self::Busy { .. }
                | Self::BusyElsewhere { .. }
                | Self::GuardAtWork { .. }
                | Self::PutsBackBySsh { .. }
                | Self::Locked(_)
                | Self::InUse { .. }
                | Self::Held { .. }
        )
    }

    /// Whether a missing privilege is the reason, rather than anything else (exit code 3).
    pub fn not_permitted(&self) -> bool {
        match self {
            Self::NotPermitted { .. } | Self::NotForOthers { .. } => true,
            Self::Journal { cause, .. } | Self::List { cause, .. } => {
                cause.kind() == io::ErrorKind::PermissionDenied
            }
            _ => false,
        }
    }
}

/// Why a journal, or its directory, could not be kept.
pub(crate) fn of_journal(operation: &'static str, path: &Path, cause: io::Error) -> SettingError {
    of_lock(&cause).unwrap_or_else(|| SettingError::Journal { operation, path: path.into(), cause })
}

/// Why the list of all journals could not be kept.
pub(crate) fn of_list(operation: &'static str, path: &Path, cause: io::Error) -> SettingError {
    of_lock(&cause).unwrap_or_else(|| SettingError::List { operation, path: path.into(), cause })
}

/// The error if somebody else held a lock for too long: nothing is wrong with the directory then.
pub(crate) fn of_lock(cause: &io::Error) -> Option<SettingError> {
    let held = cause.get_ref()?.downcast_ref::<LockHeld>()?;
    Some(SettingError::Locked(held.to_string()))
}

/// The kernel's answer to an operation on the object `what` of `setting`.
pub(crate) fn from_io(
    setting: &SettingRef,
    operation: impl Into<String>,
    what: &str,
    cause: io::Error,
) -> SettingError {
    let errno = cause.raw_os_error();
    from_errno(setting, operation.into(), what, errno, cause.into())
}

/// The same for an error from netlink or an ethtool ioctl.
pub(crate) fn from_netlink(
    setting: &SettingRef,
    operation: impl Into<String>,
    what: &str,
    cause: NetlinkError,
) -> SettingError {
    let errno = cause.errno();
    from_errno(setting, operation.into(), what, errno, cause.into())
}

/// The one place where an errno gets its meaning (errno(3), netdevice(7)).
fn from_errno(
    setting: &SettingRef,
    operation: String,
    what: &str,
    errno: Option<i32>,
    cause: Box<dyn std::error::Error + Send + Sync>,
) -> SettingError {
    use libc::{EACCES, EINVAL, ENODEV, ENOENT, ENXIO, EOPNOTSUPP, EPERM, ERANGE, EROFS, ESRCH};
    let setting = setting.clone();
    match errno {
        Some(EPERM | EACCES) => {
            SettingError::NotPermitted { operation, needs: needed(&setting).lacking(), setting }
        }
        Some(EROFS) => SettingError::NotPermitted {
            operation,
            setting,
            needs: "a writable /proc/sys, which a container gets with --privileged".into(),
        },
        // `netif_device_present` of include/linux/netdevice.h, which net/ethtool and net/core check first.
        Some(ENODEV) if scope::is_there(&setting) => {
            SettingError::NotReady { operation, setting, cause }
        }
        Some(ENODEV | ENXIO | ENOENT | ESRCH) => SettingError::Gone { setting, what: what.into() },
        Some(EINVAL | ERANGE | EOPNOTSUPP) => SettingError::Refused { operation, setting, cause },
        _ => SettingError::Io { operation, setting, cause },
    }
}

/// What a change of a setting requires.
pub(crate) fn needed(setting: &SettingRef) -> Privilege {
    match ["cpu.", "irq."].iter().any(|area| setting.name.starts_with(area)) {
        true => Privilege::Files,
        false => Privilege::Network,
    }
}

fn now_is(not_back: &Option<Box<SettingError>>) -> String {
    match not_back {
        None => "put back".into(),
        Some(error) => format!("it could not be put back at once: {error}"),
    }
}

fn did_you_mean(nearest: &[String]) -> String {
    match nearest {
        [] => "; `goodput settings list` shows all".into(),
        some => format!("; did you mean {}?", some.join(" or ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(errno: i32) -> SettingError {
        let setting = "offload.tso@no-such-dev".parse().unwrap();
        from_io(&setting, "read it", "no-such-dev", io::Error::from_raw_os_error(errno))
    }

    #[test]
    fn a_missing_privilege_is_distinguished_from_everything_else() {
        for errno in [libc::EPERM, libc::EACCES, libc::EROFS] {
            assert!(said(errno).not_permitted(), "{errno}");
        }
        for errno in [libc::ENODEV, libc::EINVAL, libc::EOPNOTSUPP, libc::EIO, libc::ENOENT] {
            assert!(!said(errno).not_permitted(), "{errno}");
        }
    }

    #[test]
    fn a_value_that_the_kernel_does_not_take_is_distinguished_from_everything_else() {
        let not_effective = |not_back| {
            let setting = "offload.tso@eth0".parse().unwrap();
            let [asked, effective] = ["on", "off"].map(str::to_owned);
            SettingError::NotEffective { setting, asked, effective, not_back }
        };
        for not_taken in [said(libc::EINVAL), said(libc::EOPNOTSUPP), not_effective(None)] {
            assert!(not_taken.not_taken().is_some(), "{not_taken}");
        }
        let stays = not_effective(Some(Box::new(said(libc::EIO))));
        for other in [said(libc::EPERM), said(libc::ENODEV), said(libc::EIO), stays] {
            assert_eq!(other.not_taken(), None, "{other}");
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        let text = said(libc::EPERM).to_string();
        let needs = format!("not permitted to read it; it needs {}", Privilege::Network.lacking());
        assert!(text.contains(&needs), "{text}");
    }

    #[test]
    fn a_vanished_device_is_gone_and_a_bad_value_refused() {
        assert!(matches!(said(libc::ENODEV), SettingError::Gone { .. }));
        assert!(matches!(said(libc::EINVAL), SettingError::Refused { .. }));
        assert!(matches!(said(libc::EIO), SettingError::Io { .. }));
    }
}
