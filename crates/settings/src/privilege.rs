//! What a process lacks that may not read or change a setting, and what would give it.

use std::fs;

use rustix::process::geteuid;

/// What an operation needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Privilege {
    /// To change the network, and its sysctls.
    Network,
    /// To write files of root: network capabilities don't help.
    Files,
    /// To see /sys as the network namespace has it.
    Sysfs,
}

/// Who lacks it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holder {
    User,
    /// Root of a user namespace that is not the host's (user_namespaces(7)).
    RootOfNamespace,
    /// Root of the host, without the capability: in a container, or as a service.
    RootWithout,
    /// Root of the host, with the capability.
    Root,
}

/// The first line of /proc/self/uid_map in the host's own user namespace: each user is the same one outside.
const ALL_USERS: [&str; 3] = ["0", "0", "4294967295"];

impl Privilege {
    /// What this thread lacks, in words that end a sentence: "it needs …".
    pub(crate) fn lacking(self) -> String {
        let read = |file| fs::read_to_string(file).unwrap_or_default();
        let (users, status) = (read("/proc/self/uid_map"), read("/proc/thread-self/status"));
        self.lacked_by(self.holder(geteuid().is_root(), &users, &status))
    }

    /// What cannot be read is taken for the usual: the host's own users, and all capabilities for root.
    fn holder(self, is_root: bool, users: &str, status: &str) -> Holder {
        let users: Vec<_> = users.split_whitespace().collect();
        let is_of_host = users.is_empty() || users == ALL_USERS;
        match is_root {
            false => Holder::User,
            true if !is_of_host => Holder::RootOfNamespace,
            true if effective(status).is_some_and(|mask| mask & self.mask() != self.mask()) => {
                Holder::RootWithout
            }
            true => Holder::Root,
        }
    }

    fn lacked_by(self, holder: Holder) -> String {
        let (name, of_root) = match self {
            Self::Network => ("CAP_NET_ADMIN (for a sysctl: root)", "CAP_NET_ADMIN"),
            Self::Files => ("root", "CAP_DAC_OVERRIDE"),
            Self::Sysfs => (
                "CAP_NET_ADMIN, and CAP_SYS_ADMIN for a private view of /sys",
                "CAP_NET_ADMIN and CAP_SYS_ADMIN",
            ),
        };
        match holder {
            Holder::User => format!("{name}; run it with sudo"),
            Holder::RootOfNamespace => {
                "root of the host; here root is only root of a user namespace (a rootless container, unshare -r), so run \
                 it outside"
                    .into()
            }
            Holder::RootWithout => format!(
                "{of_root}, which root lacks here (a container or a service without it); grant it there, or run it outside"
            ),
            Holder::Root => format!(
                "more than {of_root}, which root has here; see what limits it (a security module, a container, lockdown)"
            ),
        }
    }

    /// Bits of the capabilities (linux/capability.h).
    fn mask(self) -> u64 {
        const DAC_OVERRIDE: u64 = 1 << 1;
        const NET_ADMIN: u64 = 1 << 12;
        const SYS_ADMIN: u64 = 1 << 21;
        match self {
            Self::Network => NET_ADMIN,
            Self::Files => DAC_OVERRIDE,
            Self::Sysfs => NET_ADMIN | SYS_ADMIN,
        }
    }
}

/// Whether this thread may change something of this host at all.
pub(crate) fn may_change_anything() -> bool {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    geteuid().is_root() || has_some(&status)
}

/// Whether this thread may change devices of this network namespace.
pub(crate) fn may_change_devices() -> bool {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    has_network(&status)
}

fn has_network(status: &str) -> bool {
    effective(status).is_none_or(|mask| mask & Privilege::Network.mask() != 0)
}

/// What can't be read is taken for a privilege: the change itself shows what is missing.
fn has_some(status: &str) -> bool {
    let all = Privilege::Network.mask() | Privilege::Files.mask();
    effective(status).is_none_or(|mask| mask & all != 0)
}

/// The capabilities in effect.
fn effective(status: &str) -> Option<u64> {
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(mask.trim(), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_without_capabilities_changes_nothing() {
        let may = |mask: &str| has_some(&format!("Name:\tx\nCapEff:\t{mask}\n"));
        assert!(!may("0000000000000000") && !may("0000000000000400"));
        assert!(may("0000000000001000") && may("000001ffffffffff"));
        assert!(has_some(""), "unknown");
        assert!(!has_network("CapEff:\t0000000000000002\n"), "files, and no devices");
        assert!(has_network("CapEff:\t0000000000001000\n") && has_network(""));
    }

    const HOST: &str = "         0          0 4294967295\n";

    #[test]
    fn root_is_not_told_to_become_root() {
        let network = |is_root, users, status| {
            Privilege::Network.lacked_by(Privilege::Network.holder(is_root, users, status))
        };
        let user = network(false, HOST, "CapEff:\t0000000000000000\n");
        assert_eq!(user, "CAP_NET_ADMIN (for a sysctl: root); run it with sudo");
        let all = "Name:\tx\nCapEff:\t000001ffffffffff\n";
        let in_namespace = network(true, "         0       1000          1\n", all);
        assert!(in_namespace.starts_with("root of the host; here root is"), "{in_namespace}");
        let without = network(true, HOST, "CapEff:\t00000000a80425fb\n");
        assert!(without.starts_with("CAP_NET_ADMIN, which root lacks here"), "{without}");
        for (users, status) in [(HOST, all), ("", "")] {
            let root = network(true, users, status);
            assert!(root.starts_with("more than CAP_NET_ADMIN"), "{root}");
        }
        let sysfs = Privilege::Sysfs;
        assert_eq!(sysfs.holder(true, HOST, "CapEff:\t0000000000001000\n"), Holder::RootWithout);
        assert_eq!(sysfs.holder(true, HOST, "CapEff:\t0000000000201000\n"), Holder::Root);
        assert_eq!(
            Privilege::Files.lacked_by(Holder::User),
            "root; run it with sudo",
            "network capabilities don't help with files of root"
        );
    }
}
