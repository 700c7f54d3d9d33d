//! What `goodput serve` gives up once its sockets are open, before it answers anyone.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::Result;
use goodput_sandbox::{Keep, User, check_open, enter};
use rustix::process::{Resource, Rlimit, geteuid, getrlimit, setrlimit};

use crate::args::ServeArgs;
use crate::authorized::Authorized;
use crate::screen;

/// Share of this host's memory that may be locked, as a divisor: what the flows of all measurements may
/// take together.
const LOCKED_DIVISOR: u64 = 4;

/// Becomes a process without privileges, unless the options keep it from that. What this kernel cannot
/// take away is a warning.
pub fn become_so(args: &ServeArgs, keys: Option<&Authorized>) -> Result<()> {
    if args.process.no_sandbox {
        return Ok(());
    }
    raise_locked_memory();
    let (user, mut lacks) = user(args)?;
    // While the directory can still be listed.
    let beside = keys.map_or_else(Vec::new, |keys| private_beside(keys.file()));
    let keep = Keep {
        user,
        read: args.files.files.clone().into_iter().collect(),
        open: keys.map(|keys| keys.directory().into()).into_iter().collect(),
        write: args.files.sinks.clone().into_iter().collect(),
        resolves_names: !args.clients.third_party.is_empty(),
    };
    lacks.extend(enter(&keep)?);
    lacks.extend(keys.and_then(|keys| stays_open(keys, &beside)));
    for lack in lacks {
        screen::say(format_args!("warning: {lack}"));
    }
    if let Some(keys) = keys {
        keys.check()?;
    }
    let closed = args.files.files.iter().map(|dir| check_open(dir, false));
    Ok(closed
        .chain(keep.write.iter().map(|dir| check_open(dir, true)))
        .collect::<Result<_, _>>()?)
}

/// The private files beside the list of keys, and whose they are. An editor gives the list another inode, so the server
/// can open whatever lies in its directory, as far as its user may.
fn private_beside(list: &Path) -> Vec<(PathBuf, u32)> {
    let around = list.parent().into_iter().filter_map(|directory| directory.read_dir().ok());
    let others = around.flatten().flatten().map(|entry| entry.path()).filter(|path| path != list);
    let private = others.filter_map(|path| {
        let found = path.symlink_metadata().ok()?;
        (found.mode() & 0o004 == 0).then(|| (path, found.uid()))
    });
    private.collect()
}

/// What the server can still open of these, in words.
fn stays_open(keys: &Authorized, beside: &[(PathBuf, u32)]) -> Option<String> {
    let ours = geteuid().as_raw();
    let (first, _) = beside.iter().find(|(_, owner)| *owner == ours)?;
    Some(format!(
        "the server can open {} and whatever else its user may in {}, where the list of keys lies; keep the \
         list in a directory of its own",
        first.display(),
        keys.directory().display()
    ))
}

/// Who to become, and why it is nobody else if root stays root.
fn user(args: &ServeArgs) -> Result<(Option<User>, Vec<String>)> {
    let user = User::choose(args.process.user.as_deref())?;
    let obstacle = user.as_ref().and_then(User::obstacle).filter(|_| args.process.user.is_none());
    match obstacle {
        Some(why) => {
            let lack = format!("{why}, so the server keeps running as root, without capabilities");
            Ok((None, vec![lack]))
        }
        None => Ok((user, Vec::new())),
    }
}

/// Lets an unprivileged server pin what MSG_ZEROCOPY sends and io_uring registers, which root may without
/// a limit (getrlimit(2), RLIMIT_MEMLOCK). Refused to all but root.
fn raise_locked_memory() {
    let system = rustix::system::sysinfo();
    let share = system.totalram as u64 * u64::from(system.mem_unit) / LOCKED_DIVISOR;
    let now = getrlimit(Resource::Memlock);
    // `None` is no limit.
    if now.current.is_some_and(|current| current < share) {
        let maximum = now.maximum.map(|maximum| maximum.max(share));
        let raised = Rlimit { current: Some(share), maximum };
        if let Err(cause) = setrlimit(Resource::Memlock, raised) {
            tracing::debug!("cannot raise the limit on locked memory: {cause}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn private_files_beside_the_list_of_keys_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, mode| {
            let file = folder.path().join(name);
            std::fs::write(&file, "").unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
            file
        };
        let list = file("authorized_keys", 0o644);
        file("notes", 0o644);
        let keys = Authorized::open(&list).unwrap();
        assert_eq!(stays_open(&keys, &private_beside(&list)), None);
        let secret = file("secret", 0o600);
        let said = stays_open(&keys, &private_beside(&list)).unwrap();
        assert!(said.contains(secret.to_str().unwrap()), "{said}");
        let of_others = [(secret, geteuid().as_raw() + 1)];
        assert_eq!(stays_open(&keys, &of_others), None);
    }
}
