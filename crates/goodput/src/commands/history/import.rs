//! `goodput history import`: results of another machine.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use goodput_model::Record;
use goodput_store::{RecordError, Store, Wanted, read_record};

use crate::exit::Exit;
use crate::screen;

/// Keeps the records of all files that the history does not have, and reports their numbers. No record is kept if one
/// can't be read.
pub fn run(store: &Store, files: &[PathBuf]) -> Result<Exit> {
    let mut records = Vec::new();
    for file in files {
        records.extend(read(file)?);
    }
    for record in &records {
        let (started, target) = (&record.started, &record.target);
        match known(store, record)? {
            Some(id) => screen::line(format_args!("{id} is {target} of {started} already"))?,
            None => {
                let id = store.add(record)?;
                screen::line(format_args!("{id} is {target} of {started}"))?;
            }
        }
    }
    Ok(Exit::Fine)
}

fn read(file: &Path) -> Result<Vec<Record>> {
    let shown = file.display();
    let text = fs::read_to_string(file).with_context(|| format!("can't read {shown}"))?;
    of_text(&text).with_context(|| format!("{shown} has something else than records"))
}

/// One record, or one in each line.
fn of_text(text: &str) -> Result<Vec<Record>, RecordError> {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty()).peekable();
    match lines.peek() {
        // A record in several lines begins with a brace alone.
        Some(first) if first.trim() != "{" => lines.map(read_record).collect(),
        _ => Ok(vec![read_record(text)?]),
    }
}

/// The number of the same record in the history.
pub fn known(store: &Store, record: &Record) -> Result<Option<i64>> {
    let wanted = Wanted {
        target: Some(record.target.clone()),
        from: Some(record.started.clone()),
        // Behind all that begin with the same time.
        until: Some(format!("{}~", record.started)),
        ..Wanted::default()
    };
    let same = |id: &i64| store.get(*id).is_ok_and(|other| other == *record);
    Ok(store.search(&wanted)?.iter().map(|entry| entry.id).find(same))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = include_str!("../../report/example/record.json");

    #[test]
    fn a_file_has_one_record_or_one_in_each_line() {
        let one = of_text(ONE).unwrap().remove(0);
        let line = serde_json::to_string(&one).unwrap();
        let both = of_text(&format!("{line}\n\n{line}\n")).unwrap();
        assert_eq!(both, [one.clone(), one]);
        for wrong in ["", "{}", "not a record", "{\"format\": 99}"] {
            assert!(of_text(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_record_is_kept_once() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("history.db")).unwrap();
        let file = folder.path().join("results.json");
        std::fs::write(&file, ONE).unwrap();
        for _ in 0..2 {
            run(&store, &[file.clone(), file.clone()]).unwrap();
        }
        assert_eq!(store.list(10).unwrap().len(), 1);
    }
}
