//! Files with secrets: read only if nobody else can read them.

use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::{Context, Result, bail};
use rustix::process::geteuid;

/// Most bytes of such a file.
const LONGEST: u64 = 1 << 20;

/// Reads a file with a secret, `what`. Refuses one that others than its owner can reach, or that
/// belongs to another user: whoever it was may have read or chosen the secret.
pub fn read(file: &Path, what: &str) -> Result<String> {
    let shown = file.display();
    let failed = || format!("cannot read {what} {shown}");
    let opened = File::open(file).with_context(failed)?;
    // Of what was opened, which no renaming can exchange any more.
    check(&opened.metadata().with_context(failed)?, file, what)?;
    let mut text = String::new();
    opened.take(LONGEST).read_to_string(&mut text).with_context(failed)?;
    Ok(text)
}

fn check(found: &Metadata, file: &Path, what: &str) -> Result<()> {
    let shown = file.display();
    let (mode, owner) = (found.mode() & 0o7777, found.uid());
    // A pipe, as a shell's <(…) makes one, has no name that others could open.
    if found.is_file() && mode & 0o077 != 0 {
        bail!("{what} {shown} can be reached by others (mode {mode:04o}); run `chmod 600 {shown}`");
    }
    if owner != geteuid().as_raw() && owner != 0 {
        bail!(
            "{what} {shown} belongs to user {owner}, who can read and replace it; make a copy of your \
             own and run `chmod 600` on it"
        );
    }
    Ok(())
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
        // Only root can give a file away; as anybody else there is nothing to see.
        if chown(&file, Some(65_534), None).is_ok() {
            let why = read(&file, "the token").unwrap_err().to_string();
            assert!(why.contains("user 65534") && why.contains("chmod 600"), "{why}");
        }
    }
}
