//! What stays of deleted results.

mod common;
mod databases;

use std::sync::Barrier;
use std::thread;

use common::record;
use databases::in_each;
use goodput_model::{Direction, Kind, Record};
use goodput_store::{
    Day, DayCounts, DayPosition, Figures, Spread, Store, StoreError, Wanted, Watched,
};

fn at(started: &str, goodput: f64) -> Record {
    Record { started: started.into(), ..record("nas", goodput) }
}

fn all(store: &Store) -> Vec<Day> {
    store.days(&Wanted::default()).expect("it can be read")
}

/// The value with three digits.
fn digits(value: f64) -> f64 {
    format!("{value:.2e}").parse().expect("a number is one")
}

#[test]
fn deleted_results_stay_as_days_with_their_median_range_and_most_frequent_limit() {
    in_each(|history| {
        let store = history.open();
        let first = at("2026-01-01T09:00:00Z", 9.412_345e8);
        let figures = Figures::of(&first);
        let limit = |record: Record, limit: &str| {
            let mut record = record;
            record.verdict.limit = limit.into();
            record
        };
        store.add(&limit(first, "path-rate")).unwrap();
        store.add(&limit(at("2026-01-01T12:00:00Z", 1e8), "path-loss")).unwrap();
        store.add(&limit(at("2026-01-01T23:59:59Z", 2e8), "path-rate")).unwrap();
        store.add(&at("2026-01-02T00:00:00Z", 5e8)).unwrap();
        assert_eq!(all(&store), []);
        assert_eq!(store.delete_before("2026-01-02").unwrap(), 3);
        let [day] = &all(&history.open())[..] else { panic!("one day") };
        assert_eq!(
            (day.day.as_str(), day.target.as_str(), day.kind.as_str()),
            ("2026-01-01", "nas", "test")
        );
        assert_eq!(day.traffic.as_ref().unwrap().to_string(), "TCP forward, 1 flow");
        let spread = |least, median, most| Spread { least, median, most, results: 3 };
        assert_eq!((day.results, day.goodput), (3, spread(1e8, 2e8, 9.41e8)));
        assert_eq!((day.limit.as_str(), day.limited), ("path-rate", 2));
        let same = |value: f64| spread(digits(value), digits(value), digits(value));
        assert_eq!(day.round_trip_s, figures.round_trip_s.map(same));
        assert_eq!(day.lost_share, figures.lost_share.map(same));
        assert!(day.round_trip_s.is_some(), "the example has one");
    });
}

#[test]
fn a_day_that_is_deleted_in_parts_is_the_same_as_one_that_is_deleted_at_once() {
    let rates = [3e8, 1e8, 2e8, 1e8, 7e8];
    let filled = |store: &Store| {
        for (hour, rate) in rates.iter().enumerate() {
            let watched = Watched { plan: "{}".into(), goodput: None };
            store.add_watched(&at(&format!("2026-01-01T0{hour}:00:00Z"), *rate), &watched).unwrap();
        }
    };
    in_each(|history| {
        let store = history.open();
        filled(&store);
        assert_eq!(store.delete_watched(2).unwrap(), 2);
        assert_eq!(store.delete_watched(3).unwrap(), 1);
        assert_eq!(store.delete_before("2026-01-02").unwrap(), 2);
        let in_parts = all(&store);
        history.sql("DELETE FROM days");
        filled(&store);
        assert_eq!(store.delete_before("2026-01-02").unwrap(), 5);
        assert_eq!(all(&store), in_parts);
        let expected = Spread { least: 1e8, median: 2e8, most: 7e8, results: 5 };
        assert_eq!(in_parts[0].goodput, expected);
    });
}

#[test]
fn each_result_is_counted_once_however_many_delete_it_at_the_same_time() {
    in_each(|history| {
        let store = history.open();
        for second in 10..40 {
            store.add(&at(&format!("2026-01-01T00:00:{second}Z"), 1e8)).unwrap();
        }
        let begin = Barrier::new(4);
        let delete = || {
            let store = history.open();
            begin.wait();
            store.delete_before("2026-01-02").unwrap()
        };
        let deleted: usize = thread::scope(|scope| {
            let all: Vec<_> = (0..4).map(|_| scope.spawn(delete)).collect();
            all.into_iter().map(|one| one.join().unwrap()).sum()
        });
        assert_eq!((deleted, all(&store)[0].results), (30, 30));
    });
}

#[test]
fn what_cant_be_summed_up_is_not_deleted() {
    in_each(|history| {
        let store = history.open();
        store.add(&at("2026-01-01T09:00:00Z", 1e8)).unwrap();
        history.sql("DROP TABLE days");
        store.delete_before("2026-01-02").unwrap_err();
        assert_eq!(history.open().list(10).unwrap().len(), 1);
    });
}

#[test]
fn parts_and_commands_of_several_runs_are_deleted_without_a_trace_and_kinds_of_traffic_stay_apart()
{
    in_each(|history| {
        let store = history.open();
        let mut reverse = at("2026-01-01T09:00:00Z", 1e8);
        reverse.plan.direction = Direction::Reverse;
        let mut part = at("2026-01-01T10:00:00Z", 1e8);
        part.incomplete = Some("the budget was used up".into());
        let tuned = Record { kind: Kind::Tune, ..at("2026-01-01T11:00:00Z", 1e8) };
        for record in [&reverse, &part, &tuned, &at("2026-01-01T12:00:00Z", 2e8)] {
            store.add(record).unwrap();
        }
        assert_eq!(store.delete_before("2026-01-02").unwrap(), 4);
        let days = all(&store);
        let ways: Vec<_> = days.iter().map(|day| day.traffic.as_ref().unwrap().way()).collect();
        assert_eq!(ways, ["TCP reverse", "TCP forward"]);
        assert!(days.iter().all(|day| day.results == 1), "{days:?}");
    });
}

#[test]
fn days_are_found_by_target_and_time_the_newest_first() {
    in_each(|history| {
        let store = history.open();
        for day in ["2026-01-01", "2026-01-02", "2026-01-03"] {
            store.add(&at(&format!("{day}T10:00:00Z"), 1e8)).unwrap();
        }
        store.add(&Record { target: "Backup".into(), ..at("2026-01-02T10:00:00Z", 1e8) }).unwrap();
        assert_eq!(store.targets().unwrap(), ["Backup", "nas"]);
        store.delete_before("2026-01-04").unwrap();
        store.add(&record("files", 1e8)).unwrap();
        assert_eq!(store.targets().unwrap(), ["Backup", "files", "nas"]);
        let found = |wanted: Wanted| -> Vec<String> {
            let days = store.days(&wanted).unwrap();
            days.into_iter().map(|day| format!("{} {}", day.day, day.target)).collect()
        };
        let some = |text: &str| Some(text.to_owned());
        let of_nas = || Wanted { target: some("nas"), ..Wanted::default() };
        assert_eq!(found(of_nas()), ["2026-01-03 nas", "2026-01-02 nas", "2026-01-01 nas"]);
        assert_eq!(found(Wanted { limit: 1, ..of_nas() }), ["2026-01-03 nas"]);
        assert_eq!(
            found(Wanted { text: some("BACK"), ..Wanted::default() }),
            ["2026-01-02 Backup"]
        );
        let (from, until) = (some("2026-01-02T12:00:00Z"), some("2026-01-03"));
        assert_eq!(found(Wanted { from, until, ..of_nas() }), ["2026-01-02 nas"]);
        for (until, number) in [
            ("2026-01-03", 2),
            ("2026-01-03T00:00", 2),
            ("2026-01-03T00:00:00Z", 2),
            ("2026-01-03T00:00:01", 3),
            ("2026-01-03U", 3),
            ("2027", 3),
        ] {
            let days = found(Wanted { until: some(until), ..of_nas() });
            assert_eq!(days.len(), number, "{until}: {days:?}");
        }
        assert_eq!(found(Wanted { kind: some("attach"), ..of_nas() }), [""; 0]);
        assert_eq!(found(Wanted { limited_by: some("none"), ..of_nas() }), [""; 0]);
    });
}

/// A host that tests with all numbers of flows has many rows of one date.
#[test]
fn the_days_of_a_target_come_in_parts_of_any_size_that_leave_none_out() {
    in_each(|history| {
        let store = history.open();
        for day in ["2026-01-01", "2026-01-02"] {
            for flows in [2, 10, 3, 1] {
                let mut record = at(&format!("{day}T10:00:00Z"), 1e8);
                record.plan.flows = flows;
                store.add(&record).unwrap();
            }
        }
        store.delete_before("2026-01-03").unwrap();
        let all = store.days_after("nas", None, 100).unwrap();
        let flows: Vec<_> = all.iter().map(|day| day.traffic.as_ref().unwrap().flows).collect();
        assert_eq!(flows, [1, 2, 3, 10, 1, 2, 3, 10]);
        for most in 1..=9 {
            let (mut parts, mut place) = (Vec::new(), None);
            loop {
                let part = store.days_after("nas", place.as_ref(), most).unwrap();
                assert!(part.len() <= most);
                let Some(last) = part.last() else { break };
                place = Some(DayPosition::of(last));
                parts.extend(part);
            }
            assert_eq!(parts, all, "{most}");
        }
    });
}

/// Days are read in parts; what is asked for is found in all of them.
#[test]
fn the_days_of_years_and_of_several_targets_are_found_whole_and_the_newest_of_all() {
    let date = |number: usize| format!("2026-{:02}-{:02}", number / 28 + 1, number % 28 + 1);
    let row = |target: &str, number: usize, traffic: &str| {
        format!("('{target}', '{}', 'test', {traffic}, 1, 'goodput', '1.00e+08', 7)", date(number))
    };
    let nas = (0..100).map(|number| row("nas", number, "'tcp', 'send'"));
    let backup = (60..70).map(|number| row("backup", number, "'tcp', 'send'"));
    let also = (95..100).map(|number| row("nas", number, "'tcp', 'reverse'"));
    let rows: Vec<_> = nas.chain(backup).chain(also).collect();
    in_each(|history| {
        let store = history.open();
        history.sql(&format!("INSERT INTO days VALUES {}", rows.join(", ")));
        let found = |wanted: Wanted| -> Vec<String> {
            let days = store.days(&wanted).unwrap();
            days.into_iter().map(|day| format!("{} {}", day.day, day.target)).collect()
        };
        let text = |text: &str| Some(text.to_owned());
        let of_nas = Wanted { text: text("nas"), ..Wanted::default() };
        let names = found(of_nas.clone());
        let mut newest_first = names.clone();
        newest_first.sort();
        newest_first.reverse();
        assert_eq!((names.len(), &names), (105, &newest_first));
        assert_eq!(found(Wanted { limit: 40, ..of_nas.clone() }), names[..40]);
        let (from, until) = (Some(date(10)), Some(date(50)));
        assert_eq!(found(Wanted { from, until, ..of_nas }).len(), 40);
        let of_both = found(Wanted { text: text("a"), limit: 47, ..Wanted::default() });
        let both = ["backup", "nas"].map(|target| format!("{} {target}", date(69)));
        assert_eq!((of_both.len(), &of_both[35..37]), (47, &both[..]));
        assert_eq!(found(Wanted::default()).len(), 115);
    });
}

/// Of a result that an older goodput kept, the day has no round trip and no loss.
#[test]
fn a_history_of_the_schema_before_sums_up_what_it_has() {
    in_each(|history| {
        history.open().add(&at("2026-01-01T10:00:00Z", 1e8)).unwrap();
        history.sql("DROP TABLE days; DROP TABLE figures; UPDATE schema SET number = number - 5");
        let store = history.open();
        store.add(&at("2026-01-01T11:00:00Z", 3e8)).unwrap();
        assert_eq!(store.delete_before("2026-01-02").unwrap(), 2);
        let day = all(&store).remove(0);
        assert_eq!((day.results, day.goodput.median), (2, 2e8));
        assert_eq!(day.round_trip_s.map(|spread| spread.results), Some(1));
    });
}

/// All days as another history gets them.
fn counts(store: &Store) -> Vec<DayCounts> {
    let mut all = Vec::new();
    let take = |days: Vec<DayCounts>| {
        all.extend(days);
        Ok::<_, StoreError>(())
    };
    store.day_counts(&Wanted::default(), take).expect("it can be read");
    all
}

#[test]
fn another_history_takes_days_as_they_are_and_keeps_the_larger_count() {
    in_each(|history| {
        let store = history.open();
        for (started, goodput) in
            [("2026-01-01T09", 1e8), ("2026-01-01T10", 1e8), ("2026-03-02T10", 9e9)]
        {
            store.add(&at(&format!("{started}:00:00Z"), goodput)).unwrap();
        }
        store.delete_before("9999").unwrap();
        let (days, exported) = (all(&store), counts(&store));
        assert_eq!((days.len(), exported.len()), (2, 2));
        let lines: Vec<_> =
            exported.iter().map(|day| serde_json::to_string(day).expect("JSON")).collect();
        let read: Vec<_> = lines.iter().map(|line| DayCounts::read(line).unwrap()).collect();
        assert_eq!(read, exported, "the texts of numbers stay");
        let folder = tempfile::tempdir().unwrap();
        let other = Store::open(&folder.path().join("other.db")).unwrap();
        for _ in 0..2 {
            other.add_days(&read).unwrap();
            assert_eq!(all(&other), days);
        }
        // To where they came from, with fewer and with more results.
        let mut more = read.clone();
        let first = more.iter_mut().find(|day| day.day == "2026-03-02").unwrap();
        first.counts.get_mut("goodput").unwrap().insert("9.00e+09".into(), 7);
        for days in [&read, &more, &read] {
            store.add_days(days).unwrap();
        }
        let results: Vec<_> = all(&store).iter().map(|day| day.results).collect();
        assert_eq!(results, [7, 2]);
    });
}

#[test]
fn days_before_a_day_can_be_deleted() {
    in_each(|history| {
        let store = history.open();
        for day in ["2020-12-31", "2021-01-01", "2026-01-01"] {
            store.add(&at(&format!("{day}T09:00:00Z"), 1e8)).unwrap();
        }
        store.delete_before("9999").unwrap();
        assert_eq!(store.delete_days_before("2021-01-01").unwrap(), 1);
        assert_eq!(store.delete_days_before("2021-01-01").unwrap(), 0);
        let left: Vec<_> = all(&store).into_iter().map(|day| day.day).collect();
        assert_eq!(left, ["2026-01-01", "2021-01-01"]);
    });
}
