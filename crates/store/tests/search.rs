//! A search finds what it is asked for, from the newest on, whatever is in the names.

mod common;

use common::record;
use goodput_store::{Names, Store, Wanted};
use rusqlite::Connection;

fn wanted() -> Wanted {
    Wanted::default()
}

fn ids(store: &Store, wanted: &Wanted) -> Vec<i64> {
    store.search(wanted).unwrap().iter().map(|entry| entry.id).collect()
}

#[test]
fn each_condition_narrows_the_list() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(&directory.path().join("history.db")).unwrap();
    for (target, started, limit) in [
        ("NAS-1", "2026-01-01T10:00:00Z", "path-loss"),
        ("nas-2", "2026-01-03T10:00:00Z", "none"),
        // The clock was set back.
        ("100%_nas", "2026-01-02T10:00:00Z", "none"),
    ] {
        let mut record = record(target, 1e6);
        record.started = started.into();
        record.verdict.limit = limit.into();
        store.add(&record).unwrap();
    }
    let text = |text: &str| Wanted { text: Some(text.into()), ..wanted() };
    assert_eq!(ids(&store, &wanted()), [3, 2, 1]);
    assert_eq!(ids(&store, &Wanted { limit: 2, ..wanted() }), [3, 2]);
    assert_eq!(ids(&store, &Wanted { before: Some(3), ..wanted() }), [2, 1]);
    assert_eq!(ids(&store, &text("nas-")), [2, 1]);
    assert_eq!(ids(&store, &text("%_")), [3], "no pattern");
    assert_eq!(ids(&store, &Wanted { target: Some("nas-2".into()), ..wanted() }), [2]);
    assert_eq!(ids(&store, &Wanted { limited_by: Some("none".into()), ..wanted() }), [3, 2]);
    let days =
        Wanted { from: Some("2026-01-02".into()), until: Some("2026-01-03".into()), ..wanted() };
    assert_eq!(ids(&store, &days), [3]);
    let names = Names {
        targets: ["100%_nas", "NAS-1", "nas-2"].map(String::from).into(),
        limits: ["none", "path-loss"].map(String::from).into(),
    };
    assert_eq!(store.names().unwrap(), names);
}

#[test]
fn a_history_of_the_first_schema_can_be_searched() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("history.db");
    Store::open(&path).unwrap().add(&record("nas", 1e6)).unwrap();
    let db = Connection::open(&path).unwrap();
    db.execute_batch("DROP INDEX records_listed; PRAGMA user_version = 1").unwrap();
    drop(db);
    assert_eq!(ids(&Store::open(&path).unwrap(), &wanted()), [1]);
}
