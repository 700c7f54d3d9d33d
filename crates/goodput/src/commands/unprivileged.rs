//! The privileges that `goodput serve` drops after opening its sockets and before answering anyone.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::Result;
use goodput_sandbox::{Keep, User, check_open, enter};
use goodput_wire::keys::KeyFile;
use rustix::fs::{Mode, OFlags};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::args::ServeArgs;
use crate::authorized::Authorized;
use crate::{screen, secret_file};

/// Longest private key of goodput, bytes; longer files are something else.
const LONGEST_KEY_BYTES: u64 = 4096;

/// Share of this host's memory that may be locked, as a divisor: a limit for the flows of all measurements together.
const LOCKED_DIVISOR: u64 = 4;

/// Drops this process's privileges, unless the options prevent it. Warns of privileges that this kernel can't drop.
pub fn become_so(args: &ServeArgs, keys: Option<&Authorized>) -> Result<()> {
    // While the directory can still be listed.
    let beside = keys.map_or_else(Vec::new, |keys| beside(keys.file()));
    beside.iter().try_for_each(|file| check_key(file))?;
    if args.process.no_sandbox {
        return Ok(());
    }
    raise_locked_memory();
    let (user, mut lacks) = user(args)?;
    let keep = Keep {
        user,
        read: args.files.files.clone().into_iter().collect(),
        open: keys.map(|keys| keys.directory().into()).into_iter().collect(),
        write: args.files.sinks.clone().into_iter().collect(),
        resolves_names: !args.clients.third_party.is_empty(),
        terminal: args.format.live,
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

/// The files beside the list of keys. An editor gives the list a new inode, so the server can open every file in its
/// directory that its user may open.
fn beside(list: &Path) -> Vec<PathBuf> {
    let around = list.parent().into_iter().filter_map(|directory| directory.read_dir().ok());
    around.flatten().flatten().map(|entry| entry.path()).filter(|path| path != list).collect()
}

/// Refuses a private key of goodput that others than its owner can reach, as everywhere else. The content identifies
/// such a file.
fn check_key(path: &Path) -> Result<()> {
    let is_file = path.symlink_metadata().is_ok_and(|found| found.is_file());
    let Some(file) = is_file.then(|| File::open(path).ok()).flatten() else { return Ok(()) };
    let mut text = String::new();
    // A file that isn't text or can't be read is not a usable key.
    let read = (&file).take(LONGEST_KEY_BYTES).read_to_string(&mut text);
    match read.is_ok() && KeyFile::parse(&text).is_ok() {
        true => secret_file::check_mode(&file.metadata()?, path, "the private key"),
        false => Ok(()),
    }
}

/// Which of these files the server can still open although not everyone can. Checked as the present user: user, groups
/// and access lists decide.
fn stays_open(keys: &Authorized, beside: &[PathBuf]) -> Option<String> {
    let is_private = |path: &Path| {
        let found = path.symlink_metadata();
        found.is_ok_and(|it| (it.is_file() || it.is_dir()) && it.mode() & 0o004 == 0)
    };
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opens = |path: &Path| rustix::fs::open(path, flags, Mode::empty()).is_ok();
    let first = beside.iter().find(|path| is_private(path) && opens(path))?;
    Some(format!(
        "the server can open {} and whatever else its user may in {}, where the list of keys lies; keep the \
         list in a directory of its own",
        first.display(),
        keys.directory().display()
    ))
}

/// The user to become, and if root stays root, why.
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

/// Lets an unprivileged server pin memory for MSG_ZEROCOPY and io_uring, which root may do without a limit
/// (getrlimit(2), RLIMIT_MEMLOCK). Only root may do this.
fn raise_locked_memory() {
    let system = rustix::system::sysinfo();
    let share = system.totalram as u64 * u64::from(system.mem_unit) / LOCKED_DIVISOR;
    let now = getrlimit(Resource::Memlock);
    // `None` means no limit.
    if now.current.is_some_and(|current| current < share) {
        let maximum = now.maximum.map(|maximum| maximum.max(share));
        let raised = Rlimit { current: Some(share), maximum };
        if let Err(cause) = setrlimit(Resource::Memlock, raised) {
            tracing::debug!("can't raise the limit on locked memory: {cause}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn file(folder: &Path, name: &str, text: &str, mode: u32) -> PathBuf {
        let file = folder.join(name);
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        file
    }

    #[test]
    fn private_files_beside_the_list_of_keys_are_named() {
        for mode in [0o600, 0o640, 0o660] {
            let folder = tempfile::tempdir().unwrap();
            let list = file(folder.path(), "authorized_keys", "", 0o644);
            file(folder.path(), "notes", "", 0o644);
            let keys = Authorized::open(&list).unwrap();
            assert_eq!(stays_open(&keys, &beside(&list)), None);
            let secret = file(folder.path(), "secret", "", mode);
            let said = stays_open(&keys, &beside(&list)).unwrap();
            assert!(said.contains(secret.to_str().unwrap()), "{said}");
        }
    }

    #[test]
    fn what_the_server_may_not_open_is_no_matter() {
        let folder = tempfile::tempdir().unwrap();
        let list = file(folder.path(), "authorized_keys", "", 0o644);
        let shut = file(folder.path(), "shut", "", 0o000);
        let said = stays_open(&Authorized::open(&list).unwrap(), &beside(&list));
        // Root can open every file.
        assert_eq!(said.is_none(), File::open(shut).is_err());
    }

    #[test]
    fn a_private_key_that_others_can_reach_is_refused_beside_the_list_too() {
        let folder = tempfile::tempdir().unwrap();
        let list = file(folder.path(), "authorized_keys", "", 0o644);
        let key = KeyFile::new("me", [7; 32]).unwrap().to_text();
        let check = || beside(&list).iter().try_for_each(|file| check_key(file));
        for (mode, good) in [(0o600, true), (0o640, false), (0o644, false), (0o604, false)] {
            file(folder.path(), "key", &key, mode);
            let checked = check();
            assert_eq!(checked.is_ok(), good, "{mode:o}");
            if let Err(why) = checked {
                assert!(why.to_string().contains("chmod 600"), "{why}");
            }
        }
        file(folder.path(), "key", "no key", 0o644);
        assert!(check().is_ok());
    }
}
