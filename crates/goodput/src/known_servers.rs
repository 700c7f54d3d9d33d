//! The servers that this user knows by their keys: remembered at the first visit, like ssh.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use goodput_engine::{EngineError, Servers, Target};
use goodput_wire::keys::{KnownServers, PublicKey};
use goodput_wire::session::ServerIs;
use rustix::process::geteuid;

use crate::{key_files, screen, secret_file};

/// The known servers.
pub struct Known {
    file: PathBuf,
    /// The key that the user named for this run's server.
    pinned: Option<PublicKey>,
}

impl Known {
    /// The servers in the user's file, or the server key that the user named.
    pub fn new(pinned: Option<PublicKey>) -> Result<Self> {
        Ok(Self { file: key_files::config_dir()?.join("known_servers"), pinned })
    }

    fn look_up(&self, target: &Target) -> Result<ServerIs> {
        if let Some(key) = self.pinned {
            return Ok(ServerIs::Known { key, by: "--server-key".into() });
        }
        if self.file.metadata().is_err_and(|why| why.kind() == ErrorKind::NotFound) {
            return Ok(ServerIs::Unknown);
        }
        let text = secret_file::read_trusted(&self.file, "the known servers", geteuid())?;
        let shown = self.file.display();
        let known = KnownServers::parse(&text).with_context(|| shown.to_string())?;
        Ok(match known.find(&target.host, target.port) {
            Some((line, key)) => ServerIs::Known { key, by: format!("line {line} of {shown}") },
            None => ServerIs::Unknown,
        })
    }

    fn add(&self, target: &Target, key: PublicKey) -> std::io::Result<()> {
        let around = self.file.parent().unwrap_or(Path::new("/"));
        DirBuilder::new().recursive(true).mode(0o700).create(around)?;
        let mut options = OpenOptions::new();
        let mut file: File =
            options.read(true).append(true).create(true).mode(0o600).open(&self.file)?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        let line = KnownServers::line(&target.host, target.port, key);
        // An editor may have left the last line of the file without its newline.
        let open_line = !text.is_empty() && !text.ends_with('\n');
        let line = if open_line { format!("\n{line}") } else { line };
        // One write, so that two processes don't mix their lines (O_APPEND, open(2)).
        file.write_all(line.as_bytes())
    }
}

impl Servers for Known {
    fn find(&self, target: &Target) -> Result<ServerIs, EngineError> {
        self.look_up(target).map_err(|why| EngineError::Target(format!("{target}: {why:#}")))
    }

    fn remember(&self, target: &Target, key: PublicKey) {
        let shown = self.file.display();
        match self.add(target, key) {
            Ok(()) => screen::say(format_args!(
                "goodput: first visit to {target}; its key {key} is saved in {shown}"
            )),
            Err(why) => screen::say(format_args!(
                "warning: can't save the key {key} of {target} in {shown}: {why}"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_remembered_and_a_pinned_key_goes_before() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("new/known_servers");
        let known = Known { file, pinned: None };
        let target: Target = "Far.example:7000".parse().unwrap();
        let is = |known: &Known| match known.look_up(&target).unwrap() {
            ServerIs::Known { key, by } => Some((key, by)),
            ServerIs::Unknown => None,
        };
        assert!(is(&known).is_none());
        let key = |number| goodput_wire::keys::PrivateKey::of([number; 32]).unwrap().public();
        known.remember(&target, key(1));
        let (found, by) = is(&known).unwrap();
        assert!(found == key(1) && by.starts_with("line 1 of "), "{by}");
        let text = std::fs::read_to_string(&known.file).unwrap();
        std::fs::write(&known.file, text.trim_end()).unwrap();
        let other: Target = "other.example".parse().unwrap();
        known.remember(&other, key(3));
        assert!(
            matches!(known.look_up(&other).unwrap(), ServerIs::Known { key: k, .. } if k == key(3))
        );
        assert!(is(&known).is_some(), "the line before it is still there");
        let pinned = Known { pinned: Some(key(2)), ..known };
        assert_eq!(is(&pinned).unwrap().0, key(2));
    }
}
