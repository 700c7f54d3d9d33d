//! Why the system refuses a user namespace, and what the user can do about it.

use std::fs;
use std::io;

use rustix::io::Errno;

use crate::error::LabError;

/// What to do if no switch explains the refusal.
const AS_ROOT: &str = "run as root";

/// The kernel's switches that can forbid user namespaces; `None` if this kernel does not have the switch.
#[derive(Debug, Default)]
pub(super) struct Switches {
    /// `kernel.unprivileged_userns_clone`, of Debian's and Arch's kernels.
    clone: Option<u64>,
    /// `kernel.apparmor_restrict_unprivileged_userns`, of Ubuntu's kernels and Linux 6.7.
    apparmor: Option<u64>,
    /// `user.max_user_namespaces`, namespaces(7).
    most: Option<u64>,
}

impl Switches {
    pub(super) fn read() -> Self {
        let read =
            |name: &str| fs::read_to_string(format!("/proc/sys/{name}")).ok()?.trim().parse().ok();
        Self {
            clone: read("kernel/unprivileged_userns_clone"),
            apparmor: read("kernel/apparmor_restrict_unprivileged_userns"),
            most: read("user/max_user_namespaces"),
        }
    }

    /// The switch that forbids it, and the setting that would allow it.
    fn forbidding(&self) -> Option<(&'static str, &'static str)> {
        if self.most == Some(0) {
            return Some(("user.max_user_namespaces = 0", "user.max_user_namespaces=1000"));
        }
        if self.clone == Some(0) {
            let name = "kernel.unprivileged_userns_clone = 0";
            return Some((name, "kernel.unprivileged_userns_clone=1"));
        }
        if self.apparmor == Some(1) {
            let name = "kernel.apparmor_restrict_unprivileged_userns = 1";
            return Some((name, "kernel.apparmor_restrict_unprivileged_userns=0"));
        }
        None
    }

    fn explain(&self, otherwise: String) -> LabError {
        let (why, remedy) = match self.forbidding() {
            Some((switch, allowing)) => (
                format!("{switch} forbids user namespaces to ordinary users"),
                format!("{AS_ROOT}, or let root allow it with: sysctl -w {allowing}"),
            ),
            None => (otherwise, AS_ROOT.into()),
        };
        LabError::Forbidden { why, remedy }
    }
}

/// Explains a refused `unshare`, by the errors of unshare(2).
pub(super) fn of_unshare(errno: Errno, switches: &Switches) -> LabError {
    switches.explain(match errno {
        Errno::PERM => "user namespaces are not permitted here (EPERM): a container's seccomp filter, a security module or a chroot forbids them"
            .into(),
        Errno::NOSPC | Errno::USERS => "the limit of user namespaces is reached".into(),
        Errno::INVAL | Errno::NOSYS => "this kernel has no user namespaces (CONFIG_USER_NS)".into(),
        other => format!("unshare failed: {other}"),
    })
}

/// Explains why the namespace was made but gives no rights.
pub(super) fn of_mapping(error: &io::Error, switches: &Switches) -> LabError {
    switches.explain(format!(
        "the user namespace was made, but becoming root in it was refused ({error}), probably by a security module"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_switch_that_forbids_is_named_with_its_remedy() {
        let cases = [
            (Switches { most: Some(0), ..Switches::default() }, "user.max_user_namespaces=1000"),
            (Switches { clone: Some(0), ..Switches::default() }, "userns_clone=1"),
            (Switches { apparmor: Some(1), ..Switches::default() }, "unprivileged_userns=0"),
        ];
        for (switches, remedy) in cases {
            let error = of_unshare(Errno::PERM, &switches).to_string();
            assert!(error.contains(remedy), "{error}");
            assert!(error.contains("run as root"), "{error}");
        }
    }

    #[test]
    fn without_a_switch_the_likely_cause_is_named() {
        let open = Switches { clone: Some(1), apparmor: Some(0), most: Some(9) };
        assert!(of_unshare(Errno::PERM, &open).to_string().contains("seccomp"));
        assert!(of_unshare(Errno::INVAL, &open).to_string().contains("CONFIG_USER_NS"));
        assert!(of_unshare(Errno::NOSPC, &open).to_string().contains("limit"));
        let denied = io::Error::from(io::ErrorKind::PermissionDenied);
        assert!(of_mapping(&denied, &open).to_string().contains("becoming root"));
    }
}
