//! The files that the process can still reach (Landlock, <https://docs.kernel.org/userspace-api/landlock.html>).
//!
//! The user's rights still apply: Landlock only removes rights.

use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, BitFlags, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};

use crate::Keep;
use crate::error::SandboxError;

/// The newest version whose rights are known here, Linux 6.12. An older kernel applies the rights that it knows.
const KNOWN: ABI = ABI::V6;

/// The kernel's facts about this host.
const FACTS: [&str; 2] = ["/proc", "/sys"];
/// A sink that discards everything, and the source of `splice` into nothing.
const NULL: &str = "/dev/null";
/// Files that the C library uses to look up names (resolv.conf(5), nsswitch.conf(5), nss(5)). On some systems the
/// configuration is a link to `/run`. A name service is a library.
const NAMES: [&str; 6] = ["/etc", "/run", "/lib", "/lib64", "/usr/lib", "/usr/lib64"];

/// Restricts access to these files. Without Landlock, or with an older version of it, returns a message about the
/// remaining access.
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

/// A directory in which regular files are made, truncated and written; none is removed or renamed.
fn writing() -> BitFlags<AccessFs> {
    reading() | AccessFs::WriteFile | AccessFs::MakeReg | AccessFs::Truncate
}

/// A rule for everything beneath a path, if the path exists.
fn beneath(
    rules: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    match PathFd::new(path) {
        Ok(open) => rules.add_rule(PathBeneath::new(open, access)),
        // A missing path needs no right.
        Err(_) => Ok(rules),
    }
}
