//! The newest coordinator that this agent knows of, also on its disk: after a restart, too, no copy of the stream that is
//! behind brings an earlier one back.

use std::cell::Cell;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use goodput_fleet::Newest;
use serde::{Deserialize, Serialize};

use crate::commands::fleet::durable::replace;
use crate::screen;

/// The name of the file.
const FILE: &str = "newest";

/// The newest coordinator that was seen.
pub(super) struct Heed {
    folder: PathBuf,
    /// Where it was seen.
    bucket: String,
    newest: Cell<Newest>,
}

/// What is in the file.
#[derive(Default, Serialize, Deserialize)]
struct Kept {
    bucket: String,
    newest: Newest,
}

impl Heed {
    /// What the agent whose files are in `folder` knew of the coordinators in this bucket: the tokens of another one are
    /// others. A file that can't be understood says nothing.
    pub fn open(folder: &Path, bucket: String) -> Result<Self> {
        let file = folder.join(FILE);
        let json = match fs::read(&file) {
            Err(why) if why.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            read => read,
        };
        let json = json.with_context(|| format!("can't read {}", file.display()))?;
        let kept: Kept = serde_json::from_slice(&json).unwrap_or_default();
        let newest = if kept.bucket == bucket { kept.newest } else { Newest::default() };
        Ok(Self { folder: folder.to_owned(), bucket, newest: Cell::new(newest) })
    }

    /// Its token; 0: none was seen.
    pub fn token(&self) -> u64 {
        self.newest.get().token
    }

    /// Whether a task with this token is one of an earlier coordinator.
    pub fn is_after(&self, token: u64) -> bool {
        self.newest.get().is_after(token)
    }

    /// Takes what a copy of the stream says. A full disk keeps nobody from working: then only this process knows it.
    pub fn see(&self, token: u64, written_s: f64) {
        let mut newest = self.newest.get();
        newest.see(token, written_s);
        if self.newest.replace(newest) != newest
            && let Err(why) = self.write(newest)
        {
            let file = self.folder.join(FILE);
            screen::say(format_args!("goodput: can't write {}: {why}", file.display()));
        }
    }

    fn write(&self, newest: Newest) -> std::io::Result<()> {
        let kept = Kept { bucket: self.bucket.clone(), newest };
        replace(&self.folder, &self.folder.join(FILE), &serde_json::to_vec(&kept)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(folder: &Path, bucket: &str) -> Heed {
        Heed::open(folder, bucket.into()).unwrap()
    }

    #[test]
    fn an_agent_that_starts_again_knows_whom_it_has_seen_at_this_bus() {
        let folder = tempfile::tempdir().unwrap();
        let heed = open(folder.path(), "one");
        assert_eq!(heed.token(), 0);
        heed.see(7, 200.0);
        let again = open(folder.path(), "one");
        again.see(5, 100.0);
        assert!(again.is_after(6) && !again.is_after(7));
        assert_eq!(open(folder.path(), "two").token(), 0, "its tokens are others");
        fs::write(folder.path().join(FILE), "half").unwrap();
        assert_eq!(open(folder.path(), "one").token(), 0);
    }

    #[test]
    fn what_the_disk_does_not_take_is_known_all_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let heed = open(&folder.path().join("none"), "one");
        heed.see(7, 200.0);
        assert!(heed.is_after(6));
    }
}
