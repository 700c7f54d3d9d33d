//! Records on this host's disk that its history did not take, until it does.

use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use goodput_model::Record;
use goodput_store::read_record;

use super::thin::thin;
use crate::screen;

/// The directory.
const FOLDER: &str = "unsaved";
/// The file that is being written; one agent has the directory.
const NEW: &str = "new";
/// How the name of a whole file ends.
const ENDING: &str = ".json";
/// What may wait, bytes: some hundred records of ten seconds, each with all of its detail, and thousands without.
const MOST_BYTES: u64 = 64 << 20;

/// The records that wait, the first one first.
pub(super) struct Waiting {
    folder: PathBuf,
    most_bytes: u64,
}

/// A record that waits: `NUMBER-TASK.json`. Numbers rise, whatever becomes of the clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Waits {
    number: u64,
    /// The task that it is of.
    pub task: String,
}

impl Waits {
    fn named(name: &str) -> Option<Self> {
        let (number, task) = name.strip_suffix(ENDING)?.split_once('-')?;
        Some(Self { number: number.parse().ok()?, task: task.into() })
    }

    fn name(&self) -> String {
        format!("{}-{}{ENDING}", self.number, self.task)
    }
}

impl Waiting {
    /// Those of the agent whose files are in `folder`.
    pub fn open(folder: &Path) -> Result<Self> {
        let folder = folder.join(FOLDER);
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&folder);
        made.with_context(|| format!("can't make the directory {}", folder.display()))?;
        Ok(Self { folder, most_bytes: MOST_BYTES })
    }

    /// All of them.
    pub fn all(&self) -> Result<Vec<Waits>> {
        let read = || format!("can't read the directory {}", self.folder.display());
        let entries = self.folder.read_dir().with_context(read)?;
        let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut all: Vec<_> = names.filter_map(|name| Waits::named(&name)).collect();
        all.sort_by_key(|waits| waits.number);
        Ok(all)
    }

    /// Has the record of a task wait behind the others; on return it is on disk. If there is no room, the oldest lose their
    /// detail first, and only then a whole record is lost, which is said.
    pub fn keep(&self, task: &str, record: &Record) -> Result<()> {
        let before = self.all()?;
        if before.iter().any(|waits| waits.task == task) {
            return Ok(());
        }
        let number = before.last().map_or(0, |last| last.number + 1);
        self.write(&Waits { number, task: task.into() }, record)?;
        self.make_room()
    }

    fn write(&self, waits: &Waits, record: &Record) -> Result<()> {
        let file = self.folder.join(waits.name());
        let failed = || format!("can't write {}", file.display());
        let json = record.to_readable_json().with_context(failed)?;
        let write = || -> io::Result<()> {
            let new = self.folder.join(NEW);
            let mut written = File::create(&new)?;
            written.write_all(json.as_bytes())?;
            written.sync_all()?;
            fs::rename(&new, &file)?;
            // The name, too.
            File::open(&self.folder)?.sync_all()
        };
        write().with_context(failed)
    }

    fn make_room(&self) -> Result<()> {
        for waits in self.all()? {
            // One that can't be read has no detail that could go.
            let Ok(mut record) = self.read(&waits) else { continue };
            while self.bytes()? > self.most_bytes && thin(&mut record) {
                self.write(&waits, &record)?;
            }
        }
        for waits in self.all()? {
            if self.bytes()? <= self.most_bytes {
                break;
            }
            screen::say(format_args!(
                "goodput: no room for records that wait for the history ({} bytes); the record of the task {} is lost \
                 here",
                self.most_bytes, waits.task
            ));
            self.remove(&waits)?;
        }
        Ok(())
    }

    fn bytes(&self) -> Result<u64> {
        let length = |waits: &Waits| Ok(fs::metadata(self.folder.join(waits.name()))?.len());
        let sum = self.all()?.iter().map(length).sum::<io::Result<u64>>();
        sum.with_context(|| format!("can't read the directory {}", self.folder.display()))
    }

    /// A record that waits.
    pub fn read(&self, waits: &Waits) -> Result<Record> {
        let file = self.folder.join(waits.name());
        let failed = || format!("can't read {}", file.display());
        let json = fs::read_to_string(&file).with_context(failed)?;
        read_record(&json).with_context(failed)
    }

    /// Forgets a record.
    pub fn remove(&self, waits: &Waits) -> Result<()> {
        let file = self.folder.join(waits.name());
        match fs::remove_file(&file) {
            Err(why) if why.kind() != ErrorKind::NotFound => {
                Err(why).with_context(|| format!("can't remove {}", file.display()))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::thin::tests::detailed;
    use super::*;

    fn record() -> Record {
        read_record(include_str!("../../../report/example/record.json")).unwrap()
    }

    fn tasks(waiting: &Waiting) -> Vec<String> {
        waiting.all().unwrap().into_iter().map(|waits| waits.task).collect()
    }

    #[test]
    fn records_wait_in_their_order_over_restarts() {
        let folder = tempfile::tempdir().unwrap();
        let waiting = Waiting::open(folder.path()).unwrap();
        for task in ["t-2", "t-1", "t-10", "t-2"] {
            waiting.keep(task, &record()).unwrap();
        }
        fs::write(waiting.folder.join(NEW), "half").unwrap();
        let again = Waiting::open(folder.path()).unwrap();
        assert_eq!(tasks(&again), ["t-2", "t-1", "t-10"]);
        let first = again.all().unwrap().remove(0);
        assert_eq!(again.read(&first).unwrap(), record());
        again.remove(&first).unwrap();
        again.remove(&first).unwrap();
        assert_eq!(tasks(&again), ["t-1", "t-10"]);
    }

    #[test]
    fn the_oldest_lose_their_detail_first_and_then_themselves() {
        let folder = tempfile::tempdir().unwrap();
        let size = detailed().to_readable_json().unwrap().len() as u64;
        let waiting = Waiting { most_bytes: size * 5 / 2, ..Waiting::open(folder.path()).unwrap() };
        for task in ["1", "2", "3"] {
            waiting.keep(task, &detailed()).unwrap();
        }
        let [first, second, third] = &waiting.all().unwrap()[..] else { panic!("all wait") };
        assert!(waiting.read(first).unwrap().thinned.is_some());
        for whole in [second, third] {
            assert_eq!(waiting.read(whole).unwrap(), detailed());
        }
        let small = Waiting { most_bytes: 1, ..waiting };
        small.keep("4", &detailed()).unwrap();
        assert_eq!(tasks(&small), [""; 0], "there is no room for any");
    }

    #[test]
    fn a_file_that_can_t_be_read_stands_in_nobody_s_way() {
        let folder = tempfile::tempdir().unwrap();
        let waiting = Waiting::open(folder.path()).unwrap();
        fs::write(waiting.folder.join("7-t.json"), "{").unwrap();
        waiting.keep("u", &record()).unwrap();
        assert_eq!(tasks(&waiting), ["t", "u"]);
        assert!(waiting.read(&waiting.all().unwrap()[0]).is_err());
    }
}
