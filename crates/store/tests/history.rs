//! What is kept is found again, in order, by everyone who writes at once.

mod common;

use std::path::Path;
use std::process::Stdio;
use std::sync::Barrier;
use std::thread;

use common::{CHILD_STORE, child, record};
use goodput_model::{BitRate, Comparison, Direction, Kind, Record};
use goodput_store::{Entry, Names, Series, Store, StoreError, Wanted, Watched};
use rusqlite::Connection;

const WRITERS: usize = 8;
const RECORDS: usize = 10;

#[test]
fn what_is_kept_is_listed_newest_first_and_read_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("new/goodput/history.db");
    let store = Store::open(&path).unwrap();
    assert_eq!(store.list(10).unwrap(), []);
    let first = store.add(&record("192.0.2.7", 312.4e6)).unwrap();
    let second = store.add(&record("files", 9.41e9)).unwrap();
    drop(store);

    let store = Store::open(&path).unwrap();
    let entries = store.list(10).unwrap();
    let ids: Vec<i64> = entries.iter().map(|entry| entry.id).collect();
    assert_eq!(ids, [second, first]);
    assert_eq!(store.list(1).unwrap(), entries[..1]);
    let newest = &entries[0];
    assert_eq!((newest.target.as_str(), newest.kind.as_str()), ("files", "test"));
    assert_eq!((newest.goodput, newest.limit.as_str()), (BitRate(9.41e9), "receive-window"));
    assert_eq!(store.get(first).unwrap(), record("192.0.2.7", 312.4e6));
}

#[test]
fn the_newest_of_a_kind_and_target_that_fits_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(&directory.path().join("history.db")).unwrap();
    for rate in [1e6, 2e6, 3e6] {
        store.add(&record("nas", rate)).unwrap();
    }
    store.add(&record("files", 4e6)).unwrap();
    let rate = |fits: fn(&Record) -> bool| {
        let found = store.newest("test", "nas", fits).unwrap();
        found.record.map(|record| record.result.goodput_bits_per_s)
    };
    assert_eq!(rate(|_| true), Some(BitRate(3e6)));
    assert_eq!(rate(|record| record.result.goodput_bits_per_s.0 < 3e6), Some(BitRate(2e6)));
    assert_eq!(rate(|_| false), None);
    assert_eq!(store.newest("shaping", "nas", |_| true).unwrap().record, None);
}

#[test]
fn records_that_cant_be_read_hide_no_older_one_and_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("history.db");
    let store = Store::open(&path).unwrap();
    for rate in [1e6, 2e6, 3e6] {
        store.add(&record("nas", rate)).unwrap();
    }
    let db = Connection::open(&path).unwrap();
    db.execute_batch(
        "UPDATE records SET json = substr(json, 1, 1000) WHERE id = 2;
         UPDATE records SET json = json_set(json, '$.format', 99), format = 99 WHERE id = 3",
    )
    .unwrap();
    let newest = store.newest("test", "nas", |_| true).unwrap();
    assert_eq!(newest.record.unwrap().result.goodput_bits_per_s, BitRate(1e6));
    let [newer, damaged] = &newest.unread[..] else { panic!("{:?}", newest.unread) };
    assert!(newer.to_string().starts_with("can't read record 3: it has format 99"), "{newer}");
    assert!(damaged.to_string().starts_with("can't read record 2: it is not"), "{damaged}");
    let none = store.newest("test", "nas", |_| false).unwrap();
    assert_eq!((none.record, none.unread.len()), (None, 2));
}

#[test]
fn an_unknown_number_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(&directory.path().join("history.db")).unwrap();
    let error = store.get(41).unwrap_err();
    assert!(matches!(error, StoreError::UnknownId { id: 41 }));
    let text = error.to_string();
    assert!(text.contains("41") && text.contains("goodput history"), "{text}");
}

#[test]
fn a_record_with_an_impossible_number_is_refused_before_it_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(&directory.path().join("history.db")).unwrap();
    let error = store.add(&record("192.0.2.7", f64::NAN)).unwrap_err();
    assert!(matches!(error, StoreError::Unkeepable { .. }), "{error}");
    assert_eq!(store.list(10).unwrap(), []);
}

fn write_records(path: &Path) {
    let store = Store::open(path).expect("opens beside the others");
    for number in 0..RECORDS {
        store.add(&record("many", number as f64)).expect("writes beside the others");
    }
}

fn assert_complete(path: &Path) {
    let entries = Store::open(path).and_then(|store| store.list(1000)).expect("lists them all");
    assert_eq!(entries.len(), WRITERS * RECORDS);
}

#[test]
fn threads_that_make_and_write_one_history_at_once_lose_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("history.db");
    let start = Barrier::new(WRITERS);
    thread::scope(|scope| {
        for _ in 0..WRITERS {
            scope.spawn(|| {
                start.wait();
                write_records(&path);
            });
        }
    });
    assert_complete(&path);
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

#[test]
fn processes_that_make_and_write_one_history_at_once_lose_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("history.db");
    let mut command = child("child_writes_records", &path);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let children: Vec<_> = (0..WRITERS).map(|_| command.spawn().unwrap()).collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    assert_complete(&path);
}

/// The body of the processes above; nothing if it is not one of them.
#[test]
fn child_writes_records() {
    if let Some(path) = std::env::var_os(CHILD_STORE) {
        write_records(Path::new(&path));
    }
}

fn wanted() -> Wanted {
    Wanted::default()
}

fn ids(store: &Store, wanted: &Wanted) -> Vec<i64> {
    store.search(wanted).expect("it can be read").iter().map(|entry| entry.id).collect()
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
    assert_eq!(ids(&store, &text("NAS-2")), [2], "one target");
    assert_eq!(ids(&store, &text("nowhere")), [0_i64; 0]);
    assert_eq!(ids(&store, &Wanted { kind: Some("test".into()), ..text("1") }), [3, 1]);
    assert_eq!(ids(&store, &Wanted { kind: Some("tune".into()), ..text("1") }), [0_i64; 0]);
    let of_one = |target: &str| Wanted { target: Some(target.into()), ..text("nas") };
    assert_eq!(ids(&store, &of_one("NAS-1")), [1]);
    assert_eq!(ids(&store, &Wanted { before: Some(1), ..of_one("NAS-1") }), [0_i64; 0]);
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

/// Takes the table of records back to the fourth schema.
const WITHOUT_FORMATS: &str =
    "DROP TABLE schema; DROP TRIGGER described_goes; DROP TABLE described; DROP INDEX records_listed; ALTER TABLE records DROP COLUMN format;
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
    assert_eq!(ids(&Store::open(&path).unwrap(), &wanted()), [1]);
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
    Comparison {
        settings: Vec::new(),
        arms: Vec::new(),
        responses: Vec::new(),
        curve: None,
        factors: Vec::new(),
        trials: Vec::new(),
        threshold_percent: 3.0,
        stopped: "every arm was decided".into(),
    }
}

/// What was spent is in the history of the third schema with the tests that have a result.
#[test]
fn what_was_spent_is_found_in_a_history_of_an_older_schema() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("history.db");
    let store = Store::open(&path).unwrap();
    store.add_watched(&at("2026-01-01T10:00:00Z", 1e6), &watched(Some(1e6))).unwrap();
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

fn watched(goodput: Option<f64>) -> Watched {
    Watched { plan: "{}".into(), goodput: goodput.map(BitRate) }
}

fn at(started: &str, rate: f64) -> Record {
    Record { started: started.into(), ..record("nas", rate) }
}

#[test]
fn a_series_has_its_whole_tests_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(&directory.path().join("history.db")).unwrap();
    store.add(&at("2026-01-01T09:00:00Z", 5e6)).unwrap();
    let first = store.add_watched(&at("2026-01-01T10:00:00Z", 1e6), &watched(Some(1e6))).unwrap();
    let half = watched(None);
    store.add_watched(&at("2026-01-02T10:00:00Z", 1e3), &half).unwrap();
    // The clock was set back.
    let last = store.add_watched(&at("2026-01-02T09:00:00Z", 2e6), &watched(Some(2e6))).unwrap();
    let other = Watched { plan: "{\"flows\": 4}".into(), ..watched(Some(9e6)) };
    store.add_watched(&at("2026-01-02T11:00:00Z", 9e6), &other).unwrap();
    store.mark_change(last).unwrap();
    let tests = |most| -> Vec<_> {
        let tests = store.tests_of("nas", "{}", most).unwrap();
        tests.iter().map(|test| (test.record, test.goodput.0, test.begins_change)).collect()
    };
    assert_eq!(tests(10), [(first, 1e6, false), (last, 2e6, true)]);
    assert_eq!(tests(1), [(last, 2e6, true)]);
    assert_eq!(store.tests_of("nas", "[]", 10).unwrap(), []);
    let series = |plan: &str| Series { target: "nas".into(), plan: plan.into() };
    assert_eq!(store.series().unwrap(), [series("{}"), series("{\"flows\": 4}")]);
}

#[test]
fn what_a_test_may_cost_is_spent_until_it_is_known_what_it_did() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("history.db");
    let store = Store::open(&path).unwrap();
    let [early, late] = ["2026-01-01T10:00:00Z", "2026-01-02T10:00:00Z"];
    store.spend("nas", early, 7).unwrap();
    let note = store.spend("nas", late, 1000).unwrap();
    store.spend("files", late, u64::MAX).unwrap();
    let spent = |store: &Store| store.spent("nas", "2026-01-02").unwrap();
    assert_eq!(spent(&Store::open(&path).unwrap()), [(late.to_owned(), 1000)]);
    store.settle(note, 30).unwrap();
    assert_eq!(spent(&store), [(late.to_owned(), 30)]);
    assert_eq!(store.spent("files", "2026").unwrap(), [(late.to_owned(), i64::MAX as u64)]);
}

/// However short results are kept: the budget is for a day.
#[test]
fn what_was_spent_within_a_day_is_never_deleted() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(&directory.path().join("history.db")).unwrap();
    store.spend("nas", "2001-01-01T10:00:00Z", 1).unwrap();
    // Never a day ago, whatever this clock says.
    store.spend("nas", "9999-01-01T10:00:00Z", 2).unwrap();
    store.delete_before("9999-12-31T10:00:00Z").unwrap();
    let spent = store.spent("nas", "2001").unwrap();
    assert_eq!(spent, [("9999-01-01T10:00:00Z".to_owned(), 2)]);
}

#[test]
fn old_records_are_deleted_and_the_others_keep_their_numbers() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(&directory.path().join("history.db")).unwrap();
    store.add(&at("2026-01-01T09:00:00Z", 5e6)).unwrap();
    for day in ["2026-01-01", "2026-01-02", "2026-01-03"] {
        store.add_watched(&at(&format!("{day}T10:00:00Z"), 1e6), &watched(Some(1e6))).unwrap();
    }
    let times = store.watched_times().unwrap();
    assert_eq!(times.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [2, 3, 4]);
    assert_eq!((store.delete_watched(1).unwrap(), store.delete_watched(3).unwrap()), (0, 2));
    assert_eq!(ids(&store, &wanted()), [4, 1]);
    assert_eq!(store.tests_of("nas", "{}", 10).unwrap().len(), 1);
    assert_eq!(store.delete_before("2026-01-03").unwrap(), 1);
    assert_eq!(store.add(&at("2026-01-04T10:00:00Z", 1e6)).unwrap(), 5);
}
