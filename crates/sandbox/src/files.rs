//! The files that the process can still reach (Landlock, <https://docs.kernel.org/userspace-api/landlock.html>).
//!
//! The rights of the user hold as well: Landlock takes away and never gives.

use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, BitFlags, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};

use crate::Keep;
use crate::error::SandboxError;

/// The newest version whose rights are known here, Linux 6.12. Of an older kernel, what it has is taken.
const KNOWN: ABI = ABI::V6;

/// What the kernel reports of this host.
const FACTS: [&str; 2] = ["/proc", "/sys"];
/// A sink that keeps nothing, and the source of `splice` into nothing.
const NULL: &str = "/dev/null";
/// Where the C library looks up names (resolv.conf(5), nsswitch.conf(5), nss(5)). The configuration of
/// some systems is a link to `/run`. A name service is a library.
const NAMES: [&str; 6] = ["/etc", "/run", "/lib", "/lib64", "/usr/lib", "/usr/lib64"];

/// Leaves these files; of a kernel without Landlock, or with an older one, what stays possible is
/// returned in words.
pub(crate) fn restrict(keep: &Keep) -> Result<Option<String>, SandboxError> {
    let status = ruleset(keep).and_then(RulesetCreated::restrict_self);
    let status = status.map_err(SandboxError::of("restrict the files of this process"))?;
    Ok(match status.ruleset {
        RulesetStatus::FullyEnforced => None,
        RulesetStatus::PartiallyEnforced => Some(
            "this kernel has an older Landlock, which restricts some uses of files less".into(),
        ),
        RulesetStatus::NotEnforced => Some(
            "this kernel has no Landlock, so every file that the user may open stays open to the server"
                .into(),
        ),
    })
}

fn ruleset(keep: &Keep) -> Result<RulesetCreated, RulesetError> {
    let (read, write) = (reading(), writing());
    let mut rules = Ruleset::default()
        .handle_access(AccessFs::from_all(KNOWN))?
        .scope(Scope::from_all(KNOWN))?
        .create()?;
    for path in FACTS {
        rules = beneath(rules, path.as_ref(), read)?;
    }
    rules = beneath(rules, NULL.as_ref(), AccessFs::ReadFile | AccessFs::WriteFile)?;
    for path in NAMES.iter().filter(|_| keep.resolves_names) {
        rules = beneath(rules, path.as_ref(), read)?;
    }
    for path in &keep.read {
        rules = beneath(rules, path, read)?;
    }
    for path in &keep.open {
        rules = beneath(rules, path, AccessFs::ReadFile.into())?;
    }
    for path in &keep.write {
        rules = beneath(rules, path, write)?;
    }
    Ok(rules)
}

fn reading() -> BitFlags<AccessFs> {
    AccessFs::ReadFile | AccessFs::ReadDir
}

/// A directory in which regular files are made, emptied and written; none is removed or renamed.
fn writing() -> BitFlags<AccessFs> {
    reading() | AccessFs::WriteFile | AccessFs::MakeReg | AccessFs::Truncate
}

/// A rule for what lies beneath a path, if there is such a path.
fn beneath(
    rules: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    match PathFd::new(path) {
        Ok(open) => rules.add_rule(PathBeneath::new(open, access)),
        // What is not there needs no right.
        Err(_) => Ok(rules),
    }
}
