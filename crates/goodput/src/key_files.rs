//! Where keys are stored, and how they are made.

use std::fs::DirBuilder;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use goodput_wire::keys::KeyFile;
use rustix::process::geteuid;

use crate::secret_file;

/// The directory of the user's own key and of the servers that the user knows: `$XDG_CONFIG_HOME/goodput` or
/// `~/.config/goodput` (XDG Base Directory Specification 0.8).
///
/// # Errors
/// When neither variable holds an absolute path.
pub fn config_dir() -> Result<PathBuf> {
    let absolute = |name| {
        let path = std::env::var_os(name).map(PathBuf::from);
        path.filter(|path| path.is_absolute())
    };
    let standard = || absolute("HOME").map(|home| home.join(".config"));
    let config = absolute("XDG_CONFIG_HOME").or_else(standard);
    let config =
        config.context("can't find the key directory: $HOME and $XDG_CONFIG_HOME are not set")?;
    Ok(config.join("goodput"))
}

/// The user's own key, unless another is named.
pub fn default_key() -> Result<PathBuf> {
    Ok(config_dir()?.join("key"))
}

/// Reads a private key.
pub fn read(file: &Path) -> Result<KeyFile> {
    let text = secret_file::read(file, "the private key")?;
    KeyFile::parse(&text).with_context(|| format!("the private key {}", file.display()))
}

/// The private key in a file, made on first use; and whether it was made.
pub fn read_or_make(file: &Path, name: &str) -> Result<(KeyFile, bool)> {
    let key = KeyFile::new(name, rand::random())?;
    if keep(file, &key, false)? { Ok((key, true)) } else { Ok((read(file)?, false)) }
}

/// Stores a key in a file that only this user can read; returns whether it did. An existing file stays, unless
/// `replace` is set.
pub fn keep(file: &Path, key: &KeyFile, replace: bool) -> Result<bool> {
    keep_text(file, "the private key", &key.to_text(), replace)
}

/// Stores a secret, `what`, in a file that only this user can read; returns whether it did. An existing file stays,
/// unless `replace` is set.
pub fn keep_text(file: &Path, what: &str, text: &str, replace: bool) -> Result<bool> {
    let failed = || format!("can't save {what} in {}", file.display());
    let around = file.parent().filter(|around| !around.as_os_str().is_empty());
    let around = around.unwrap_or(Path::new("."));
    if !replace && file.symlink_metadata().is_ok() {
        return Ok(false);
    }
    if !around.is_dir() {
        let around = around.display();
        bail!("{}: there is no directory {around}; make it with `mkdir {around}`", failed());
    }
    // Its mode is 0600 from the start, and the name appears only when the text is complete.
    let mut made = tempfile::NamedTempFile::new_in(around).with_context(failed)?;
    made.write_all(text.as_bytes()).with_context(failed)?;
    made.as_file().sync_all().with_context(failed)?;
    let kept = if replace { made.persist(file) } else { made.persist_noclobber(file) };
    match kept {
        Ok(_) => Ok(true),
        // Another process was faster.
        Err(why) if !replace && why.error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(why) => Err(why.error).with_context(failed),
    }
}

/// Makes the directory of a key that goodput itself has named.
pub fn make_directory(key: &Path) -> Result<()> {
    let Some(directory) = key.parent() else { return Ok(()) };
    let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.with_context(|| format!("can't make the directory {}", directory.display()))
}

/// Default name of a key: user@host, reduced to the letters that a name may have.
pub fn usual_name() -> String {
    let user = std::env::var("USER").unwrap_or_else(|_| format!("user{}", geteuid().as_raw()));
    let host = rustix::system::uname();
    let good = |c: char| if c.is_ascii_alphanumeric() || "._+-".contains(c) { c } else { '-' };
    let plain = |text: &str| text.chars().map(good).take(31).collect::<String>();
    format!("{}@{}", plain(&user), plain(&host.nodename().to_string_lossy()))
}

/// Refuses an invalid name for a key before anything is made.
pub fn check_exists(file: &Path) -> Result<()> {
    if file.symlink_metadata().is_err() {
        bail!("there is no key {}; `goodput key -o {0}` makes one", file.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn a_key_is_made_once_and_only_its_owner_can_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("new/key");
        let why = read_or_make(&file, &usual_name()).unwrap_err().to_string();
        assert!(why.contains("there is no directory") && why.contains("mkdir"), "{why}");
        make_directory(&file).unwrap();
        let (made, first) = read_or_make(&file, &usual_name()).unwrap();
        assert!(first);
        assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o600);
        assert_eq!(file.parent().unwrap().metadata().unwrap().mode() & 0o777, 0o700);
        let (again, first) = read_or_make(&file, "other").unwrap();
        assert!(!first);
        assert_eq!((again.name, again.key.public()), (made.name, made.key.public()));
        let other = KeyFile::new("other", rand::random()).unwrap();
        assert!(!keep(&file, &other, false).unwrap());
        assert!(keep(&file, &other, true).unwrap());
        assert_eq!(read(&file).unwrap().key.public(), other.key.public());
    }
}
