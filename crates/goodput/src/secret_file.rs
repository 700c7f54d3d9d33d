//! Files with secrets, read only if nobody else can read them; and files that define whom to trust, read only if
//! nobody else can write them.

use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Uid, geteuid};

use crate::screen;

/// Largest size of such a file, bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// How long to wait for a pipe before the user gets a message.
const NOTICE_DELAY: Duration = Duration::from_secs(1);

/// Names the directory with the credentials of a service (systemd.exec(5)).
const CREDENTIALS: &str = "CREDENTIALS_DIRECTORY";

/// Reads a file with a secret, `what`. Refuses a file that others than its owner can reach, or that belongs to another
/// user, who may have read or chosen the secret.
pub fn read(file: &Path, what: &str) -> Result<String> {
    let shown = file.display();
    let failed = || format!("can't read {what} {shown}");
    patiently(file, what, || {
        let opened = File::open(file).with_context(failed)?;
        // Checks the opened file, which a rename can no longer replace.
        check(&opened.metadata().with_context(failed)?, file, what)?;
        whole(opened, file, what)
    })
}

/// Reads a file that defines whom to trust, `what`. Refuses a file that others than `owner` and root can write or
/// replace. It contains no secrets, so everyone may read it.
pub fn read_trusted(file: &Path, what: &str, owner: Uid) -> Result<String> {
    let shown = file.display();
    let failed = || format!("can't read {what} {shown}");
    let opened = patiently(file, what, || File::open(file)).with_context(failed)?;
    only_ours_to_write(&opened.metadata().with_context(failed)?, file, what, owner)?;
    let around = file.parent().filter(|around| !around.as_os_str().is_empty());
    let around = around.unwrap_or(Path::new("."));
    let found = around.metadata().with_context(failed)?;
    // In a directory like /tmp nobody can remove other users' files (S_ISVTX, inode(7)).
    if found.mode() & 0o1000 == 0 {
        only_ours_to_write(&found, around, "the directory", owner).with_context(failed)?;
    }
    patiently(file, what, || whole(opened, file, what))
}

/// Reads a file without secrets or trust, `what`.
pub fn read_open(file: &Path, what: &str) -> Result<String> {
    let failed = || format!("can't read {what} {}", file.display());
    patiently(file, what, || whole(File::open(file).with_context(failed)?, file, what))
}

/// Does `work`, which reads `file`. A pipe may block for any time, so after a second the user learns what goodput
/// waits for.
fn patiently<T>(file: &Path, what: &str, work: impl FnOnce() -> T) -> T {
    if file.metadata().is_ok_and(|found| found.is_file()) {
        return work();
    }
    let (done, awaited) = mpsc::channel::<()>();
    let said = format!("waiting for {what} from {}, which is a pipe", file.display());
    let wait = move || {
        if awaited.recv_timeout(NOTICE_DELAY) == Err(RecvTimeoutError::Timeout) {
            screen::say(said);
        }
    };
    // Without a thread, it waits silently.
    let notice = std::thread::Builder::new().name("notice".into()).spawn(wait).ok();
    let outcome = work();
    drop(done);
    // A process that drops its privileges later must be single-threaded.
    notice.map(std::thread::JoinHandle::join);
    outcome
}

/// The whole file: a truncated list could leave restrictions out.
fn whole(opened: File, file: &Path, what: &str) -> Result<String> {
    let mut text = String::new();
    let failed = || format!("can't read {what} {}", file.display());
    opened.take(MAX_FILE_BYTES + 1).read_to_string(&mut text).with_context(failed)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        bail!("{what} {} is longer than {} bytes, the maximum", file.display(), MAX_FILE_BYTES);
    }
    Ok(text)
}

fn only_ours_to_write(found: &Metadata, file: &Path, what: &str, us: Uid) -> Result<()> {
    let shown = file.display();
    let (mode, owner) = (found.mode() & 0o7777, found.uid());
    if (found.is_file() || found.is_dir()) && mode & 0o022 != 0 {
        bail!("others can write to {what} {shown} (mode {mode:04o}); run `chmod go-w {shown}`");
    }
    if owner != us.as_raw() && owner != 0 {
        bail!(
            "{what} {shown} belongs to user {owner}, who can change it; run `chown root {shown}`"
        );
    }
    Ok(())
}

/// Refuses a file with a secret, `what`, whose mode lets others than its owner reach it.
pub fn check_mode(found: &Metadata, file: &Path, what: &str) -> Result<()> {
    let (shown, mode) = (file.display(), found.mode() & 0o7777);
    // A pipe, such as a shell's <(…), has no name that others could open.
    let reachable = found.is_file() && mode & 0o077 != 0;
    if reachable && !is_credential(found, file) {
        bail!("others can access {what} {shown} (mode {mode:04o}); run `chmod 600 {shown}`");
    }
    Ok(())
}

fn check(found: &Metadata, file: &Path, what: &str) -> Result<()> {
    check_mode(found, file, what)?;
    let (shown, owner) = (file.display(), found.uid());
    if owner != geteuid().as_raw() && owner != 0 {
        bail!(
            "{what} {shown} belongs to user {owner}, who can read and replace it; make a copy of your \
             own and run `chmod 600` on it"
        );
    }
    Ok(())
}

/// Whether systemd has put the file there for this service alone (systemd.exec(5), `LoadCredential=`). Such a file has
/// mode 0440 because an ACL lets the service's user read it: the group bits are then the ACL's mask (acl(5)). Its
/// directory is closed to everyone else.
fn is_credential(found: &Metadata, file: &Path) -> bool {
    std::env::var_os(CREDENTIALS)
        .is_some_and(|directory| lies_in(found, file, Path::new(&directory)))
}

fn lies_in(found: &Metadata, file: &Path, directory: &Path) -> bool {
    let (Ok(file), Ok(directory)) = (file.canonicalize(), directory.canonicalize()) else {
        return false;
    };
    let Ok(around) = directory.metadata() else { return false };
    let closed = |metadata: &Metadata| {
        let owner = metadata.uid();
        metadata.mode() & 0o027 == 0 && (owner == 0 || owner == geteuid().as_raw())
    };
    file.parent() == Some(&directory) && closed(&around) && closed(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, chown};

    #[test]
    fn only_a_file_of_ones_own_that_nobody_else_can_reach_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        std::fs::write(&file, "secret").unwrap();
        for (mode, good) in
            [(0o600, true), (0o400, true), (0o640, false), (0o604, false), (0o620, false)]
        {
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
            let read = read(&file, "the token");
            assert_eq!(read.is_ok(), good, "{mode:o}");
            if let Err(why) = read {
                assert!(why.to_string().contains("chmod 600"), "{why}");
            }
        }
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        // Only root can give a file away; other users can't run this part.
        if chown(&file, Some(65_534), None).is_ok() {
            let why = read(&file, "the token").unwrap_err().to_string();
            assert!(why.contains("user 65534") && why.contains("chmod 600"), "{why}");
        }
    }

    #[test]
    fn a_credential_of_systemd_is_read_only_from_its_closed_directory() {
        let folder = tempfile::tempdir().unwrap();
        let mode = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        let (inside, file) = (folder.path().join("inside"), folder.path().join("inside/token"));
        std::fs::create_dir(&inside).unwrap();
        std::fs::write(&file, "secret").unwrap();
        let lies_in = |directory: &Path| lies_in(&file.metadata().unwrap(), &file, directory);
        // Like systemd's files: the service's user reads them through an ACL, whose mask is the group bits.
        for (directory_mode, file_mode, good) in [
            (0o550, 0o440, true),
            (0o500, 0o400, true),
            (0o550, 0o444, false),
            (0o550, 0o460, false),
            (0o555, 0o440, false),
            (0o770, 0o440, false),
        ] {
            mode(&file, file_mode);
            mode(&inside, directory_mode);
            assert_eq!(lies_in(&inside), good, "{directory_mode:o} {file_mode:o}");
            assert!(!lies_in(folder.path()), "it lies deeper");
            mode(&inside, 0o700);
        }
    }

    #[test]
    fn a_list_that_is_too_long_is_refused_instead_of_cut() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("keys");
        std::fs::write(&file, "a".repeat(MAX_FILE_BYTES as usize + 1)).unwrap();
        let why = read_trusted(&file, "the keys", geteuid()).unwrap_err().to_string();
        assert!(why.contains("longer than 1048576 bytes"), "{why}");
    }

    #[test]
    fn who_may_be_trusted_is_read_from_files_that_nobody_else_can_write() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("keys");
        std::fs::write(&file, "list").unwrap();
        let set = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        let read = || read_trusted(&file, "the keys", geteuid());
        for (around, mode, good) in [
            (0o755, 0o644, true),
            (0o700, 0o600, true),
            (0o1777, 0o644, true),
            (0o755, 0o664, false),
            (0o755, 0o646, false),
            (0o775, 0o644, false),
            (0o757, 0o644, false),
        ] {
            set(folder.path(), around);
            set(&file, mode);
            let read = read();
            assert_eq!(read.is_ok(), good, "{around:o} {mode:o} {read:?}");
            if let Err(why) = read {
                assert!(format!("{why:#}").contains("chmod go-w"), "{why:#}");
            }
        }
        set(folder.path(), 0o755);
        set(&file, 0o644);
        if chown(&file, Some(65_534), None).is_ok() {
            assert!(read().unwrap_err().to_string().contains("user 65534"));
        }
    }
}
