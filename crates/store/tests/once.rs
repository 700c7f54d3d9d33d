//! A record with a key is stored once, however many add it, and whenever.

mod common;
mod databases;

use std::collections::BTreeSet;
use std::sync::Barrier;
use std::thread;

use common::record;
use databases::{History, in_each};
use goodput_store::Added;

const WRITERS: usize = 8;

#[test]
fn a_record_that_is_added_again_is_the_one_that_is_there() {
    in_each(|history| {
        let store = history.open();
        let first = store.add_once(&record("nas", 1e6), "t-1").unwrap();
        drop(store);
        let store = history.open();
        let again = store.add_once(&record("nas", 2e6), "t-1").unwrap();
        assert_eq!(again, Added { id: first.id, is_new: false });
        let first = first.id;
        let second = store.add_once(&record("nas", 1e6), "t-2").unwrap();
        assert!(second.is_new);
        let second = second.id;
        let third = store.add(&record("nas", 1e6)).unwrap();
        assert_eq!(BTreeSet::from([first, second, third]).len(), 3);
        assert_eq!(store.list(10).unwrap().len(), 3);
        assert_eq!(store.with_key("t-1").unwrap(), Some(first));
        assert_eq!(store.with_key("t-3").unwrap(), None);
        let started = record("nas", 1e6).started;
        assert_eq!(store.begun_at(&started, "nas").unwrap(), [third, second, first]);
        assert_eq!(store.begun_at(&started, "na").unwrap(), [0; 0]);
        assert_eq!(store.begun_at("2026", "nas").unwrap(), [0; 0]);
        assert_eq!(store.get(first).unwrap(), record("nas", 1e6), "the first one stays");
    });
}

#[test]
fn threads_that_add_the_same_at_once_add_one() {
    in_each(|history| {
        drop(history.open());
        let start = Barrier::new(WRITERS);
        let add = || {
            let store = history.open();
            start.wait();
            store.add_once(&record("nas", 1e6), "t-1").unwrap()
        };
        let added: Vec<Added> = thread::scope(|scope| {
            let writers: Vec<_> = (0..WRITERS).map(|_| scope.spawn(add)).collect();
            writers.into_iter().map(|writer| writer.join().unwrap()).collect()
        });
        let ids: BTreeSet<i64> = added.iter().map(|added| added.id).collect();
        assert_eq!(ids.len(), 1);
        assert_eq!(added.iter().filter(|added| added.is_new).count(), 1);
        assert_eq!(history.open().list(10).unwrap().len(), 1);
    });
}

#[test]
fn a_record_that_was_deleted_can_be_added_again() {
    in_each(|history| {
        let store = history.open();
        let first = store.add_once(&record("nas", 1e6), "t-1").unwrap();
        assert_eq!(store.delete_before("9999").unwrap(), 1);
        let second = store.add_once(&record("nas", 1e6), "t-1").unwrap();
        assert!(second.id > first.id && second.is_new);
        assert_eq!(store.list(10).unwrap().len(), 1);
    });
}

/// What takes a history back to the schema without keys.
fn older(history: &History) -> &'static str {
    match history.name.starts_with("postgres:") {
        true => "DROP TABLE keyed; UPDATE schema SET number = 2",
        false => "DROP TRIGGER keyed_goes; DROP TABLE keyed; UPDATE schema SET number = 8",
    }
}

#[test]
fn a_history_of_an_older_schema_gets_keys_and_keeps_its_records() {
    in_each(|history| {
        let before = history.open().add(&record("nas", 1e6)).unwrap();
        history.sql(older(history));
        let store = history.open();
        let id = store.add_once(&record("nas", 2e6), "t-1").unwrap().id;
        assert_eq!(store.add_once(&record("nas", 2e6), "t-1").unwrap().id, id);
        assert_eq!(store.get(before).unwrap(), record("nas", 1e6));
        assert_eq!(store.list(10).unwrap().len(), 2);
    });
}

/// Additions leave alone what an older goodput needs, so it opens the history as before.
#[test]
fn an_older_goodput_can_use_a_history_with_keys() {
    in_each(|history| {
        let store = history.open();
        store.add_once(&record("nas", 1e6), "t-1").unwrap();
        let needed = match history.name.starts_with("postgres:") {
            true => "DO $$ BEGIN ASSERT (SELECT needed FROM schema) = 1; END $$",
            false => {
                "CREATE TEMP TABLE needed (n INTEGER CHECK (n = 5));
                INSERT INTO needed SELECT user_version FROM pragma_user_version;"
            }
        };
        history.sql(needed);
    });
}
