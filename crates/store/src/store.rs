//! The history: stores, lists and returns records, whatever database has them.

use std::collections::BTreeSet;

use goodput_model::Record;

use crate::compat::read_record;
use crate::database::Database;
use crate::day_counts::DayCounts;
use crate::days::{Day, DayPosition, MAX_DAYS, Part, days, keep_newest};
use crate::entry::{Entry, Newest};
use crate::error::{RecordError, StoreError};
use crate::kept::{Added, Kept};
use crate::old::Old;
use crate::place::Place;
use crate::postgres::Postgres;
use crate::room::{GiveBack, Room};
use crate::sqlite::{Sqlite, make_room};
use crate::summary::Summary;
use crate::wanted::{MAX_NAMES, Names, Wanted};
use crate::watched::{Series, Tested, ToldChange, Watched, whole};

/// How many records are deleted in one step. PostgreSQL gives up a step of two minutes, and writers of a file wait for each
/// step; of millions, one step would take longer.
const MAX_DELETED_AT_ONCE: u32 = 2000;

/// How many records of a kind and target are searched.
const MAX_SEARCHED_RECORDS: u32 = 50;

/// The history, open.
#[derive(Debug)]
pub struct Store {
    db: Box<dyn Database>,
}

impl Store {
    /// Opens the history at `place`; makes it if it doesn't exist.
    ///
    /// A file and its directories are for the user alone (mode 0700, as the XDG Base Directory Specification requires). The
    /// file is never reached through a link, and the directory belongs to this user or to root and is writable for nobody
    /// else. A database gets a schema of its own, and its connection is opened again whenever it was lost.
    ///
    /// Errors: no permission, disk full, a link or a directory that others can change, the file is
    /// damaged, another program's, or of a newer goodput; a server that is away or refuses.
    pub fn open(place: impl Into<Place>) -> Result<Self, StoreError> {
        Ok(Self {
            db: match place.into() {
                Place::File(path) => Box::new(Sqlite::open(&path)?),
                Place::Postgres(server) => Box::new(Postgres::open(&server)?),
            },
        })
    }

    /// Opens the history to read it. Like [`Store::open`], but if it can't be written (a full disk, a file system that is
    /// read-only, a user who may only read), it is read as it is, with all that was ever stored. A file of an older goodput
    /// lacks what came later ([`Store::is_read_without`]). If there is no file, it is empty, and no file is made.
    ///
    /// Errors: as those of [`Store::open`], and a history of a schema that is too old to be read as it is.
    pub fn open_to_read(place: impl Into<Place>) -> Result<Self, StoreError> {
        match place.into() {
            Place::File(path) => Ok(Self { db: Box::new(Sqlite::open_to_read(&path)?) }),
            // What is current is not written to.
            database @ Place::Postgres(_) => Self::open(database),
        }
    }

    /// Why a file of an older goodput, which could not be renewed, is read as it is. It then lacks what later goodputs added,
    /// such as how results were measured, and lists take longer. `None`: it lacks nothing.
    pub fn is_read_without(&self) -> Option<&StoreError> {
        self.db.is_read_without()
    }

    /// Whether the open file is still the one at its path.
    pub fn is_in_place(&self) -> bool {
        self.db.is_in_place()
    }

    /// Whether something failed since it was opened that waiting does not help against, such as damage.
    pub fn has_failed(&self) -> bool {
        self.db.has_failed()
    }

    /// Stores `record`; on return it is on disk. Returns its number.
    pub fn add(&self, record: &Record) -> Result<i64, StoreError> {
        self.db.add(&Kept::of(record)?, None)
    }

    /// Stores `record` unless the history has one with this key, which tells it apart from all others; on return it is on
    /// disk. Several may add it at once, and whoever does not know whether it was stored may try again. Says which one the
    /// history has: it may be another version of the same.
    pub fn add_once(&self, record: &Record, key: &str) -> Result<Added, StoreError> {
        self.db.add_once(&Kept::of(record)?, key)
    }

    /// The number of the record that was added under this key, if it is there.
    pub fn with_key(&self, key: &str) -> Result<Option<i64>, StoreError> {
        self.db.with_key(key)
    }

    /// The numbers of the records of this target that began at this time, as they have it: RFC 3339, UTC.
    pub fn begun_at(&self, started: &str, target: &str) -> Result<Vec<i64>, StoreError> {
        self.db.begun_at(started, target)
    }

    /// The newest `limit` records, newest first.
    pub fn list(&self, limit: u32) -> Result<Vec<Entry>, StoreError> {
        self.search(&Wanted { limit, ..Wanted::default() })
    }

    /// The newest record that began before `now` (RFC 3339, UTC); if none did, the newest one of all.
    pub fn last(&self, now: &str) -> Result<Option<Entry>, StoreError> {
        let one = Wanted { limit: 1, ..Wanted::default() };
        Ok(self.newest_by(one, now)?.into_iter().next())
    }

    /// The wanted records, newest first: by the time at which each began, whenever it was stored. Of those that began at one
    /// time, the last one stored comes first.
    pub fn search(&self, wanted: &Wanted) -> Result<Vec<Entry>, StoreError> {
        match self.narrowed(wanted)? {
            Some(wanted) => self.db.search(&wanted),
            None => Ok(Vec::new()),
        }
    }

    /// The wanted records, newest first; those that began at `now` or later come last.
    fn newest_by(&self, wanted: Wanted, now: &str) -> Result<Vec<Entry>, StoreError> {
        let later = wanted.later(now);
        let mut found = self.search(&wanted.by(now))?;
        if let Some(later) = later {
            let limit = later.limit.saturating_sub(found.len().try_into().unwrap_or(u32::MAX));
            found.extend(self.search(&Wanted { limit, ..later })?);
        }
        Ok(found)
    }

    /// A search for a text, as the search for the one target that has it; `None` if no target has it. If several have
    /// it, the search stays as it is: from the newest record on, it soon finds enough.
    fn narrowed(&self, wanted: &Wanted) -> Result<Option<Wanted>, StoreError> {
        let (Some(text), None) = (&wanted.text, &wanted.target) else {
            return Ok(Some(wanted.clone()));
        };
        Ok(match &mut self.db.targets_with(text, 2)?[..] {
            [] => None,
            [only] => Some(Wanted { target: Some(std::mem::take(only)), ..wanted.clone() }),
            _ => Some(wanted.clone()),
        })
    }

    /// The targets and limits that occur in the history, and who measured.
    pub fn names(&self) -> Result<Names, StoreError> {
        self.db.names()
    }

    /// The targets of results and of days of deleted results, in alphabetical order, at most [`MAX_NAMES`].
    pub fn targets(&self) -> Result<Vec<String>, StoreError> {
        let mut all: BTreeSet<String> = self.db.names()?.targets.into_iter().collect();
        all.extend(self.db.targets_with_days(MAX_NAMES as u32)?);
        Ok(all.into_iter().take(MAX_NAMES).collect())
    }

    /// The record with the number `id`.
    ///
    /// Errors: there is none, or it can't be read.
    pub fn get(&self, id: i64) -> Result<Record, StoreError> {
        self.read(id, read_record)
    }

    /// The same in short. It takes a fraction of the time, since most of a record is samples.
    ///
    /// Errors: there is none, or it can't be read.
    pub fn summary(&self, id: i64) -> Result<Summary, StoreError> {
        self.read(id, Summary::read)
    }

    /// A test without its detail: its plan, ends, result and verdict, and nothing that was seen of it. Other records, and those
    /// that an older goodput stored, come whole.
    ///
    /// Errors: there is none, or it can't be read.
    pub fn outline(&self, id: i64) -> Result<Record, StoreError> {
        of_json(id, self.db.outline(id)?, read_record)
    }

    fn read<T>(
        &self,
        id: i64,
        read: impl FnOnce(&str) -> Result<T, RecordError>,
    ) -> Result<T, StoreError> {
        of_json(id, self.db.json(id)?, read)
    }

    /// The newest record of this kind and target that `fits`, among the last 50. Those that can't be read hide no other, and
    /// neither do those that began at `now` (RFC 3339, UTC) or later.
    ///
    /// Errors: the history can't be read.
    pub fn newest(
        &self,
        kind: &str,
        target: &str,
        now: &str,
        fits: impl Fn(&Record) -> bool,
    ) -> Result<Newest, StoreError> {
        let [kind, target] = [kind, target].map(|name| Some(name.to_owned()));
        let wanted = Wanted { kind, target, limit: MAX_SEARCHED_RECORDS, ..Wanted::default() };
        let mut unread = Vec::new();
        for entry in self.newest_by(wanted, now)? {
            match self.get(entry.id) {
                Ok(record) if fits(&record) => return Ok(Newest { record: Some(record), unread }),
                // Another process may have deleted it meanwhile.
                Ok(_) | Err(StoreError::UnknownId { .. }) => {}
                Err(why @ (StoreError::Unreadable { .. } | StoreError::Corrupt { .. })) => {
                    unread.push(why);
                }
                Err(why) => return Err(why),
            }
        }
        Ok(Newest { record: None, unread })
    }

    /// The days of deleted results, newest first, at most `wanted.limit`. A day does not know which watch, verdict or host each
    /// of its results had, nor their numbers: a search for these finds none.
    pub fn days(&self, wanted: &Wanted) -> Result<Vec<Day>, StoreError> {
        if wanted.asks_for_single_results() {
            return Ok(Vec::new());
        }
        let targets = match &wanted.target {
            Some(target) => vec![target.clone()],
            None => self.db.targets_with_days(u32::MAX)?,
        };
        let most = usize::try_from(wanted.limit).unwrap_or(usize::MAX);
        let mut found = Vec::new();
        for target in targets.iter().filter(|target| wanted.has_text(target)) {
            found.extend(self.days_of(target, wanted, most)?);
            // However many targets there are, no more is kept in memory than about what is asked for.
            if found.len() / 2 > most {
                keep_newest(&mut found, most);
            }
        }
        keep_newest(&mut found, most);
        Ok(found)
    }

    /// The counts of the days of deleted results, by target, for another history. `each` gets about a month of them at a time,
    /// the newest first.
    ///
    /// Errors: the history can't be read, or what `each` says.
    pub fn day_counts<E: From<StoreError>>(
        &self,
        wanted: &Wanted,
        mut each: impl FnMut(Vec<DayCounts>) -> Result<(), E>,
    ) -> Result<(), E> {
        if wanted.asks_for_single_results() {
            return Ok(());
        }
        let targets = match &wanted.target {
            Some(target) => vec![target.clone()],
            None => self.db.targets_with_days(u32::MAX)?,
        };
        for target in targets.iter().filter(|target| wanted.has_text(target)) {
            let mut part = Part::first(target, wanted);
            loop {
                let counted = self.db.days(&part)?;
                let Some(last) = counted.last() else { break };
                part.until.clone_from(&last.of.day);
                each(DayCounts::of(&counted))?;
            }
        }
        Ok(())
    }

    /// Adds days of another history, in parts: others can write between them. A value that this history has counted for the
    /// day already keeps the larger count: a day that is added again, as after a failure, changes nothing.
    pub fn add_days(&self, days: &[DayCounts]) -> Result<(), StoreError> {
        for part in days.chunks(MAX_DAYS as usize) {
            let mut counted: Vec<_> = part.iter().flat_map(DayCounts::counted).collect();
            // In the order of the key, so that two that add at once never wait for each other in a circle.
            counted.sort_by(|a, b| {
                (&a.of, &a.quantity, &a.value).cmp(&(&b.of, &b.quantity, &b.value))
            });
            self.db.add_days(&counted)?;
        }
        Ok(())
    }

    /// Deletes the days of deleted results before this one, like `2026-01-31`. Returns their number.
    pub fn delete_days_before(&self, day: &str) -> Result<usize, StoreError> {
        self.db.delete_days_before(day)
    }

    /// The days of deleted results of a target after a place in their list, the newest first, at most `most`. Days of one
    /// date stand in the order of their kind and traffic.
    pub fn days_after(
        &self,
        target: &str,
        place: Option<&DayPosition>,
        most: usize,
    ) -> Result<Vec<Day>, StoreError> {
        let until = place.map(DayPosition::until);
        self.some_days(Part::first(target, &Wanted { until, ..Wanted::default() }), place, most)
    }

    /// The wanted days of a target, the newest `most`.
    fn days_of(&self, target: &str, wanted: &Wanted, most: usize) -> Result<Vec<Day>, StoreError> {
        self.some_days(Part::first(target, wanted), None, most)
    }

    fn some_days(
        &self,
        mut part: Part<'_>,
        after: Option<&DayPosition>,
        most: usize,
    ) -> Result<Vec<Day>, StoreError> {
        let mut found = Vec::new();
        while found.len() < most {
            let counted = self.db.days(&part)?;
            let Some(last) = counted.last() else { break };
            part.until.clone_from(&last.of.day);
            let fits = |day: &Day| after.is_none_or(|place| place.is_before(day));
            found.extend(days(&counted).into_iter().filter(fits));
        }
        found.truncate(most);
        Ok(found)
    }

    /// Deletes what is old. Returns the number of records; on a full disk, these may be only some, and the next call goes on.
    /// Numbers are not reused. Their days ([`Store::days`]) and what watches spent in the last 24 hours stay known.
    ///
    /// The oldest go first, and not all at once: others can write meanwhile, and after a failure, what was deleted stays
    /// deleted.
    pub fn delete(&self, old: &Old) -> Result<usize, StoreError> {
        let mut deleted = 0;
        self.delete_and_count(old, &mut deleted)?;
        Ok(deleted)
    }

    /// The same; adds the number of records to `deleted`, also of those before a failure.
    pub fn delete_and_count(&self, old: &Old, deleted: &mut usize) -> Result<(), StoreError> {
        self.delete_in_parts(old, MAX_DELETED_AT_ONCE, deleted)
    }

    /// The same, at least so many at a time if there are more, with all that began at the same time.
    fn delete_in_parts(&self, old: &Old, most: u32, deleted: &mut usize) -> Result<(), StoreError> {
        while let Some(part) = self.db.first_part(old, most)? {
            self.db.delete(&part, deleted)?;
        }
        self.db.delete(old, deleted)
    }

    /// Deletes the records that began before `started`, RFC 3339, UTC, as [`Store::delete`] does.
    pub fn delete_before(&self, started: &str) -> Result<usize, StoreError> {
        self.delete(&Old::Before(started.into()))
    }

    /// Deletes the tests of watches with the numbers up to `last`, with their records, as [`Store::delete`] does.
    pub fn delete_watched(&self, last: i64) -> Result<usize, StoreError> {
        self.delete(&Old::Watched(last))
    }

    /// Deletes the oldest of what is old on a full disk, which then has room for [`Store::delete`]. Returns the number of
    /// records; 0 if there is none, or if the history is in a database. For some milliseconds, nothing may end this process:
    /// the file would be damaged. Nobody else may have the file open, this process included.
    ///
    /// # Errors
    /// It takes room, with what to do about it.
    pub fn make_room(place: impl Into<Place>, old: &Old) -> Result<usize, StoreError> {
        match place.into() {
            Place::File(path) => make_room(&path, old),
            Place::Postgres(_) => Ok(0),
        }
    }

    /// Gives the room that deleted records left back to the file system; `None` if the database decides that. Others may
    /// read and write meanwhile, except for the seconds in which a file of an older goodput is written anew. This happens
    /// only with [`GiveBack::All`], and if the rest is small: they would give up waiting.
    ///
    /// Errors: the disk has no room for what is moved, or another process keeps the history locked. All records are kept.
    pub fn give_back(&self, how: GiveBack) -> Result<Option<Room>, StoreError> {
        self.db.give_back(how)
    }
}

/// Reads the JSON of the record `id`.
fn of_json<T>(
    id: i64,
    json: Option<Vec<u8>>,
    read: impl FnOnce(&str) -> Result<T, RecordError>,
) -> Result<T, StoreError> {
    let json = json.ok_or(StoreError::UnknownId { id })?;
    let text = str::from_utf8(&json).map_err(|_| RecordError::Damaged);
    text.and_then(read).map_err(|source| StoreError::Unreadable { id, source })
}

/// The tests of `goodput watch`: series of tests with one plan, and what all tests cost, also those without a result.
impl Store {
    /// Stores the record of a watch's test. Returns its number.
    pub fn add_watched(&self, record: &Record, watched: &Watched) -> Result<i64, StoreError> {
        self.db.add(&Kept::of(record)?, Some(watched))
    }

    /// The newest whole tests of `target` with this plan, at most `most`, in the order in which they were stored.
    pub fn tests_of(
        &self,
        target: &str,
        plan: &str,
        most: usize,
    ) -> Result<Vec<Tested>, StoreError> {
        let series = Series { target: target.into(), plan: plan.into() };
        let mut tests = self.db.tests_of(&series, most)?;
        tests.reverse();
        Ok(tests)
    }

    /// Marks the test with this record as the first one after a change of its path's goodput, and keeps what was said of it,
    /// as long as the record.
    pub fn mark_change(&self, record: i64, told: &ToldChange) -> Result<(), StoreError> {
        self.db.mark_change(record, told)
    }

    /// The newest changes of targets that contain this text, in capitals or not (ASCII), at most `most`, in the order of
    /// their records; those of other hosts first, of which there may be fewer for that.
    pub fn changes(&self, text: &str, most: usize) -> Result<Vec<ToldChange>, StoreError> {
        let mut changes = self.db.changes(text, most)?;
        changes.reverse();
        Ok(changes)
    }

    /// Keeps what was said of a lasting change of another quantity than the goodput, as long as the first record after it.
    pub fn keep_shift(
        &self,
        record: i64,
        quantity: &str,
        told: &ToldChange,
    ) -> Result<(), StoreError> {
        self.db.keep_shift(record, quantity, told)
    }

    /// As [`Store::changes`], of other quantities than the goodput.
    pub fn shifts(&self, text: &str, most: usize) -> Result<Vec<ToldChange>, StoreError> {
        let mut shifts = self.db.shifts(text, most)?;
        shifts.reverse();
        Ok(shifts)
    }

    /// When the first test of this series without a result began, since the last one with a result; RFC 3339, UTC.
    pub fn gone_since(&self, series: &Series) -> Result<Option<String>, StoreError> {
        self.db.gone_since(series)
    }

    /// Keeps since when tests of this series have had no result; `None` if the last one had one.
    pub fn set_gone(&self, series: &Series, since: Option<&str>) -> Result<(), StoreError> {
        self.db.set_gone(series, since)
    }

    /// Notes that a test of `target`, which begins at `started` (RFC 3339, UTC), may cost `bytes`. Returns the number of
    /// the note, for [`Store::settle`]. A watch that is killed before has spent what its test might have cost.
    pub fn spend(&self, target: &str, started: &str, bytes: u64) -> Result<i64, StoreError> {
        self.db.spend(target, started, whole(bytes))
    }

    /// Corrects a note of [`Store::spend`]: what the test really cost, with a result or without one.
    pub fn settle(&self, note: i64, bytes: u64) -> Result<(), StoreError> {
        self.db.settle(note, whole(bytes))
    }

    /// When the tests of `target` that began at `from` or later began, and the bytes that each cost.
    pub fn spent(&self, target: &str, from: &str) -> Result<Vec<(String, u64)>, StoreError> {
        let mut spent = self.db.spent(target, from)?;
        // Several may have begun at one time; an index knows no order of those.
        spent.sort();
        let counted = |bytes: i64| u64::try_from(bytes).unwrap_or_default();
        Ok(spent.into_iter().map(|(started, bytes)| (started, counted(bytes))).collect())
    }

    /// The records of all tests and when each began, in the order in which they were stored.
    pub fn watched_times(&self) -> Result<Vec<(i64, String)>, StoreError> {
        self.db.watched_times()
    }

    /// Which of these records are tests of a watch.
    pub fn watched_among(&self, entries: &[Entry]) -> Result<BTreeSet<i64>, StoreError> {
        let ids: Vec<i64> = entries.iter().map(|entry| entry.id).collect();
        Ok(self.db.watched_among(&ids)?.into_iter().collect())
    }

    /// All series, the oldest first.
    pub fn series(&self) -> Result<Vec<Series>, StoreError> {
        self.db.series()
    }
}

#[cfg(test)]
mod tests {
    use goodput_testing::servers::postgres;

    use super::*;

    fn deleted(store: &Store, old: &Old, most: u32) -> usize {
        let mut deleted = 0;
        store.delete_in_parts(old, most, &mut deleted).unwrap();
        deleted
    }

    #[test]
    fn what_was_deleted_before_a_failure_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history.db");
        let store = Store::open(&file).unwrap();
        let record = read_record(include_str!("../tests/golden/v1/test.json")).unwrap();
        for second in 1..=6 {
            let started = format!("2026-01-01T10:00:0{second}Z");
            store.add(&Record { started, ..record.clone() }).unwrap();
        }
        let db = rusqlite::Connection::open(&file).unwrap();
        db.execute_batch(
            "CREATE TRIGGER keep BEFORE DELETE ON records WHEN OLD.started LIKE '%:05Z'
             BEGIN SELECT RAISE(ABORT, 'not this one'); END",
        )
        .unwrap();
        let (old, mut deleted) = (Old::Before("2026-01-02".into()), 0);
        assert!(store.delete_in_parts(&old, 2, &mut deleted).is_err());
        assert!((2..5).contains(&deleted), "{deleted}");
        assert_eq!(store.search(&Wanted::default()).unwrap().len(), 6 - deleted);
    }

    /// Each of these deletes takes part of the records; some began at the same time.
    fn deletes_in_parts(store: &Store) {
        let json = include_str!("../tests/golden/v1/test.json");
        let record = read_record(json).unwrap();
        for second in [5, 1, 2, 2, 2, 3, 4, 9] {
            let started = format!("2026-01-01T10:00:0{second}Z");
            store.add(&Record { started, ..record.clone() }).unwrap();
        }
        let left = || store.search(&Wanted::default()).unwrap().len();
        let delete = |second: u8, most: u32| {
            let old = Old::Before(format!("2026-01-01T10:00:0{second}Z"));
            deleted(store, &old, most)
        };
        assert_eq!(delete(3, 2), 4);
        assert_eq!(left(), 4);
        assert_eq!((delete(9, 1), delete(9, 1)), (3, 0));
        assert_eq!(left(), 1);
        let [day] = &store.days(&Wanted::default()).unwrap()[..] else { panic!("one day") };
        assert_eq!(day.results, 7, "each is counted once");
    }

    /// The tests of watches among other records, and how large each part is.
    fn deletes_watched_in_parts(store: &Store) {
        let record = read_record(include_str!("../tests/golden/v1/test.json")).unwrap();
        let tests: Vec<_> = (1..=7)
            .map(|second| {
                let started = format!("2026-01-01T10:00:0{second}Z");
                let one = Record { started, ..record.clone() };
                store.add(&one).unwrap();
                store.add_watched(&one, &Watched { plan: "{}".into(), goodput: None }).unwrap()
            })
            .collect();
        let up_to = |test: usize| Old::Watched(tests[test]);
        assert_eq!(store.db.first_part(&up_to(5), 2).unwrap(), Some(up_to(2)));
        assert_eq!(store.db.first_part(&up_to(5), 6).unwrap(), None);
        assert_eq!(deleted(store, &up_to(5), 2), 6);
        assert_eq!(deleted(store, &up_to(5), 2), 0);
        assert_eq!(store.watched_times().unwrap().len(), 1);
        assert_eq!(store.search(&Wanted::default()).unwrap().len(), 8);
    }

    #[test]
    fn many_old_records_are_deleted_in_parts() {
        for deletes in [deletes_in_parts, deletes_watched_in_parts] {
            let folder = tempfile::tempdir().unwrap();
            deletes(&Store::open(&folder.path().join("history.db")).unwrap());
        }
        let Some(server) = postgres() else { return };
        for deletes in [deletes_in_parts, deletes_watched_in_parts] {
            let url = server.url(&server.new_database());
            deletes(&Store::open(Place::named(url.as_ref()).unwrap()).unwrap());
        }
    }
}
