//! What the history of a test's home has.

use std::path::Path;

use goodput_model::Record;
use goodput_store::{Store, Wanted};

/// All records, as the history orders them.
pub fn records(home: &Path) -> Vec<Record> {
    let store = Store::open(&home.join("goodput/history.db")).expect("it can be made");
    let found = store.search(&Wanted::default()).expect("it can be read");
    found.iter().map(|entry| store.get(entry.id).expect("it is a record")).collect()
}
