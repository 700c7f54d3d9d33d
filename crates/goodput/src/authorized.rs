//! The clients that `serve --authorized-keys` knows: the file, read again whenever it has changed. A thread of its own
//! does this: a list of thousands of keys takes longer to read than the server's event loop may wait.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use goodput_wire::keys::{AuthorizedKeys, Clients};
use rustix::process::{Uid, geteuid};

use crate::secret_file;

/// How often the file is checked.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The file with the keys of clients.
pub struct Authorized {
    file: PathBuf,
    /// Who may write it, besides root: the user who started the server, even after the server changes its user.
    owner: Uid,
    /// The state of the file at the last read.
    stamp: Mutex<Option<FileStamp>>,
    clients: Clients,
}

/// Changes with every change of a file: device, inode, size, and both times of change in nanoseconds. The inode's own
/// time (ctime) also changes with owner and mode, and nobody can set it (inode(7)).
#[derive(Clone, Copy, PartialEq, Eq)]
struct FileStamp([i128; 5]);

impl Authorized {
    /// Reads the file for the first time.
    ///
    /// # Errors
    /// When it can't be used: a server must not start with fewer keys than its operator listed.
    pub fn open(file: &Path) -> Result<Self> {
        // Later reads use the directory's real path.
        let found = || format!("can't read the authorized keys {}", file.display());
        let file = file.canonicalize().with_context(found)?;
        let owner = geteuid();
        let stamp = Mutex::new(stamp(&file).ok());
        let clients = Clients::new(read(&file, owner)?);
        Ok(Self { file, owner, stamp, clients })
    }

    /// The clients in the file at the last check.
    pub fn clients(&self) -> &Clients {
        &self.clients
    }

    /// The file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The directory of the file.
    pub fn directory(&self) -> &Path {
        self.file.parent().unwrap_or(Path::new("/"))
    }

    /// Whether the server can still read it after it changed its user.
    ///
    /// # Errors
    /// When it can't.
    pub fn check(&self) -> Result<()> {
        let advice = "the server has dropped its privileges and reads this file again when it changes; the file has no secrets, so let everyone read it (chmod 644) and enter its directory";
        read(&self.file, self.owner).map(drop).context(advice)
    }

    /// Watches the file for the lifetime of this object.
    ///
    /// # Errors
    /// When a thread can't be created.
    pub fn watch(self: &Arc<Self>) -> Result<()> {
        let own = Arc::downgrade(self);
        let look = move || {
            while let Some(own) = own.upgrade() {
                own.refresh();
                drop(own);
                thread::sleep(POLL_INTERVAL);
            }
        };
        let started = thread::Builder::new().name("keys".into()).spawn(look);
        started.map(drop).context("can't start the thread that watches the authorized keys")
    }

    /// Reads the file again if it has changed. Logs why it can't be used, once for each state of the file.
    fn refresh(&self) {
        let mut last = self.stamp.lock().unwrap_or_else(PoisonError::into_inner);
        // Before the read: a change during the read is noticed the next time.
        let stamp = stamp(&self.file).ok();
        if *last == stamp {
            return;
        }
        let keys = read(&self.file, self.owner);
        match &keys {
            Ok(keys) => tracing::info!("{} clients are known by their keys", keys.len()),
            Err(why) => tracing::error!("no key is accepted until this is fixed: {why:#}"),
        }
        *last = stamp;
        self.clients.set(keys.ok());
    }
}

fn read(file: &Path, owner: Uid) -> Result<AuthorizedKeys> {
    let text = secret_file::read_trusted(file, "the authorized keys", owner)?;
    AuthorizedKeys::parse(&text).with_context(|| file.display().to_string())
}

fn stamp(file: &Path) -> std::io::Result<FileStamp> {
    let found = file.metadata()?;
    let nanoseconds =
        |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
    Ok(FileStamp([
        found.dev().into(),
        found.ino().into(),
        found.size().into(),
        nanoseconds(found.mtime(), found.mtime_nsec()),
        nanoseconds(found.ctime(), found.ctime_nsec()),
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_wire::keys::PrivateKey;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_file_that_changes_is_read_again_and_one_that_is_wrong_knows_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("keys");
        // By renaming, as editors do: the inode differs each time, however coarse the times are.
        let write = |text: &str| {
            let next = folder.path().join("next");
            std::fs::write(&next, text).unwrap();
            std::fs::rename(&next, &file).unwrap();
        };
        let line = |number: u8| {
            let public = PrivateKey::of([number; 32]).unwrap().public();
            format!("n{number} measure {public}\n")
        };
        write(&line(1));
        let keys = Authorized::open(&file).unwrap();
        let from = [192, 0, 2, 1].into();
        let is_known = |number: u8| {
            keys.refresh();
            let public = PrivateKey::of([number; 32]).unwrap().public();
            keys.clients().is_usable().then(|| keys.clients().find(&public, from).is_ok())
        };
        assert_eq!((is_known(1), is_known(2)), (Some(true), Some(false)));
        write(&[line(1), line(2)].concat());
        assert_eq!((is_known(1), is_known(2)), (Some(true), Some(true)));
        write("n1 measure");
        assert_eq!((is_known(1), is_known(1)), (None, None));
        write(&line(1));
        assert_eq!((is_known(1), is_known(2)), (Some(true), Some(false)));
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).unwrap();
        assert_eq!(is_known(1), None);
        std::fs::remove_file(&file).unwrap();
        assert_eq!(is_known(1), None);
        assert!(Authorized::open(&file).is_err() && keys.check().is_err());
    }

    #[test]
    fn a_file_is_watched_until_nobody_needs_it_any_more() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("keys");
        std::fs::write(&file, "").unwrap();
        let keys = Arc::new(Authorized::open(&file).unwrap());
        keys.watch().unwrap();
        let clients = keys.clients().clone();
        std::fs::remove_file(&file).unwrap();
        while clients.is_usable() {
            thread::sleep(Duration::from_millis(10));
        }
    }
}
