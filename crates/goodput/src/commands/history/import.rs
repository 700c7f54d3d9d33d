//! `goodput history import`: results of another machine.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use goodput_model::{Record, counted};
use goodput_store::{Added, DayCounts, RecordError, Store, Wanted};
use jiff::civil::Date;
use sha2::{Digest, Sha256};

use crate::args::ImportArgs;
use crate::data_dirs;
use crate::exit::Exit;
use crate::fit::shortened;
use crate::foreign::{foreign, plain_json};
use crate::json_lines::{self, WrongLines};
use crate::json_text;
use crate::report::style::plain;
use crate::screen;

/// Most columns of a target that an import names: a record from elsewhere may have any text.
const TARGET_COLUMNS: usize = 200;

/// Something that another history exported.
#[derive(Debug, Clone, PartialEq)]
enum Exported {
    Record(Box<Record>),
    Day(DayCounts),
}

/// Keeps the records of all files that the history does not have, and sums up what became of them; adds their days of deleted
/// results. Nothing is kept if one of them can't be read.
pub fn run(args: &ImportArgs, verbose: bool) -> Result<Exit> {
    // Before the history: a file that can't be read makes none.
    let (records, days) = read_all(&args.files)?;
    keep_all(&data_dirs::history()?, &records, days, Shown { json: args.json, verbose })
}

/// What is printed besides the sum.
#[derive(Debug, Clone, Copy)]
struct Shown {
    /// An object for each result.
    json: bool,
    /// A line for each result.
    verbose: bool,
}

/// The records and the days of all files.
fn read_all(files: &[PathBuf]) -> Result<(Vec<Record>, Vec<DayCounts>)> {
    let (mut records, mut days) = (Vec::new(), Vec::new());
    for file in files {
        for exported in read(file)? {
            match exported {
                Exported::Record(record) => records.push(*record),
                Exported::Day(day) => days.push(day),
            }
        }
    }
    Ok((records, days))
}

/// Keeps what was read, and sums up what became of it.
fn keep_all(store: &Store, records: &[Record], days: Vec<DayCounts>, shown: Shown) -> Result<Exit> {
    // Before the records: what is still here as results is summed up when it is deleted.
    let (days, left_out) = without_results_here(store, days)?;
    let mut all = Vec::with_capacity(records.len());
    for record in records {
        let added = keep(store, record)?;
        all.push(added);
        if shown.json {
            let (Added { id, is_new }, Record { target, started, .. }) = (added, record);
            let line = serde_json::json!({"id": id, "target": target, "started": started, "is_new": is_new});
            screen::line(json_text::one_line(&line)?)?;
        } else if shown.verbose {
            screen::line(one(record, added))?;
        }
    }
    store.add_days(&days)?;
    // The objects are for a program, which counts them.
    let say = |text: String| match shown.json {
        true => {
            screen::say(text);
            Ok(())
        }
        false => screen::line(text),
    };
    if let Some(text) = summary(&all) {
        say(text)?;
    }
    if !days.is_empty() {
        say(of_days(&days))?;
    }
    if left_out > 0 {
        let days = counted(left_out, "day");
        say(format!("left out {days} of which this history still has results"))?;
    }
    Ok(Exit::Fine)
}

/// A result, and what became of it.
fn one(record: &Record, Added { id, is_new }: Added) -> String {
    let target = shortened(&plain(&record.target), TARGET_COLUMNS);
    let already = if is_new { "" } else { " already" };
    format!("{id} is {target} of {}{already}", record.started)
}

/// What became of all results: `kept 3 of 5 results as 12 to 14; 2 were there already`. None without one.
fn summary(all: &[Added]) -> Option<String> {
    let numbers = |is_new: bool| {
        let numbers: BTreeSet<i64> =
            all.iter().filter(|added| added.is_new == is_new).map(|added| added.id).collect();
        match (numbers.first()?, numbers.last()?) {
            (first, last) if first == last => Some(first.to_string()),
            (first, last) => Some(format!("{first} to {last}")),
        }
    };
    let new = all.iter().filter(|added| added.is_new).count();
    let there = all.len() - new;
    let were = if there == 1 { "was" } else { "were" };
    let kept = numbers(true).map_or_else(String::new, |numbers| format!(" as {numbers}"));
    let already = numbers(false).map_or_else(String::new, |numbers| {
        format!("; {there} {were} there already, as {numbers}")
    });
    let results = counted(all.len(), "result");
    (!all.is_empty()).then(|| format!("kept {new} of {results}{kept}{already}"))
}

fn of_days(days: &[DayCounts]) -> String {
    let results = days.iter().map(DayCounts::results).sum::<u64>();
    format!("read {} of {results} deleted results", counted(days.len(), "day"))
}

/// The days of which this history has no results any more, and how many others there are: their results would count twice.
fn without_results_here(store: &Store, days: Vec<DayCounts>) -> Result<(Vec<DayCounts>, usize)> {
    let all = days.len();
    let mut kept = Vec::new();
    for day in days {
        let wanted = Wanted {
            target: Some(day.target.clone()),
            kind: Some(day.kind.clone()),
            from: Some(day.day.clone()),
            // Behind all times of the day: they go on with a T.
            until: Some(format!("{}U", day.day)),
            limit: 1,
            ..Wanted::default()
        };
        if store.search(&wanted)?.is_empty() {
            kept.push(day);
        }
    }
    let left_out = all - kept.len();
    Ok((kept, left_out))
}

fn read(file: &Path) -> Result<Vec<Exported>> {
    let shown = file.display();
    let mut bytes = Vec::new();
    let read = match file.as_os_str() == "-" {
        true => io::stdin().read_to_end(&mut bytes),
        false => File::open(file).and_then(|mut file| file.read_to_end(&mut bytes)),
    };
    read.with_context(|| format!("can't read {shown}"))?;
    let text = String::from_utf8(bytes).map_err(|_| RecordError::Damaged.into());
    text.and_then(|text| of_text(&text))
        .with_context(|| format!("{shown} has something other than records"))
}

/// One record, or a record or a day in each line.
fn of_text(text: &str) -> Result<Vec<Exported>> {
    json_lines::records(text, exported).map_err(|why| match why.downcast::<WrongLines>() {
        Ok(wrong) => nothing_kept(&wrong),
        Err(why) => why,
    })
}

fn exported(json: &str) -> Result<Exported> {
    match foreign(json) {
        Err(_) if DayCounts::is_one(json) => day(json).map(Exported::Day),
        record => Ok(Exported::Record(record?.into())),
    }
}

/// A day that another machine exported.
fn day(json: &str) -> Result<DayCounts> {
    let day = DayCounts::read(&plain_json(json)).map_err(|why| anyhow!("the day: {why}"))?;
    let date = day.day.parse::<Date>();
    if date.is_ok_and(|date| date.to_string() == day.day) {
        return Ok(day);
    }
    bail!("the day is {:?}, which is none like 2026-01-31", day.day)
}

/// Why nothing of a file is kept, if some of its lines are no records.
fn nothing_kept(wrong: &WrongLines) -> anyhow::Error {
    let others = match wrong.good {
        0 => String::new(),
        1 => ", not even the record that can be read".into(),
        good => format!(", not even the {good} records that can be read"),
    };
    let these = if wrong.number() == 1 { "this line" } else { "these lines" };
    anyhow!(
        "{wrong}; nothing was imported{others}: mend or delete {these}, and import the file again"
    )
}

/// Keeps a record unless the history has it.
fn keep(store: &Store, record: &Record) -> Result<Added> {
    if let Some(id) = known(store, record)? {
        return Ok(Added { id, is_new: false });
    }
    // Another import may have the same record at this moment: the first one keeps it, and both get its number.
    let key = format!("content-{}", hex(&Sha256::digest(record.to_json()?)));
    Ok(store.add_once(record, &key)?)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The number of the same record in the history.
pub fn known(store: &Store, record: &Record) -> Result<Option<i64>> {
    let same = |id: &i64| store.get(*id).is_ok_and(|other| other == *record);
    Ok(store.begun_at(&record.started, &record.target)?.into_iter().find(same))
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    const ONE: &str = include_str!("../../report/example/record.json");

    fn example() -> Record {
        foreign(ONE).unwrap()
    }

    fn import(store: &Store, files: &[&PathBuf]) {
        let files: Vec<_> = files.iter().copied().cloned().collect();
        let (records, days) = read_all(&files).unwrap();
        keep_all(store, &records, days, Shown { json: false, verbose: false }).unwrap();
    }

    #[test]
    fn what_became_of_many_results_is_said_in_a_line() {
        let added = |id, is_new| Added { id, is_new };
        assert_eq!(summary(&[]), None);
        assert_eq!(summary(&[added(7, true)]).unwrap(), "kept 1 of 1 result as 7");
        let there = "kept 0 of 1 result; 1 was there already, as 7";
        assert_eq!(summary(&[added(7, false)]).unwrap(), there);
        let all =
            [added(12, true), added(3, false), added(13, true), added(3, false), added(14, true)];
        let expected = "kept 3 of 5 results as 12 to 14; 2 were there already, as 3";
        assert_eq!(summary(&all).unwrap(), expected);
    }

    #[test]
    fn a_file_has_one_record_or_one_in_each_line() {
        let one = example();
        let line = serde_json::to_string(&one).unwrap();
        let both = of_text(&format!("{line}\n\n{line}\n")).unwrap();
        assert_eq!(both, [(); 2].map(|()| Exported::Record(one.clone().into())));
        for wrong in ["", "{}", "not a record", "{\"format\": 99}"] {
            assert!(of_text(wrong).is_err(), "{wrong}");
        }
    }

    /// The example in one line, changed by this.
    fn changed(change: impl FnOnce(&mut Record)) -> String {
        let mut record = example();
        change(&mut record);
        serde_json::to_string(&record).unwrap()
    }

    #[test]
    fn a_line_that_is_cut_is_named_with_what_became_of_those_before() {
        let line = changed(|_| {});
        let cut = format!("{line}\n\n{line}\n{}", &line[..1000]);
        let why = of_text(&cut).unwrap_err().to_string();
        assert!(why.starts_with("line 4: ") && why.contains("at column 1000;"), "{why}");
        assert!(
            why.contains("nothing was imported, not even the 2 records that can be read"),
            "{why}"
        );
    }

    #[test]
    fn a_time_that_is_none_is_refused_in_words() {
        for wrong in ["2036-13-45T99:00:00Z", "yesterday", "", "2026-01-31T12:00:00+02:00"] {
            let why = of_text(&changed(|record| record.started = wrong.into())).unwrap_err();
            let why = why.to_string();
            assert!(
                why.contains(&format!("line 1: the record began at {wrong:?}, which is no time")),
                "{why}"
            );
        }
    }

    #[test]
    fn texts_that_forge_lines_or_turn_the_writing_are_cleaned() {
        let evil = changed(|record| {
            record.target = "a\u{202e}b\u{1b}[2J\u{8}\\n\"c\"".into();
        });
        let [Exported::Record(record)] = &of_text(&evil).unwrap()[..] else { panic!("one record") };
        assert_eq!(record.target, "a\u{fffd}b\u{fffd}[2J\u{fffd}\\n\"c\"");
    }

    const DAY: &str = r#"{"day":"2026-01-31","target":"nas","kind":"test","transport":"tcp","direction":"send",
        "flows":1,"counts":{"goodput":{"9.41e+08":12},"limit":{"policer":12}}}"#;

    #[test]
    fn days_come_with_records_and_a_second_time_change_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("history.db")).unwrap();
        let (file, day) = (folder.path().join("results.json"), DAY.replace('\n', ""));
        std::fs::write(&file, format!("{}\n{day}\n", changed(|_| {}))).unwrap();
        for _ in 0..2 {
            import(&store, &[&file]);
            let days = store.days(&Wanted { limit: 10, ..Wanted::default() });
            let [day] = &days.unwrap()[..] else { panic!("one day") };
            assert_eq!((day.target.as_str(), day.results, day.limited), ("nas", 12, 12));
        }
        assert_eq!(store.list(10).unwrap().len(), 1);
    }

    #[test]
    fn a_day_of_which_results_are_here_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("history.db")).unwrap();
        let here = changed(|record| {
            (record.started, record.target) = ("2026-01-31T23:59:59Z".into(), "nas".into());
        });
        store.add(&foreign(&here).unwrap()).unwrap();
        let day = DAY.replace('\n', "");
        let [same, before] = [day.clone(), day.replace("01-31", "01-30")].map(|day| {
            let [Exported::Day(day)] = &of_text(&day).unwrap()[..] else { panic!("one day") };
            day.clone()
        });
        let (kept, left_out) = without_results_here(&store, vec![same, before.clone()]).unwrap();
        assert_eq!((kept, left_out), (vec![before], 1));
    }

    #[test]
    fn a_day_that_is_none_is_named_with_its_line() {
        let day = DAY.replace('\n', "");
        for (from, to, why) in [
            ("2026-01-31", "2026-02-31", "line 2: the day is \"2026-02-31\", which is none like"),
            ("9.41e+08", "NaN", "line 2: the day: \"NaN\" is no value of a result"),
        ] {
            let text = format!("{day}\n{}\n", day.replace(from, to));
            let said = of_text(&text).unwrap_err().to_string();
            assert!(said.contains(why), "{said}");
        }
        let evil = day.replace("nas", "n\\u001bas");
        let [Exported::Day(day)] = &of_text(&evil).unwrap()[..] else { panic!("one day") };
        assert_eq!(day.target, "n\u{fffd}as");
    }

    #[test]
    fn a_record_is_kept_once() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("history.db")).unwrap();
        let file = folder.path().join("results.json");
        std::fs::write(&file, ONE).unwrap();
        for _ in 0..2 {
            import(&store, &[&file, &file]);
        }
        assert_eq!(store.list(10).unwrap().len(), 1);
    }

    #[test]
    fn imports_at_the_same_time_keep_a_record_once() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("history.db");
        let record = example();
        let all = Barrier::new(4);
        let import = || {
            let store = Store::open(&place).unwrap();
            all.wait();
            keep(&store, &record).unwrap()
        };
        let added: Vec<Added> = thread::scope(|scope| {
            let imports: Vec<_> = (0..4).map(|_| scope.spawn(import)).collect();
            imports.into_iter().map(|import| import.join().unwrap()).collect()
        });
        let ids: BTreeSet<i64> = added.iter().map(|added| added.id).collect();
        assert_eq!(ids.len(), 1);
        assert_eq!(added.iter().filter(|added| added.is_new).count(), 1, "{added:?}");
        assert_eq!(Store::open(&place).unwrap().list(10).unwrap().len(), 1);
    }
}
