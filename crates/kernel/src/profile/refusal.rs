//! Why the kernel refuses perf events, and what permits them.

use std::io;

use goodput_model::Missing;

use crate::Root;

/// The file with the level from which on a capability is needed (Documentation/admin-guide/sysctl/kernel.rst).
const PARANOID: &str = "proc/sys/kernel/perf_event_paranoid";

/// Highest level at which everyone may sample the kernel's part of their own threads.
const PERMISSIVE: i32 = 1;

/// The reason in words, from the error of perf_event_open(2) or of mapping its buffer.
pub fn reason(cause: &io::Error) -> Missing {
    reason_at(&Root::default(), cause)
}

fn reason_at(root: &Root, cause: &io::Error) -> Missing {
    Missing::because(match cause.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => not_permitted(root, cause),
        Some(libc::ENOSYS) => {
            "the kernel has no perf events (CONFIG_PERF_EVENTS), or a container's system call filter hides them".into()
        }
        Some(libc::EINVAL) => format!(
            "the kernel refuses perf events: {cause}; kernel.perf_event_max_sample_rate may be too low (goodput asks for {} a \
             second)",
            super::SAMPLES_PER_S
        ),
        Some(libc::EMFILE | libc::ENFILE) => {
            format!("no descriptor is left for a perf event: {cause}; use fewer flows or raise ulimit -n")
        }
        _ => format!("the kernel refuses perf events: {cause}"),
    })
}

fn not_permitted(root: &Root, cause: &io::Error) -> String {
    let level = root.read(PARANOID).ok().and_then(|text| text.trim().parse::<i32>().ok());
    match level {
        Some(level) if level > PERMISSIVE => format!(
            "sampling the kernel's functions by perf events is not permitted: kernel.perf_event_paranoid is {level}; run goodput as \
             root, give it CAP_PERFMON (setcap cap_perfmon=ep), or set the sysctl to {PERMISSIVE}"
        ),
        Some(_) => format!(
            "perf events are refused although kernel.perf_event_paranoid permits them: {cause}; a container's system call \
             filter, a security module or ulimit -l may be the reason"
        ),
        None => format!(
            "perf events are not permitted: {cause}; run goodput as root, or give it CAP_PERFMON"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_level(level: &str, errno: i32) -> String {
        let host = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(host.path().join("proc/sys/kernel")).unwrap();
        std::fs::write(host.path().join(PARANOID), level).unwrap();
        let cause = io::Error::from_raw_os_error(errno);
        reason_at(&Root::at(host.path()), &cause).missing.into_owned()
    }

    #[test]
    fn the_reason_names_the_level_and_what_permits() {
        let strict = at_level("4\n", libc::EACCES);
        assert!(strict.contains("perf_event_paranoid is 4"), "{strict}");
        assert!(strict.contains("CAP_PERFMON") && strict.contains("sysctl to 1"), "{strict}");
        let filtered = at_level("1\n", libc::EPERM);
        assert!(filtered.contains("system call filter"), "{filtered}");
        assert!(at_level("-1\n", libc::ENOSYS).contains("CONFIG_PERF_EVENTS"));
        assert!(at_level("2\n", libc::EMFILE).contains("ulimit -n"));
        assert!(at_level("2\n", libc::EINVAL).starts_with("the kernel refuses perf events: "));
    }

    #[test]
    fn an_unknown_level_is_not_made_up() {
        let nowhere = Root::at("/nonexistent");
        let why = reason_at(&nowhere, &io::Error::from_raw_os_error(libc::EPERM));
        assert!(!why.missing.contains("paranoid"), "{why}");
    }
}
