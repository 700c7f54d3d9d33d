//! The clients that `serve --authorized-keys` knows: the file, read again whenever it has changed.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use goodput_wire::keys::AuthorizedKeys;
use rustix::process::{Uid, geteuid};

use crate::secret_file;

/// The file with the keys of clients.
pub struct Authorized {
    file: PathBuf,
    /// Who may write it, beside root: whoever started the server, whoever it becomes.
    owner: Uid,
    read: Mutex<Read>,
}

/// What was read, and of which state of the file.
struct Read {
    stamp: Option<Stamp>,
    /// `None`: it could not be used.
    keys: Option<Arc<AuthorizedKeys>>,
}

/// Changes with every change of a file: device, inode, size, and both times of change in nanoseconds. The
/// inode's own (ctime) changes with owner and mode, too, and nobody can set it (inode(7)).
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp([i128; 5]);

impl Authorized {
    /// Reads the file for the first time.
    ///
    /// # Errors
    /// When it cannot be used: a server is not to begin with less than its operator has said.
    pub fn open(file: &Path) -> Result<Self> {
        // Later it is reached by the directory that it really lies in.
        let found = || format!("cannot read the authorized keys {}", file.display());
        let file = file.canonicalize().with_context(found)?;
        let owner = geteuid();
        let stamp = stamp(&file).ok();
        let keys = Some(Arc::new(read(&file, owner)?));
        Ok(Self { file, owner, read: Mutex::new(Read { stamp, keys }) })
    }

    /// The directory of the file.
    pub fn directory(&self) -> &Path {
        self.file.parent().unwrap_or(Path::new("/"))
    }

    /// Whether it can still be read, as whoever the server has become.
    ///
    /// # Errors
    /// When it can't.
    pub fn check(&self) -> Result<()> {
        let advice = "the server has given up its privileges and reads this file again when it changes; it \
                      has no secrets, so let everybody read it (chmod 644), and enter its directory";
        read(&self.file, self.owner).map(drop).context(advice)
    }

    /// The clients as the file has them now; `None` if it cannot be used. Why is in the log, once for each
    /// state of the file.
    pub fn now(&self) -> Option<Arc<AuthorizedKeys>> {
        let mut last = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = stamp(&self.file).ok();
        if last.stamp != stamp {
            let keys = read(&self.file, self.owner);
            match &keys {
                Ok(keys) => tracing::info!("{} clients are known by their keys now", keys.len()),
                Err(why) => tracing::error!("no key is taken until this is mended: {why:#}"),
            }
            *last = Read { stamp, keys: keys.ok().map(Arc::new) };
        }
        last.keys.clone()
    }
}

fn read(file: &Path, owner: Uid) -> Result<AuthorizedKeys> {
    let text = secret_file::read_trusted(file, "the authorized keys", owner)?;
    AuthorizedKeys::parse(&text).with_context(|| file.display().to_string())
}

fn stamp(file: &Path) -> std::io::Result<Stamp> {
    let found = file.metadata()?;
    let nanoseconds =
        |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
    Ok(Stamp([
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
        // By renaming, as editors do it: the inode is another one each time, however coarse its times are.
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
        let known = || keys.now().map(|keys| keys.len());
        assert_eq!(known(), Some(1));
        write(&[line(1), line(2)].concat());
        assert_eq!(known(), Some(2));
        write("n1 measure");
        assert_eq!((known(), known()), (None, None));
        write(&line(1));
        assert_eq!(known(), Some(1));
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).unwrap();
        assert_eq!(known(), None);
        std::fs::remove_file(&file).unwrap();
        assert_eq!(known(), None);
        assert!(Authorized::open(&file).is_err() && keys.check().is_err());
    }
}
