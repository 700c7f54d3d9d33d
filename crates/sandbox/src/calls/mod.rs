//! The system calls that the process can still make (seccomp(2)).
//!
//! Any other call fails with EPERM: a library that probes the kernel's features then takes its usual fallback, and no
//! measurement dies. Operations of io_uring are not filtered here; user, capabilities and Landlock still apply to
//! them.

mod conditions;
mod listed;

use std::collections::BTreeMap;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompFilter, SeccompRule, TargetArch, apply_filter,
};

use crate::Keep;
use crate::error::SandboxError;

/// The operation, for errors.
const WHAT: &str = "restrict the system calls of this process";

/// Restricts this thread, and the threads that it starts, to the listed calls. If this processor or kernel can't
/// filter calls, returns a message.
pub(crate) fn restrict(keep: &Keep) -> Result<Option<String>, SandboxError> {
    let Ok(processor) = TargetArch::try_from(std::env::consts::ARCH) else {
        return Ok(Some("system calls are not restricted: unknown on this processor".into()));
    };
    let allowed = allowed(processor, keep).map_err(SandboxError::of(WHAT))?;
    let absent = absent(processor).map_err(SandboxError::of(WHAT))?;
    // Installing a filter needs a call that the second one refuses.
    for program in [absent, allowed] {
        match apply_filter(&program) {
            Ok(()) => {}
            Err(seccompiler::Error::Seccomp(cause)) if is_without_filters(&cause) => {
                return Ok(Some(
                    "this kernel has no seccomp filters, so the server may make every system call"
                        .into(),
                ));
            }
            Err(cause) => return Err(SandboxError::of(WHAT)(cause)),
        }
    }
    Ok(None)
}

/// EINVAL: built without CONFIG_SECCOMP_FILTER; ENOSYS: older than Linux 3.17 (seccomp(2)).
fn is_without_filters(cause: &std::io::Error) -> bool {
    matches!(cause.raw_os_error(), Some(libc::EINVAL | libc::ENOSYS))
}

fn allowed(processor: TargetArch, keep: &Keep) -> Result<BpfProgram, BackendError> {
    let always = listed::GROUPS.iter().copied().flatten();
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        always.map(|call| (*call, Vec::new())).collect();
    rules.extend(conditions::all(keep)?);
    // The other filter refuses it with another error.
    rules.insert(libc::SYS_clone3, Vec::new());
    let refused = SeccompAction::Errno(libc::EPERM.cast_unsigned());
    SeccompFilter::new(rules, refused, SeccompAction::Allow, processor)?.try_into()
}

/// clone3(2), whose flags are in memory that a filter can't read, is hidden from this process: the C library then
/// uses clone(2).
fn absent(processor: TargetArch) -> Result<BpfProgram, BackendError> {
    let rules = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    let missing = SeccompAction::Errno(libc::ENOSYS.cast_unsigned());
    SeccompFilter::new(rules, SeccompAction::Allow, missing, processor)?.try_into()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_filters_can_be_made_for_every_processor_that_is_known() {
        for processor in [TargetArch::x86_64, TargetArch::aarch64, TargetArch::riscv64] {
            for (resolves_names, terminal) in [(false, false), (true, true)] {
                let keep = Keep { resolves_names, terminal, ..Keep::default() };
                let program = allowed(processor, &keep).expect("it is well formed");
                // BPF_MAXINSNS, include/uapi/linux/bpf_common.h.
                assert!(program.len() < 4096, "{}", program.len());
            }
            absent(processor).expect("it is well formed");
        }
    }

    #[test]
    fn a_call_is_listed_once() {
        let conditions = conditions::all(&Keep::default()).expect("they are well formed");
        let conditioned = conditions.iter().map(|(call, _)| call);
        let mut seen = BTreeSet::new();
        for call in listed::GROUPS.iter().copied().flatten().chain(conditioned) {
            assert!(seen.insert(call), "call {call} is listed twice");
        }
    }

    #[test]
    fn nothing_that_changes_the_machine_is_listed() {
        let dangerous = [
            libc::SYS_execve,
            libc::SYS_execveat,
            libc::SYS_ptrace,
            libc::SYS_mount,
            libc::SYS_unshare,
            libc::SYS_setns,
            libc::SYS_bpf,
            libc::SYS_perf_event_open,
            libc::SYS_setuid,
            libc::SYS_capset,
            libc::SYS_keyctl,
            libc::SYS_init_module,
            libc::SYS_process_vm_writev,
            libc::SYS_clone3,
            libc::SYS_kill,
        ];
        let listed: Vec<_> = listed::GROUPS.iter().copied().flatten().collect();
        for call in dangerous {
            assert!(!listed.contains(&&call), "{call}");
        }
    }
}
