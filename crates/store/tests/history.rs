//! What is kept is found again, in order, by everyone who writes at once.

mod children;
mod common;
mod databases;

use std::path::Path;
use std::process::Stdio;
use std::sync::Barrier;
use std::thread;

use children::{CHILD_STORE, child};
use common::record;
use databases::{in_each, open};
use goodput_model::{BitRate, Record};
use goodput_store::{
    Figures, Names, Position, Series, Store, StoreError, ToldChange, WATCH, Wanted, Watched,
};

const WRITERS: usize = 8;
const RECORDS: usize = 10;

/// After all records.
const NOW: &str = "9999-12-31T23:59:59Z";

#[test]
fn what_is_kept_is_listed_newest_first_and_read_again() {
    in_each(|history| {
        let store = history.open();
        assert_eq!(store.list(10).unwrap(), []);
        let first = store.add(&record("192.0.2.7", 312.4e6)).unwrap();
        let second = store.add(&record("files", 9.41e9)).unwrap();
        drop(store);

        let store = history.open();
        let entries = store.list(10).unwrap();
        let ids: Vec<i64> = entries.iter().map(|entry| entry.id).collect();
        assert_eq!(ids, [second, first]);
        assert_eq!(store.list(1).unwrap(), entries[..1]);
        let newest = &entries[0];
        assert_eq!((newest.target.as_str(), newest.kind.as_str()), ("files", "test"));
        assert_eq!((newest.goodput, newest.limit.as_str()), (BitRate(9.41e9), "receive-window"));
        assert_eq!(store.get(first).unwrap(), record("192.0.2.7", 312.4e6));
    });
}

/// As a goodput that knew no outlines has stored it, the whole record is what is read.
#[test]
fn an_outline_is_read_instead_of_the_record_and_goes_with_it() {
    in_each(|history| {
        let store = history.open();
        let whole = record("nas", 1e6);
        let id = store.add_once(&whole, "t-1").unwrap().id;
        let short = store.outline(id).unwrap();
        assert_eq!((&short.result, &short.started), (&whole.result, &whole.started));
        let bytes = |record: &Record| record.to_readable_json().unwrap().len();
        assert!(bytes(&short) < bytes(&whole), "{} {}", bytes(&short), bytes(&whole));
        history.sql("DELETE FROM outlines");
        assert_eq!(store.outline(id).unwrap(), whole);
        let second = store.add(&record("files", 2e6)).unwrap();
        store.delete_before("9999").unwrap();
        for gone in [id, second] {
            let why = store.outline(gone).unwrap_err();
            assert!(matches!(why, StoreError::UnknownId { .. }), "{why}");
        }
    });
}

#[test]
fn the_newest_of_a_kind_and_target_that_fits_is_found() {
    in_each(|history| {
        let store = history.open();
        for rate in [1e6, 2e6, 3e6] {
            store.add(&record("nas", rate)).unwrap();
        }
        store.add(&record("files", 4e6)).unwrap();
        let rate = |fits: fn(&Record) -> bool| {
            let found = store.newest("test", "nas", NOW, fits).unwrap();
            found.record.map(|record| record.result.goodput_bits_per_s)
        };
        assert_eq!(rate(|_| true), Some(BitRate(3e6)));
        assert_eq!(rate(|record| record.result.goodput_bits_per_s.0 < 3e6), Some(BitRate(2e6)));
        assert_eq!(rate(|_| false), None);
        assert_eq!(store.newest("shaping", "nas", NOW, |_| true).unwrap().record, None);
    });
}

#[test]
fn records_that_cant_be_read_hide_no_older_one_and_are_named() {
    in_each(|history| {
        let store = history.open();
        for rate in [1e6, 2e6, 3e6] {
            store.add(&record("nas", rate)).unwrap();
        }
        history.sql(
            "UPDATE records SET json = substr(json, 1, 1000) WHERE id = 2;
             UPDATE records SET json = replace(json, '\"format\":1,', '\"format\":99,'), format = 99 WHERE id = 3",
        );
        let newest = store.newest("test", "nas", NOW, |_| true).unwrap();
        assert_eq!(newest.record.unwrap().result.goodput_bits_per_s, BitRate(1e6));
        let [newer, damaged] = &newest.unread[..] else { panic!("{:?}", newest.unread) };
        assert!(newer.to_string().starts_with("can't read record 3: it has format 99"), "{newer}");
        assert!(damaged.to_string().starts_with("can't read record 2: it is not"), "{damaged}");
        let none = store.newest("test", "nas", NOW, |_| false).unwrap();
        assert_eq!((none.record, none.unread.len()), (None, 2));
    });
}

#[test]
fn what_a_clock_that_was_ahead_has_kept_hides_no_newer_record() {
    in_each(|history| {
        let store = history.open();
        let keep = |day: &str| {
            let started = format!("{day}T12:00:00Z");
            store.add(&Record { started, ..record("nas", 1e6) }).unwrap()
        };
        let last = || store.last("2026-02-01T00:00:00Z").unwrap().map(|entry| entry.id);
        assert_eq!(last(), None);
        let ahead = keep("2036-01-01");
        assert_eq!(last(), Some(ahead), "there is no other");
        let (newest, _) = (keep("2026-01-31"), keep("2026-01-30"));
        assert_eq!(last(), Some(newest));
        let begun = |fits: fn(&Record) -> bool| {
            let found = store.newest("test", "nas", "2026-02-01T00:00:00Z", fits).unwrap();
            found.record.map(|record| record.started)
        };
        assert_eq!(begun(|_| true).as_deref(), Some("2026-01-31T12:00:00Z"));
        let is_ahead = |record: &Record| record.started.as_str() > "2030";
        assert_eq!(begun(is_ahead).as_deref(), Some("2036-01-01T12:00:00Z"));
    });
}

#[test]
fn an_unknown_number_is_named() {
    in_each(|history| {
        let store = history.open();
        let error = store.get(41).unwrap_err();
        assert!(matches!(error, StoreError::UnknownId { id: 41 }));
        let text = error.to_string();
        assert!(text.contains("41") && text.contains("goodput history"), "{text}");
    });
}

#[test]
fn a_record_with_an_impossible_number_is_refused_before_it_is_kept() {
    in_each(|history| {
        let store = history.open();
        let error = store.add(&record("192.0.2.7", f64::NAN)).unwrap_err();
        assert!(matches!(error, StoreError::Unkeepable { .. }), "{error}");
        assert_eq!(store.list(10).unwrap(), []);
    });
}

#[test]
fn a_record_of_a_newer_goodput_is_listed_and_its_reading_refused() {
    in_each(|history| {
        let store = history.open();
        let id = store.add(&record("192.0.2.7", 1e9)).unwrap();
        let newer = "json = replace(json, '\"format\":1,', '\"format\":99,'), format = 99";
        history.sql(&format!("UPDATE records SET {newer}, kind = 'fleet'"));
        let listed = store.list(1).unwrap().remove(0);
        assert_eq!(listed.kind, "fleet");
        let listed = listed.readable().unwrap_err().to_string();
        let error = store.get(id).unwrap_err().to_string();
        for why in [listed, error] {
            assert!(why.contains("format 99, and this goodput knows up to 1"), "{why}");
        }
        history.sql("UPDATE records SET format = -1");
        assert!(store.list(1).unwrap()[0].readable().is_err(), "no goodput writes this");
    });
}

/// Far ends choose some of the texts, and a person the target.
#[test]
fn any_text_is_kept_and_found_again() {
    in_each(|history| {
        let store = history.open();
        for (number, target) in
            ["a\0b", "'; DROP TABLE records; --", "\u{202e}ü\\", &"long ".repeat(2000)]
                .iter()
                .enumerate()
        {
            let mut kept = record(target, 1e6);
            kept.verdict.limit = format!("{target}!");
            kept.doubts.push((*target).to_owned());
            let id = store.add(&kept).unwrap();
            let of_target = Wanted { target: Some((*target).into()), ..wanted() };
            assert_eq!(ids(&store, &of_target), [id], "{target:?}");
            assert_eq!(store.get(id).unwrap(), kept);
            let series = Watched {
                plan: format!("{{\"{number}\": \"{}\"}}", "x".repeat(5000)),
                goodput: None,
            };
            store.add_watched(&kept, &series).unwrap();
            store.spend(target, "2026", 1).unwrap();
            assert_eq!(store.spent(target, "2026").unwrap().len(), 1);
        }
        assert_eq!(store.series().unwrap().len(), 4);
    });
}

fn write_records(name: &Path) {
    let store = open(name);
    for number in 0..RECORDS {
        store.add(&record("many", number as f64)).expect("writes beside the others");
    }
}

fn assert_complete(store: &Store) {
    assert_eq!(store.list(1000).expect("lists them all").len(), WRITERS * RECORDS);
}

#[test]
fn threads_that_make_and_write_one_history_at_once_lose_nothing() {
    in_each(|history| {
        let start = Barrier::new(WRITERS);
        thread::scope(|scope| {
            for _ in 0..WRITERS {
                scope.spawn(|| {
                    start.wait();
                    write_records(&history.name);
                });
            }
        });
        assert_complete(&history.open());
    });
}

#[test]
fn processes_that_make_and_write_one_history_at_once_lose_nothing() {
    in_each(|history| {
        let mut command = child("child_writes_records", &history.name);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let children: Vec<_> = (0..WRITERS).map(|_| command.spawn().unwrap()).collect();
        for child in children {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        assert_complete(&history.open());
    });
}

/// The body of the processes above; nothing if it is not one of them.
#[test]
fn child_writes_records() {
    if let Some(name) = std::env::var_os(CHILD_STORE) {
        write_records(Path::new(&name));
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
    in_each(|history| {
        let store = history.open();
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
        let after = |id: i64, started: &str| Some(Position { started: started.into(), id });
        let last_day = after(2, "2026-01-03T10:00:00Z");
        assert_eq!(ids(&store, &wanted()), [2, 3, 1]);
        assert_eq!(ids(&store, &Wanted { limit: 2, ..wanted() }), [2, 3]);
        assert_eq!(ids(&store, &Wanted { before: last_day, ..wanted() }), [3, 1]);
        assert_eq!(ids(&store, &text("nas-")), [2, 1]);
        assert_eq!(ids(&store, &text("%_")), [3], "no pattern");
        assert_eq!(ids(&store, &text("NAS-2")), [2], "one target");
        assert_eq!(ids(&store, &text("nowhere")), [0_i64; 0]);
        assert_eq!(ids(&store, &Wanted { kind: Some("test".into()), ..text("1") }), [3, 1]);
        assert_eq!(ids(&store, &Wanted { kind: Some("tune".into()), ..text("1") }), [0_i64; 0]);
        let of_one = |target: &str| Wanted { target: Some(target.into()), ..text("nas") };
        assert_eq!(ids(&store, &of_one("NAS-1")), [1]);
        let first_day = after(1, "2026-01-01T10:00:00Z");
        assert_eq!(ids(&store, &Wanted { before: first_day, ..of_one("NAS-1") }), [0_i64; 0]);
        assert_eq!(ids(&store, &Wanted { target: Some("nas-2".into()), ..wanted() }), [2]);
        assert_eq!(ids(&store, &Wanted { limited_by: Some("none".into()), ..wanted() }), [2, 3]);
        let days = Wanted {
            from: Some("2026-01-02".into()),
            until: Some("2026-01-03".into()),
            ..wanted()
        };
        assert_eq!(ids(&store, &days), [3]);
        let names = Names {
            targets: ["100%_nas", "NAS-1", "nas-2"].map(String::from).into(),
            limits: ["none", "path-loss"].map(String::from).into(),
            measured_by: vec!["near".into()],
        };
        assert_eq!(store.names().unwrap(), names);
    });
}

/// As if each page was asked for while others store and delete: a place in the list needs no record there.
#[test]
fn pages_of_times_that_step_back_lose_and_repeat_no_record() {
    in_each(|history| {
        let store = history.open();
        let add = |second: u32| {
            let started = format!("2026-01-01T10:00:{second:02}Z");
            store.add(&Record { started, ..record("nas", 1e6) }).unwrap()
        };
        let seconds = [30, 10, 20, 20, 10, 40, 20, 5];
        let all: Vec<i64> = seconds.into_iter().map(add).collect();
        for target in [None, Some("nas".to_owned())] {
            let listed = Wanted { target, ..wanted() };
            let mut expected = all.clone();
            expected.sort_by_key(|id| (seconds[*id as usize - 1], *id));
            expected.reverse();
            assert_eq!(ids(&store, &listed), expected);
            let mut found = Vec::new();
            let mut page = Wanted { limit: 3, ..listed };
            loop {
                let entries = store.search(&page).unwrap();
                let Some(last) = entries.last() else { break };
                page.before = Some(last.position());
                found.extend(entries.iter().map(|entry| entry.id));
            }
            assert_eq!(found, expected);
        }
        let ten = Position { started: "2026-01-01T10:00:10Z".into(), id: 5 };
        store.delete_before("2026-01-01T10:00:20Z").unwrap();
        let (earlier, latest) = (add(7), add(50));
        assert_eq!(ids(&store, &Wanted { before: Some(ten), ..wanted() }), [earlier]);
        assert_eq!(ids(&store, &Wanted { limit: 1, ..wanted() }), [latest]);
    });
}

/// A list of results that an import added may have any numbers.
#[test]
fn tests_of_watches_are_known_among_any_results() {
    in_each(|history| {
        let store = history.open();
        let mut of_watch = Vec::new();
        for day in ["03", "01", "02"] {
            let started = format!("2026-01-{day}T10:00:00Z");
            store.add(&at(&started, 1e6)).unwrap();
            of_watch.push(store.add_watched(&at(&started, 1e6), &watched(None)).unwrap());
        }
        let newest = store.list(2).unwrap();
        assert_eq!(store.watched_among(&newest).unwrap(), [of_watch[0]].into());
        assert_eq!(store.watched_among(&store.list(9).unwrap()).unwrap().len(), 3);
        assert!(store.watched_among(&[]).unwrap().is_empty());
    });
}

fn watched(goodput: Option<f64>) -> Watched {
    Watched { plan: "{}".into(), goodput: goodput.map(BitRate) }
}

fn at(started: &str, rate: f64) -> Record {
    Record { started: started.into(), ..record("nas", rate) }
}

#[test]
fn a_series_has_its_whole_tests_in_order() {
    in_each(|history| {
        let store = history.open();
        store.add(&at("2026-01-01T09:00:00Z", 5e6)).unwrap();
        let first =
            store.add_watched(&at("2026-01-01T10:00:00Z", 1e6), &watched(Some(1e6))).unwrap();
        let half = watched(None);
        store.add_watched(&at("2026-01-02T10:00:00Z", 1e3), &half).unwrap();
        // The clock was set back.
        let last =
            store.add_watched(&at("2026-01-02T09:00:00Z", 2e6), &watched(Some(2e6))).unwrap();
        let other = Watched { plan: "{\"flows\": 4}".into(), ..watched(Some(9e6)) };
        store.add_watched(&at("2026-01-02T11:00:00Z", 9e6), &other).unwrap();
        let told =
            |event: &str| ToldChange { target: "nas".into(), event: event.into(), of_host: None };
        store.mark_change(last, &told("{}")).unwrap();
        let tests = |most| -> Vec<_> {
            let tests = store.tests_of("nas", "{}", most).unwrap();
            tests.iter().map(|test| (test.record, test.goodput.0, test.begins_change)).collect()
        };
        assert_eq!(tests(10), [(first, 1e6, false), (last, 2e6, true)]);
        assert_eq!(tests(1), [(last, 2e6, true)]);
        let newest = store.tests_of("nas", "{}", 1).unwrap().remove(0);
        let figures = Figures::of(&at("2026-01-02T09:00:00Z", 2e6));
        assert!(figures.round_trip_s.is_some(), "the example knows it");
        assert_eq!(
            (newest.round_trip_s, newest.lost_share),
            (figures.round_trip_s, figures.lost_share)
        );
        assert_eq!(store.tests_of("nas", "[]", 10).unwrap(), []);
        let series = |plan: &str| Series { target: "nas".into(), plan: plan.into() };
        assert_eq!(store.series().unwrap(), [series("{}"), series("{\"flows\": 4}")]);
    });
}

#[test]
fn tests_of_watches_are_a_kind_of_their_own_and_tests() {
    in_each(|history| {
        let store = history.open();
        let test = store.add(&at("2026-01-01T09:00:00Z", 5e6)).unwrap();
        let of_watch = store.add_watched(&at("2026-01-01T10:00:00Z", 1e6), &watched(None)).unwrap();
        let of_kind = |kind: Option<&str>| ids(&store, &wanted().of_kind(kind));
        assert_eq!(of_kind(Some(WATCH)), [of_watch]);
        assert_eq!(of_kind(Some("test")), [of_watch, test]);
        assert_eq!(of_kind(None), [of_watch, test]);
        assert_eq!(of_kind(Some("tune")), [0_i64; 0]);
        let of_target = |target: &str| Wanted { target: Some(target.into()), ..wanted() };
        assert_eq!(ids(&store, &of_target("nas").of_kind(Some(WATCH))), [of_watch]);
        assert_eq!(ids(&store, &of_target("backup").of_kind(Some(WATCH))), [0_i64; 0]);
    });
}

#[test]
fn changes_stay_as_long_as_their_records_and_are_found_by_a_text_of_their_target() {
    in_each(|history| {
        let store = history.open();
        let mut ids = Vec::new();
        for (target, event) in [("nas", "1"), ("Backup", "2"), ("nas", "3")] {
            let started = format!("2026-01-0{event}T10:00:00Z");
            let record = Record { started, ..record(target, 1e6) };
            let id = store.add_watched(&record, &watched(Some(1e6))).unwrap();
            let told = ToldChange { target: target.into(), event: event.into(), of_host: None };
            store.mark_change(id, &told).unwrap();
            for quantity in ["round-trip", "loss"] {
                store.keep_shift(id, quantity, &told).unwrap();
                store.keep_shift(id, quantity, &told).unwrap();
            }
            ids.push(id);
        }
        let shifts = |text: &str| history.open().shifts(text, 10).unwrap().len();
        assert_eq!((shifts("NAS"), shifts("backup"), shifts("")), (4, 2, 6));
        let found = |text: &str, most| -> Vec<_> {
            let changes = history.open().changes(text, most).unwrap();
            changes.into_iter().map(|change| change.event).collect()
        };
        assert_eq!(found("NAS", 10), ["1", "3"]);
        assert_eq!(found("backup", 10), ["2"]);
        assert_eq!(found("", 2), ["2", "3"], "the newest");
        store.delete_before("2026-01-02").unwrap();
        assert_eq!(found("", 10), ["2", "3"]);
        store.delete_watched(ids[1]).unwrap();
        assert_eq!(found("", 10), ["3"]);
        assert_eq!(shifts(""), 2);
    });
}

#[test]
fn a_series_is_gone_until_a_test_has_a_result() {
    in_each(|history| {
        let store = history.open();
        let series = |plan: &str| Series { target: "nas".into(), plan: plan.into() };
        assert_eq!(store.gone_since(&series("{}")).unwrap(), None);
        for since in ["2026-01-01T10:00:00Z", "2026-01-02T10:00:00Z"] {
            store.set_gone(&series("{}"), Some(since)).unwrap();
            assert_eq!(history.open().gone_since(&series("{}")).unwrap().as_deref(), Some(since));
        }
        assert_eq!(store.gone_since(&series("[]")).unwrap(), None);
        store.set_gone(&series("{}"), None).unwrap();
        assert_eq!(store.gone_since(&series("{}")).unwrap(), None);
    });
}

#[test]
fn what_a_test_may_cost_is_spent_until_it_is_known_what_it_did() {
    in_each(|history| {
        let store = history.open();
        let [early, late] = ["2026-01-01T10:00:00Z", "2026-01-02T10:00:00Z"];
        store.spend("nas", early, 7).unwrap();
        let note = store.spend("nas", late, 1000).unwrap();
        store.spend("files", late, u64::MAX).unwrap();
        let spent = |store: &Store| store.spent("nas", "2026-01-02").unwrap();
        assert_eq!(spent(&history.open()), [(late.to_owned(), 1000)]);
        store.settle(note, 30).unwrap();
        assert_eq!(spent(&store), [(late.to_owned(), 30)]);
        assert_eq!(store.spent("files", "2026").unwrap(), [(late.to_owned(), i64::MAX as u64)]);
    });
}

/// Two tests may begin within one second.
#[test]
fn what_was_spent_at_one_time_is_in_the_same_order_in_each_database() {
    in_each(|history| {
        let store = history.open();
        let times = ["2026-01-01T10:00:01Z", "2026-01-01T10:00:00Z"];
        for (time, bytes) in [(times[0], 5), (times[1], 9), (times[1], 2), (times[1], 7)] {
            store.spend("nas", time, bytes).unwrap();
        }
        let bytes: Vec<u64> =
            store.spent("nas", "2026").unwrap().into_iter().map(|(_, bytes)| bytes).collect();
        assert_eq!(bytes, [2, 7, 9, 5]);
    });
}

/// However short results are kept: the budget is for a day.
#[test]
fn what_was_spent_within_a_day_is_never_deleted() {
    in_each(|history| {
        let store = history.open();
        store.spend("nas", "2001-01-01T10:00:00Z", 1).unwrap();
        // Never a day ago, whatever this clock says.
        store.spend("nas", "9999-01-01T10:00:00Z", 2).unwrap();
        store.delete_before("9999-12-31T10:00:00Z").unwrap();
        let spent = store.spent("nas", "2001").unwrap();
        assert_eq!(spent, [("9999-01-01T10:00:00Z".to_owned(), 2)]);
    });
}

#[test]
fn old_records_are_deleted_and_the_others_keep_their_numbers() {
    in_each(|history| {
        let store = history.open();
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
    });
}
