//! Deletes old results, also on a disk without a free byte.

use goodput_store::{Old, Store, StoreError};

use crate::data_dirs;

/// The history without what is old; counts what was deleted.
///
/// # Errors
/// Those of the history; on a full disk, [`on_full_disk`] may go on.
pub fn without(old: &Old, deleted: &mut usize) -> anyhow::Result<Store> {
    let store = Store::open(data_dirs::place()?)?;
    delete(&store, old, deleted)?;
    Ok(store)
}

/// Deletes what is old; counts what was deleted, also if it fails.
///
/// # Errors
/// Those of the history.
pub fn delete(store: &Store, old: &Old, deleted: &mut usize) -> Result<(), StoreError> {
    loop {
        let before = *deleted;
        store.delete_and_count(old, deleted)?;
        if *deleted == before {
            return Ok(());
        }
    }
}

/// The same where the disk has no room for the log of a deletion: a few results go first, until it has. No history, if all
/// went that way. Nobody else may have the history open, this process included, and nothing may end this process meanwhile:
/// the file would be damaged.
///
/// # Errors
/// Those of the history, and that it takes room, with what to do about it. Nothing was deleted if the disk is still full
/// ([`is_full_disk`]).
pub fn on_full_disk(old: &Old, deleted: &mut usize) -> anyhow::Result<Option<Store>> {
    loop {
        let first = Store::make_room(data_dirs::place()?, old)?;
        *deleted += first;
        match without(old, deleted) {
            Err(why) if is_full_disk(&why) && first > 0 => {}
            Err(why) if is_full_disk(&why) && *deleted > 0 => return Ok(None),
            store => return store.map(Some),
        }
    }
}

/// Whether something failed because the disk of the history is full.
pub fn is_full_disk(why: &anyhow::Error) -> bool {
    why.downcast_ref().is_some_and(StoreError::is_full_disk)
}
