//! Records on this host's disk that its history did not take, until it does.

use std::collections::HashSet;
use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};
use goodput_model::Record;
use goodput_store::{RecordError, read_record};

use super::thin::thin;
use crate::commands::fleet::durable::replace;
use crate::screen;

/// The directory.
const FOLDER: &str = "unsaved";
/// How the name of a whole file ends.
const ENDING: &str = ".json";
/// What is added to the name of one that is no record.
const BAD: &str = ".bad";
/// How many files that are no records are kept, for whoever looks for the reason, and their bytes: the newest of them that fit,
/// but always the newest.
const MOST_BAD: usize = 8;
const MOST_BAD_BYTES: u64 = 8 << 20;
/// What may wait, bytes: some hundred records of ten seconds, each with all of its detail, and thousands without.
const MOST_BYTES: u64 = 64 << 20;

/// The records that wait, the first one first.
pub(super) struct Waiting {
    folder: PathBuf,
    most_bytes: u64,
    /// Below this number, none has detail left that could go. Held by whoever writes.
    lean: Mutex<u64>,
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
        Ok(Self { folder, most_bytes: MOST_BYTES, lean: Mutex::default() })
    }

    /// All of them.
    pub fn all(&self) -> Result<Vec<Waits>> {
        self.ending_with("")
    }

    /// The files of records whose names end with this, the first one first.
    fn ending_with(&self, ending: &str) -> Result<Vec<Waits>> {
        let read = || format!("can't read the directory {}", self.folder.display());
        let entries = self.folder.read_dir().with_context(read)?;
        let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        let named = |name: String| Waits::named(name.strip_suffix(ending)?);
        let mut all: Vec<_> = names.filter_map(named).collect();
        all.sort_by_key(|waits| waits.number);
        Ok(all)
    }

    /// The number of the next one: after those that wait, and after those that were set aside, so that these are in their order,
    /// too.
    fn next_number(&self, waiting: &[Waits], lean: u64) -> Result<u64> {
        let bad = self.ending_with(BAD)?;
        let last = [waiting, &bad[..]].map(|all| all.last().map_or(0, |last| last.number + 1));
        Ok(last.into_iter().fold(lean, u64::max))
    }

    /// Has the record of a task wait behind the others; on return it is on disk. If there is no room, the oldest lose their
    /// detail first, and only then a whole record is lost, which is said. Writes much, and waits for the disk.
    pub fn keep(&self, task: &str, record: &Record) -> Result<()> {
        let mut lean = self.lean.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.all()?;
        if before.iter().any(|waits| waits.task == task) {
            return Ok(());
        }
        let number = self.next_number(&before, *lean)?;
        self.write(&Waits { number, task: task.into() }, record)?;
        self.make_room(&mut lean)
    }

    /// Has what waits elsewhere wait here, behind the others. What waits in both places waits once, and all of it has no more room
    /// than what waits here.
    pub fn take_over(&self, other: &Self) -> Result<()> {
        let mut lean = self.lean.lock().unwrap_or_else(PoisonError::into_inner);
        let own = self.all()?;
        let mut number = self.next_number(&own, *lean)?;
        let mut tasks: HashSet<_> = own.into_iter().map(|own| own.task).collect();
        for waits in other.all()? {
            if !tasks.insert(waits.task.clone()) {
                other.remove(&waits)?;
                continue;
            }
            let (from, here) = (other.file(&waits), Waits { number, ..waits });
            let moved = fs::rename(&from, self.file(&here));
            moved.with_context(|| format!("can't move {}", from.display()))?;
            number += 1;
        }
        self.make_room(&mut lean)
    }

    /// Returns how much it wrote, bytes.
    fn write(&self, waits: &Waits, record: &Record) -> Result<u64> {
        let file = self.file(waits);
        let failed = || format!("can't write {}", file.display());
        let json = record.to_readable_json().with_context(failed)?;
        replace(&self.folder, &file, json.as_bytes()).with_context(failed)?;
        Ok(json.len() as u64)
    }

    fn make_room(&self, lean: &mut u64) -> Result<()> {
        let mut bytes = self.bytes()?;
        if bytes <= self.most_bytes {
            return Ok(());
        }
        let all = self.all()?;
        for waits in all.iter().filter(|waits| waits.number >= *lean).collect::<Vec<_>>() {
            bytes = self.thin(waits, bytes)?;
            if bytes <= self.most_bytes {
                return Ok(());
            }
            *lean = waits.number + 1;
        }
        for waits in all {
            if bytes <= self.most_bytes {
                break;
            }
            screen::say(format_args!(
                "goodput: no room for records that wait for the history ({} bytes); the record of the task {} is lost \
                 here",
                self.most_bytes, waits.task
            ));
            bytes = bytes.saturating_sub(self.length(&waits)?);
            self.remove(&waits)?;
        }
        Ok(())
    }

    /// Takes detail from a record until all have room or it has no more. `bytes` is what all have; returns what they have
    /// then.
    fn thin(&self, waits: &Waits, bytes: u64) -> Result<u64> {
        // One that can't be read has no detail that could go.
        let Ok(Some(mut record)) = self.read(waits) else { return Ok(bytes) };
        let mut own = self.length(waits)?;
        let others = bytes.saturating_sub(own);
        while others + own > self.most_bytes && thin(&mut record) {
            own = self.write(waits, &record)?;
        }
        Ok(others + own)
    }

    fn bytes(&self) -> Result<u64> {
        self.all()?.iter().map(|waits| self.length(waits)).sum()
    }

    /// Of the file, bytes; 0 if it is gone.
    fn length(&self, waits: &Waits) -> Result<u64> {
        let file = self.file(waits);
        match fs::metadata(&file) {
            Ok(of) => Ok(of.len()),
            Err(why) if why.kind() == ErrorKind::NotFound => Ok(0),
            Err(why) => Err(why).with_context(|| format!("can't read {}", file.display())),
        }
    }

    /// A record that waits; none if it is gone, or if it is none: its file is then renamed, and that is said, so that it
    /// stands in nobody's way.
    pub fn read(&self, waits: &Waits) -> Result<Option<Record>> {
        let file = self.file(waits);
        let json = match fs::read(&file) {
            Err(why) if why.kind() == ErrorKind::NotFound => return Ok(None),
            read => read.with_context(|| format!("can't read {}", file.display()))?,
        };
        match read_record(&String::from_utf8_lossy(&json)) {
            Ok(record) => Ok(Some(record)),
            Err(why) => self.set_aside(waits, &why).map(|()| None),
        }
    }

    fn set_aside(&self, waits: &Waits, why: &RecordError) -> Result<()> {
        let file = self.file(waits);
        let aside = self.folder.join(waits.name() + BAD);
        fs::rename(&file, &aside).with_context(|| format!("can't rename {}", file.display()))?;
        screen::say(format_args!(
            "goodput: can't read {}: {why}; it is {} now, and is not saved",
            file.display(),
            aside.display()
        ));
        self.forget_bad()
    }

    /// Of the files that are no records, only the newest are kept.
    fn forget_bad(&self) -> Result<()> {
        let mut bytes = 0;
        for (newer, bad) in self.ending_with(BAD)?.iter().rev().enumerate() {
            let file = self.folder.join(bad.name() + BAD);
            bytes += fs::metadata(&file).map_or(0, |of| of.len());
            if newer >= MOST_BAD || (newer > 0 && bytes > MOST_BAD_BYTES) {
                let removed = fs::remove_file(&file);
                removed.with_context(|| format!("can't remove {}", file.display()))?;
            }
        }
        Ok(())
    }

    fn file(&self, waits: &Waits) -> PathBuf {
        self.folder.join(waits.name())
    }

    /// Forgets a record.
    pub fn remove(&self, waits: &Waits) -> Result<()> {
        let file = self.file(waits);
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
    use crate::commands::fleet::durable::DRAFT;

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
        fs::write(waiting.folder.join(DRAFT), "half").unwrap();
        let again = Waiting::open(folder.path()).unwrap();
        assert_eq!(tasks(&again), ["t-2", "t-1", "t-10"]);
        let first = again.all().unwrap().remove(0);
        assert_eq!(again.read(&first).unwrap(), Some(record()));
        again.remove(&first).unwrap();
        again.remove(&first).unwrap();
        assert_eq!(tasks(&again), ["t-1", "t-10"]);
        assert_eq!(again.read(&first).unwrap(), None, "it is gone, which is no error");
    }

    #[test]
    fn what_waits_elsewhere_is_taken_over_once_and_in_its_order() {
        let [folder, elsewhere] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let [here, other] = [&folder, &elsewhere].map(|it| Waiting::open(it.path()).unwrap());
        for task in ["t-1", "t-2"] {
            here.keep(task, &record()).unwrap();
        }
        for task in ["t-4", "t-2", "t-3"] {
            other.keep(task, &record()).unwrap();
        }
        here.take_over(&other).unwrap();
        assert_eq!(tasks(&here), ["t-1", "t-2", "t-4", "t-3"]);
        assert!(tasks(&other).is_empty());
        let last = here.all().unwrap().pop().unwrap();
        assert_eq!(here.read(&last).unwrap(), Some(record()));
    }

    #[test]
    fn what_is_taken_over_has_no_more_room_than_what_waits_here() {
        let [folder, elsewhere] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let size = detailed().to_readable_json().unwrap().len() as u64;
        let [here, other] = [&folder, &elsewhere].map(|it| Waiting::open(it.path()).unwrap());
        let here = Waiting { most_bytes: size * 5 / 2, ..here };
        here.keep("1", &detailed()).unwrap();
        for task in ["2", "3"] {
            other.keep(task, &detailed()).unwrap();
        }
        here.take_over(&other).unwrap();
        assert_eq!(tasks(&here), ["1", "2", "3"]);
        assert!(here.bytes().unwrap() <= here.most_bytes);
        let first = here.all().unwrap().remove(0);
        assert!(here.read(&first).unwrap().unwrap().thinned.is_some());
    }

    #[test]
    fn of_files_that_are_no_records_the_newest_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let waiting = Waiting::open(folder.path()).unwrap();
        let all = 2 * MOST_BAD as u64;
        for number in 0..all {
            fs::write(waiting.folder.join(format!("{number}-t.json")), "{").unwrap();
            let bad = waiting.all().unwrap().remove(0);
            assert_eq!(waiting.read(&bad).unwrap(), None);
        }
        let left: Vec<_> = (0..all)
            .filter(|number| waiting.folder.join(format!("{number}-t.json.bad")).exists())
            .collect();
        assert_eq!(left, (all - MOST_BAD as u64..all).collect::<Vec<_>>());
    }

    /// Nothing waits any more, and this process is a new one.
    #[test]
    fn a_file_that_is_no_record_is_newer_than_those_before_it_also_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let waiting = Waiting::open(folder.path()).unwrap();
        for number in 10..10 + MOST_BAD {
            fs::write(waiting.folder.join(format!("{number}-t.json.bad")), "{").unwrap();
        }
        let again = Waiting::open(folder.path()).unwrap();
        again.keep("u", &record()).unwrap();
        let newest = again.all().unwrap().remove(0);
        fs::write(again.file(&newest), "{").unwrap();
        assert_eq!(again.read(&newest).unwrap(), None);
        let bad = again.ending_with(BAD).unwrap();
        assert_eq!(bad.len(), MOST_BAD);
        assert_eq!((bad[0].number, bad.last()), (11, Some(&newest)));
    }

    #[test]
    fn files_that_are_no_records_have_little_room() {
        let folder = tempfile::tempdir().unwrap();
        let waiting = Waiting::open(folder.path()).unwrap();
        for (number, bytes) in [(1, 1), (2, MOST_BAD_BYTES / 2), (3, MOST_BAD_BYTES / 2), (4, 7)] {
            let file = waiting.folder.join(format!("{number}-t.json.bad"));
            fs::File::create(file).unwrap().set_len(bytes).unwrap();
        }
        waiting.forget_bad().unwrap();
        let numbers = |all: Vec<Waits>| all.iter().map(|bad| bad.number).collect::<Vec<_>>();
        assert_eq!(numbers(waiting.ending_with(BAD).unwrap()), [3, 4]);
        let file = waiting.folder.join("5-t.json.bad");
        fs::File::create(file).unwrap().set_len(2 * MOST_BAD_BYTES).unwrap();
        waiting.forget_bad().unwrap();
        assert_eq!(numbers(waiting.ending_with(BAD).unwrap()), [5], "the newest stays");
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
        assert!(waiting.read(first).unwrap().unwrap().thinned.is_some());
        for whole in [second, third] {
            assert_eq!(waiting.read(whole).unwrap(), Some(detailed()));
        }
        let small = Waiting { most_bytes: 1, ..waiting };
        small.keep("4", &detailed()).unwrap();
        assert_eq!(tasks(&small), [""; 0], "there is no room for any");
    }

    /// As while a database is away for an hour: each record that comes finds the disk full.
    #[test]
    fn within_the_bound_all_are_kept_and_the_older_ones_are_the_thinner_ones() {
        const RECORDS: u64 = 24;
        let folder = tempfile::tempdir().unwrap();
        let size = |record: &Record| record.to_readable_json().unwrap().len() as u64;
        let mut lean = detailed();
        while thin(&mut lean) {}
        let [whole, lean] = [detailed(), lean].map(|record| size(&record));
        let most_bytes = RECORDS * lean + 4 * (whole - lean);
        let waiting = Waiting { most_bytes, ..Waiting::open(folder.path()).unwrap() };
        for number in 0..RECORDS {
            waiting.keep(&number.to_string(), &detailed()).unwrap();
            assert!(waiting.bytes().unwrap() <= most_bytes);
        }
        let all = waiting.all().unwrap();
        let lengths: Vec<_> = all.iter().map(|waits| waiting.length(waits).unwrap()).collect();
        assert_eq!(lengths.len() as u64, RECORDS, "none is lost");
        assert!(lengths.is_sorted(), "{lengths:?}");
        assert!(lengths[0] < whole && lengths[lengths.len() - 1] == whole, "{lengths:?}");
    }

    #[test]
    fn a_file_that_can_t_be_read_stands_in_nobody_s_way() {
        let folder = tempfile::tempdir().unwrap();
        let waiting = Waiting::open(folder.path()).unwrap();
        fs::write(waiting.folder.join("7-t.json"), "{").unwrap();
        waiting.keep("u", &record()).unwrap();
        let bad = &waiting.all().unwrap()[0];
        assert_eq!(waiting.read(bad).unwrap(), None);
        assert_eq!(tasks(&waiting), ["u"]);
        assert_eq!(fs::read(waiting.folder.join("7-t.json.bad")).unwrap(), b"{");
    }

    #[test]
    fn a_record_with_room_costs_no_look_at_the_others() {
        let folder = tempfile::tempdir().unwrap();
        let waiting = Waiting::open(folder.path()).unwrap();
        // Whoever looked at it would set it aside.
        fs::write(waiting.folder.join("7-t.json"), "{").unwrap();
        waiting.keep("u", &record()).unwrap();
        assert_eq!(tasks(&waiting), ["t", "u"]);
    }
}
