//! `goodput history prune`: deletes old results, and gives their room on the disk back.

use anyhow::{Context, Error, Result};
use goodput_model::Bytes;
use goodput_store::{GiveBack, Old, Room, Store, StoreError};
use jiff::{SignedDuration, Timestamp};

use super::deleting::{self, is_full_disk};
use crate::args::{PruneArgs, days_kept};
use crate::commands::measured::{self, Signals};
use crate::data_dirs;
use crate::exit::Exit;
use crate::screen;

/// Deletes what is older than the user wants to keep, and reports the number, and what it freed.
pub fn run(args: &PruneArgs) -> Result<Exit> {
    let days_s = days_kept(args.keep, args.keep_days).map_err(Error::msg)?;
    if !data_dirs::has_history()? {
        screen::line(data_dirs::none_yet())?;
        return Ok(Exit::Fine);
    }
    let before = ago(args.keep)?.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let (old, mut deleted) = (Old::Before(before.clone()), 0);
    let store = match deleting::without(&old, &mut deleted) {
        Err(why) if is_full_disk(&why) => on_full_disk(&old, &before, &mut deleted),
        store => store.map(Some),
    };
    if store.is_ok() || deleted > 0 {
        let results = if deleted == 1 { "result" } else { "results" };
        screen::line(format_args!("deleted {deleted} {results} from before {before}"))?;
    }
    let Some(store) = store? else { return Ok(Exit::Fine) };
    // What was deleted just now stays as days.
    let before = ago(days_s)?.strftime("%Y-%m-%d").to_string();
    let deleted = store.delete_days_before(&before)?;
    if deleted > 0 {
        let days = if deleted == 1 { "day" } else { "days" };
        screen::line(format_args!(
            "deleted {deleted} {days} of deleted results from before {before}"
        ))?;
    }
    if let Some(freed) = give_back(&store, GiveBack::All).and_then(in_words) {
        screen::line(freed)?;
    }
    Ok(Exit::Fine)
}

/// The same on a full disk. No history, if all that is old went to make room.
fn on_full_disk(old: &Old, before: &str, deleted: &mut usize) -> Result<Option<Store>> {
    let runtime = measured::plain_runtime()?;
    // To end this process in the middle would damage the file.
    let _caught = runtime.block_on(async { Signals::listen() })?;
    match deleting::on_full_disk(old, deleted) {
        Err(why) if is_full_disk(&why) => {
            Err(why).with_context(|| format!("no result is from before {before}"))
        }
        store => store,
    }
}

/// The time this many seconds ago.
fn ago(seconds: f64) -> Result<Timestamp> {
    Ok(Timestamp::now().saturating_sub(SignedDuration::try_from_secs_f64(seconds)?)?)
}

/// Gives the room of deleted results back, or warns: they are deleted, whatever becomes of their room.
pub fn give_back(store: &Store, how: GiveBack) -> Option<Room> {
    let warn = |why: &StoreError| {
        screen::say(format_args!(
            "warning: the room of deleted results is still in the file: {why}"
        ));
    };
    store.give_back(how).inspect_err(warn).ok().flatten()
}

/// What was freed, if there was anything. What stays free in the file is worth a word if it is as much as some results.
fn in_words(Room { freed_bytes, free_bytes }: Room) -> Option<String> {
    /// Some results of a watch.
    const WORTH_BYTES: u64 = 1_000_000;
    let freed = format!("freed {} of the disk", Bytes(freed_bytes));
    match free_bytes {
        ..WORTH_BYTES => (freed_bytes > 0).then_some(freed),
        free => Some(format!(
            "{freed}; {} of the file are free for results to come (docs/history.md says how the disk gets them back)",
            Bytes(free)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_freed_and_what_was_not_is_said() {
        let words = |freed_bytes, free_bytes| in_words(Room { freed_bytes, free_bytes });
        assert_eq!(words(12_300_000, 4096).unwrap(), "freed 12.3 MB of the disk");
        assert_eq!(words(0, 4096), None);
        let old = words(0, 2_500_000_000).unwrap();
        assert!(old.starts_with("freed 0 B of the disk; 2.50 GB of the file are free"), "{old}");
    }
}
