//! Files of SQLite that older goodputs made, or that others use.

mod common;

use common::record;
use goodput_model::{BitRate, Comparison, Direction, Kind, Record};
use goodput_store::{Entry, Store, Wanted, Watched};
use rusqlite::Connection;

fn ids(store: &Store) -> Vec<i64> {
    let all = store.search(&Wanted::default()).expect("it can be read");
    all.iter().map(|entry| entry.id).collect()
}

/// The journal of a file can't be changed while another connection uses it.
#[test]
fn a_history_that_keeps_its_older_journal_is_opened_and_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("history.db");
    Store::open(&path).unwrap().add(&record("files", 1e6)).unwrap();
    let other = Connection::open(&path).unwrap();
    let mode = |db: &Connection, sql: &str| db.query_row(sql, [], |row| row.get::<_, String>(0));
    assert_eq!(mode(&other, "PRAGMA journal_mode = DELETE").unwrap(), "delete");
    other.execute_batch("BEGIN; SELECT count(*) FROM records;").unwrap();
    let store = Store::open(&path).unwrap();
    assert_eq!(mode(&other, "PRAGMA journal_mode").unwrap(), "delete");
    assert_eq!(store.list(10).unwrap().len(), 1);
}

/// Takes the table of records back to the fourth schema.
const WITHOUT_FORMATS: &str =
    "DROP TABLE schema; DROP TRIGGER described_goes; DROP TABLE described; DROP INDEX records_by_time;
     DROP INDEX records_of_target; DROP INDEX records_listed; ALTER TABLE records DROP COLUMN format;
     CREATE INDEX records_listed ON records (id, started, kind, target, goodput_bits_per_s, rule);";

#[test]
fn a_goodput_that_has_the_history_open_goes_on_when_a_newer_one_adds_formats() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("history.db");
    Store::open(&path).unwrap().add(&record("nas", 1e6)).unwrap();
    let older = Connection::open(&path).unwrap();
    older.execute_batch(&format!("{WITHOUT_FORMATS} PRAGMA user_version = 4")).unwrap();
    let add = "INSERT INTO records (started, kind, target, goodput_bits_per_s, rule, json)
        SELECT started, kind, target, goodput_bits_per_s, rule, json FROM records WHERE id = 1";
    let mut add = older.prepare(add).unwrap();
    let list = "SELECT count(*) FROM records INDEXED BY records_listed";
    let listed = || older.query_row(list, [], |row| row.get::<_, i64>(0));
    assert_eq!((add.execute([]).unwrap(), listed().unwrap()), (1, 2));
    let store = Store::open(&path).unwrap();
    store.add(&record("nas", 2e6)).unwrap();
    assert_eq!((add.execute([]).unwrap(), listed().unwrap()), (1, 4));
    let formats: Vec<_> =
        store.list(10).unwrap().iter().map(|entry| (entry.id, entry.format)).collect();
    assert_eq!(formats, [(4, 1), (3, 1), (2, 1), (1, 1)]);
    assert_eq!(store.get(4).unwrap(), store.get(1).unwrap());
}

#[test]
fn a_history_of_the_first_schema_can_be_searched() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("history.db");
    Store::open(&path).unwrap().add(&record("nas", 1e6)).unwrap();
    let db = Connection::open(&path).unwrap();
    db.execute_batch(&format!(
        "{WITHOUT_FORMATS} DROP INDEX records_listed; DROP INDEX records_by_target;
         DROP INDEX records_by_rule; DROP TABLE series; DROP TABLE watched; DROP TABLE spent;
         PRAGMA user_version = 1"
    ))
    .unwrap();
    drop(db);
    assert_eq!(ids(&Store::open(&path).unwrap()), [1]);
}

/// Lists say how a result was measured, also of what a goodput from before that kept, and of a record that is damaged
/// nothing.
#[test]
fn a_list_says_how_each_result_was_measured_and_what_several_runs_found() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("history.db");
    let store = Store::open(&path).unwrap();
    let mut reverse = record("nas", 1e6);
    (reverse.plan.direction, reverse.plan.flows) = (Direction::Reverse, 4);
    let mut compared = record("nas", 1e6);
    compared.kind = Kind::Compare;
    compared.comparison = Some(comparison());
    let all = [reverse, compared, record("nas", 1e6)];
    for record in &all {
        store.add(record).unwrap();
    }
    let shown = |store: &Store| -> Vec<(Option<String>, Option<String>)> {
        let of = |entry: Entry| (entry.traffic.map(|one| one.to_string()), entry.answer);
        store.list(10).unwrap().into_iter().rev().map(of).collect()
    };
    let ways = ["TCP reverse, 4 flows", "TCP forward, 1 flow", "TCP forward, 1 flow"];
    let some = |text: &str| Some(text.to_owned());
    let answers = [None, some("none of 0 arms is proven better"), None];
    let expected: Vec<_> = ways.map(some).into_iter().zip(answers).collect();
    assert_eq!(shown(&store), expected);
    drop(store);
    let db = Connection::open(&path).unwrap();
    db.execute_batch(&format!(
        "{WITHOUT_FORMATS} UPDATE records SET json = 'damaged' WHERE id = 3; PRAGMA user_version = 4"
    ))
    .unwrap();
    drop(db);
    let store = Store::open(&path).unwrap();
    let expected: Vec<_> =
        [some(ways[0]), some(ways[1]), None].into_iter().map(|way| (way, None)).collect();
    assert_eq!(shown(&store), expected);
    store.delete_before("9").unwrap();
    let left = "SELECT count(*) FROM described";
    let left: i64 = Connection::open(&path).unwrap().query_row(left, [], |row| row.get(0)).unwrap();
    assert_eq!(left, 0, "what describes a record goes with it");
}

fn comparison() -> Comparison {
    let stopped = "every arm was decided".into();
    Comparison { stopped, ..Comparison::new(Vec::new(), Vec::new()) }
}

/// What was spent is in the history of the third schema with the tests that have a result.
#[test]
fn what_was_spent_is_found_in_a_history_of_an_older_schema() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("history.db");
    let store = Store::open(&path).unwrap();
    let tested = Record { started: "2026-01-01T10:00:00Z".into(), ..record("nas", 1e6) };
    let watched = Watched { plan: "{}".into(), goodput: Some(BitRate(1e6)) };
    store.add_watched(&tested, &watched).unwrap();
    drop(store);
    let db = Connection::open(&path).unwrap();
    db.execute_batch(&format!(
        "{WITHOUT_FORMATS} DROP TABLE spent; DROP INDEX watched_by_start;
         DROP INDEX watched_by_series; ALTER TABLE watched DROP COLUMN begins_change;
         CREATE INDEX watched_by_series ON watched (series, record, started, goodput_bits_per_s);
         ALTER TABLE watched ADD COLUMN bytes INTEGER NOT NULL DEFAULT 100;
         CREATE INDEX watched_by_start ON watched (started, series, bytes); PRAGMA user_version = 3"
    ))
    .unwrap();
    drop(db);
    let store = Store::open(&path).unwrap();
    let spent = store.spent("nas", "2026-01-01").unwrap();
    assert_eq!(spent, [("2026-01-01T10:00:00Z".to_owned(), 100)]);
    assert_eq!(store.tests_of("nas", "{}", 10).unwrap().len(), 1);
}
