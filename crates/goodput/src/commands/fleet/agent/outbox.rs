//! Outcomes on this host's disk, from the end of a test until the bus has them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use goodput_fleet::Outcome;

use crate::commands::fleet::durable::replace;

/// How the name of a whole file ends.
const ENDING: &str = ".json";

/// The outcomes of one site.
pub(super) struct Outbox {
    folder: PathBuf,
    /// Those that the disk did not take: this process knows them all the same.
    in_memory: RefCell<HashMap<String, Outcome>>,
}

impl Outbox {
    /// Those of the site `word`, in the directory of states.
    pub fn open(state: &Path, word: &str) -> Result<Self> {
        let directory = state.join("fleet").join(word);
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&directory);
        made.with_context(|| format!("can't make the directory {}", directory.display()))?;
        Ok(Self { folder: directory, in_memory: RefCell::default() })
    }

    /// The directory, for what else this site keeps.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Keeps an outcome; on return it is on disk. After an error, it is kept for as long as this process runs.
    pub fn keep(&self, outcome: &Outcome) -> Result<()> {
        let file = self.file(&outcome.task);
        let failed = || format!("can't write {}", file.display());
        let written = self.write(&file, outcome).with_context(failed);
        if written.is_err() {
            self.in_memory.borrow_mut().insert(outcome.task.clone(), outcome.clone());
        }
        written
    }

    fn write(&self, file: &Path, outcome: &Outcome) -> io::Result<()> {
        replace(&self.folder, file, &serde_json::to_vec(outcome)?)
    }

    /// The outcome of a task, if it is kept. One that can't be read is none: the task was then begun, and is given up.
    pub fn read(&self, task: &str) -> Result<Option<Outcome>> {
        if let Some(outcome) = self.in_memory.borrow().get(task) {
            return Ok(Some(outcome.clone()));
        }
        let file = self.file(task);
        match fs::read(&file) {
            Ok(json) => Ok(Outcome::read(&json).ok().filter(|outcome| outcome.task == task)),
            Err(why) if why.kind() == ErrorKind::NotFound => Ok(None),
            Err(why) => Err(why).with_context(|| format!("can't read {}", file.display())),
        }
    }

    /// Forgets the outcome of a task.
    pub fn remove(&self, task: &str) -> Result<()> {
        self.in_memory.borrow_mut().remove(task);
        let file = self.file(task);
        match fs::remove_file(&file) {
            Err(why) if why.kind() != ErrorKind::NotFound => {
                Err(why).with_context(|| format!("can't remove {}", file.display()))
            }
            _ => Ok(()),
        }
    }

    /// The outcomes that the bus may not have yet.
    pub fn left(&self) -> Result<Vec<Outcome>> {
        let read = || format!("can't read the directory {}", self.folder.display());
        let entries = self.folder.read_dir().with_context(read)?;
        let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        let tasks = names.filter_map(|name| name.strip_suffix(ENDING).map(String::from));
        let mut tasks: Vec<_> = tasks.collect();
        tasks.extend(self.in_memory.borrow().keys().cloned());
        tasks.iter().filter_map(|task| self.read(task).transpose()).collect()
    }

    fn file(&self, task: &str) -> PathBuf {
        self.folder.join(format!("{task}{ENDING}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::fleet::durable::DRAFT;
    use goodput_fleet::End;

    #[test]
    fn an_outcome_is_kept_until_it_is_removed_and_half_a_file_is_none() {
        let state = tempfile::tempdir().unwrap();
        let outbox = Outbox::open(state.path(), "a").unwrap();
        let outcome = Outcome::new("t-1", "a", End::Reason("busy".into()));
        assert_eq!(outbox.read("t-1").unwrap(), None);
        outbox.keep(&outcome).unwrap();
        let again = Outbox::open(state.path(), "a").unwrap();
        assert_eq!(again.read("t-1").unwrap(), Some(outcome.clone()));
        fs::write(again.file("t-2"), "{\"format\":1").unwrap();
        fs::write(again.folder.join(DRAFT), "half").unwrap();
        assert_eq!(again.left().unwrap(), [outcome]);
        assert_eq!(Outbox::open(state.path(), "b").unwrap().left().unwrap(), []);
        again.remove("t-1").unwrap();
        again.remove("t-1").unwrap();
        assert_eq!(again.left().unwrap(), []);
    }

    #[test]
    fn what_the_disk_does_not_take_is_known_until_it_is_removed() {
        let state = tempfile::tempdir().unwrap();
        let outbox = Outbox::open(state.path(), "a").unwrap();
        let outcome = Outcome::new("t-1", "a", End::Reason("busy".into()));
        // A directory can't be replaced by a file.
        fs::create_dir(outbox.file("t-1")).unwrap();
        assert!(outbox.keep(&outcome).is_err());
        assert_eq!(outbox.read("t-1").unwrap(), Some(outcome.clone()));
        fs::remove_dir(outbox.file("t-1")).unwrap();
        assert_eq!(outbox.left().unwrap(), [outcome]);
        outbox.remove("t-1").unwrap();
        let again = outbox;
        assert_eq!(again.left().unwrap(), []);
    }
}
