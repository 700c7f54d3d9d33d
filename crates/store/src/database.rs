//! What the history asks of a database. Whatever does not depend on the database is in [`crate::Store`].

use std::fmt;

use crate::days::{Counted, Part};
use crate::entry::Entry;
use crate::error::StoreError;
use crate::kept::{Added, Kept};
use crate::old::Old;
use crate::room::{GiveBack, Room};
use crate::wanted::{Names, Wanted};
use crate::watched::{Series, Tested, ToldChange, Watched};

/// A database with records. Each action is whole, or it fails and changes nothing.
pub(crate) trait Database: fmt::Debug + Send {
    /// Whether this is still the database that would be opened now.
    fn is_in_place(&self) -> bool;

    /// Why it was not brought to this goodput's schema, though it is read.
    fn is_read_without(&self) -> Option<&StoreError> {
        None
    }

    /// Whether something failed since it was opened that waiting does not help against.
    fn has_failed(&self) -> bool;

    /// Stores a record, of a watch's test if it is `watched`; on return it is on disk. Returns its number.
    fn add(&self, kept: &Kept, watched: Option<&Watched>) -> Result<i64, StoreError>;

    /// Stores a record unless there is one with this key, however many try at once; on return it is on disk. Says which one
    /// is there.
    fn add_once(&self, kept: &Kept, key: &str) -> Result<Added, StoreError>;

    /// The number of the record with this key.
    fn with_key(&self, key: &str) -> Result<Option<i64>, StoreError>;

    /// The numbers of the records of this target that began at this time, newest first.
    fn begun_at(&self, started: &str, target: &str) -> Result<Vec<i64>, StoreError>;

    /// The wanted records, those that began last first; of those that began at one time, the one with the largest number.
    fn search(&self, wanted: &Wanted) -> Result<Vec<Entry>, StoreError>;

    /// Targets that contain this text, in capitals or not (ASCII); no more than `most`.
    fn targets_with(&self, text: &str, most: usize) -> Result<Vec<String>, StoreError>;

    /// The targets and limits that occur.
    fn names(&self) -> Result<Names, StoreError>;

    /// The JSON of the record `id`, as it was kept; `None` without such a record.
    fn json(&self, id: i64) -> Result<Option<Vec<u8>>, StoreError>;

    /// The JSON of the record `id` without its detail, if it is kept; otherwise the whole. `None` without such a record.
    fn outline(&self, id: i64) -> Result<Option<Vec<u8>>, StoreError>;

    /// A part of what is old: its `most` oldest, the one behind them, and all that began with that. `None` if there are no
    /// more than `most`.
    fn first_part(&self, old: &Old, most: u32) -> Result<Option<Old>, StoreError>;

    /// Deletes what is old in one step, but not what was spent in the last day. Adds the number of records to `deleted`, also of
    /// those before a failure. They are counted in their days, in the same step: each once, however many delete at once.
    fn delete(&self, old: &Old, deleted: &mut usize) -> Result<(), StoreError>;

    /// Gives the room of deleted records back to the file system. `None` if the database itself does so.
    fn give_back(&self, how: GiveBack) -> Result<Option<Room>, StoreError>;

    /// What is counted of deleted records in this part, the newest day first. What is of one day and one kind of traffic
    /// stands together.
    fn days(&self, part: &Part) -> Result<Vec<Counted>, StoreError>;

    /// Adds counts of another history, all or none; a count keeps the larger number. They are in the order of their key.
    fn add_days(&self, counted: &[Counted]) -> Result<(), StoreError>;

    /// Deletes the days before this one. Returns their number.
    fn delete_days_before(&self, day: &str) -> Result<usize, StoreError>;

    /// Targets with deleted records that are counted, at most so many, in alphabetical order.
    fn targets_with_days(&self, most: u32) -> Result<Vec<String>, StoreError>;

    /// The newest whole tests of a series, newest first, at most `most`.
    fn tests_of(&self, series: &Series, most: usize) -> Result<Vec<Tested>, StoreError>;

    /// Marks the test with this record as the first one after a change of the goodput, and keeps what was said of it.
    fn mark_change(&self, record: i64, told: &ToldChange) -> Result<(), StoreError>;

    /// The newest changes of the goodput of targets that contain this text, in capitals or not (ASCII), newest first, at most
    /// `most`.
    fn changes(&self, text: &str, most: usize) -> Result<Vec<ToldChange>, StoreError>;

    /// Keeps what was said of a change of another quantity, after which this record is the first one.
    fn keep_shift(&self, record: i64, quantity: &str, told: &ToldChange) -> Result<(), StoreError>;

    /// As [`Database::changes`], of other quantities.
    fn shifts(&self, text: &str, most: usize) -> Result<Vec<ToldChange>, StoreError>;

    /// Since when tests of a series have had no result; `None` if the last one had one.
    fn gone_since(&self, series: &Series) -> Result<Option<String>, StoreError>;

    /// Keeps since when tests of a series have had no result.
    fn set_gone(&self, series: &Series, since: Option<&str>) -> Result<(), StoreError>;

    /// Notes what a test may cost. Returns the number of the note.
    fn spend(&self, target: &str, started: &str, bytes: i64) -> Result<i64, StoreError>;

    /// Corrects a note.
    fn settle(&self, note: i64, bytes: i64) -> Result<(), StoreError>;

    /// When the tests of `target` that began at `from` or later began, in that order, and what each cost.
    fn spent(&self, target: &str, from: &str) -> Result<Vec<(String, i64)>, StoreError>;

    /// The records of all tests of watches and when each began, in the order in which they were stored.
    fn watched_times(&self) -> Result<Vec<(i64, String)>, StoreError>;

    /// Which of these records are tests of watches.
    fn watched_among(&self, ids: &[i64]) -> Result<Vec<i64>, StoreError>;

    /// All series, the oldest first.
    fn series(&self) -> Result<Vec<Series>, StoreError>;
}
