//! The matrix of this host's history, for the terminal and for the page of `goodput web`.

use std::collections::HashMap;
use std::path::Path;

use anyhow::Result;
use goodput_fleet::{Mesh, Observation, Question, Survey, Surveyed, Unusable};
use goodput_model::Record;
use goodput_store::{Entry, Position, Store, StoreError, Wanted};
use jiff::Timestamp;

use super::mesh_file;
use crate::commands::history::known;

/// How the history names a single test.
const TEST: &str = "test";
/// Entries that are in memory at once: a history may have millions.
const PAGE: u32 = 2000;
/// Above it, what is not asked for is forgotten: the range of a page that stays open moves on, and its tests add up.
const MOST_REMEMBERED: usize = 50_000;

/// What is asked of the history.
pub(in crate::commands) struct Asked<'a> {
    /// The mesh file; none: all hosts are sites.
    pub mesh: Option<&'a Path>,
    /// When the tests began, or later: RFC 3339, UTC, or its beginning.
    pub since: &'a str,
    /// How much slower than typical a slow pair is, percent.
    pub slow_percent: f64,
}

/// What records said when they were read. A month of a dozen sites is a gigabyte of them, so a page that is looked at again
/// reads only what is new.
#[derive(Default)]
pub(in crate::commands) struct Memory {
    mesh: Option<Mesh>,
    said: Said,
}

type Said = HashMap<Identity, Result<Observation, Unusable>>;

/// Tells records apart also if the history was replaced by another one: number, start and target.
type Identity = (i64, String, String);

/// Reads each test that the history has since then, and that is not in memory.
pub(in crate::commands) fn survey(
    history: &Store,
    asked: &Asked,
    memory: &mut Memory,
) -> Result<Surveyed> {
    let mesh = asked.mesh.map(mesh_file::read).transpose()?;
    if memory.mesh != mesh {
        *memory = Memory { mesh, ..Memory::default() };
    }
    let Memory { mesh, said } = memory;
    let mesh = mesh.as_ref();
    let [kind, from] = [TEST, asked.since].map(|text| Some(text.into()));
    let mut survey = Survey::of(mesh);
    let before = taken(said, asked.since, MOST_REMEMBERED);
    let wanted = Wanted { kind, from, limit: PAGE, ..Wanted::default() };
    each(history, wanted, |Entry { id, started, target, .. }| {
        let identity = (id, started, target);
        let known = match before.get(&identity) {
            Some(known) => known.clone(),
            None => match history.outline(id) {
                // Another process may have deleted it meanwhile.
                Err(StoreError::UnknownId { .. }) => return,
                Err(why) => return survey.add_unreadable(why.to_string()),
                Ok(record) => goodput_fleet::seen(&record, id, mesh),
            },
        };
        survey.add(&known);
        said.insert(identity, known);
    })?;
    let now_s = Timestamp::now().as_second() as f64;
    Ok(survey.matrix(Question { now_s, slow_percent: asked.slow_percent }))
}

/// Hands each wanted entry over, the newest first. No more of them are in memory than `wanted.limit`.
fn each(history: &Store, mut wanted: Wanted, mut take: impl FnMut(Entry)) -> Result<()> {
    loop {
        let found = history.search(&wanted)?;
        let Some(last) = found.last() else { return Ok(()) };
        wanted.before = Some(Position { started: last.started.clone(), id: last.id });
        found.into_iter().for_each(&mut take);
    }
}

/// Takes out of memory what is asked for. What began earlier is not asked for now, and may be the next time: it is left, unless
/// there are more than `most` in all. What is no more is forgotten.
fn taken(said: &mut Said, since: &str, most: usize) -> Said {
    let has_room = said.len() <= most;
    let all = std::mem::take(said).into_iter();
    let (asked_for, earlier) = all.partition(|((_, started, _), _)| started.as_str() >= since);
    if has_room {
        *said = earlier;
    }
    asked_for
}

/// The number of the record of a task in a history. Several add it: the agent, whoever coordinates and who asked for it, and
/// their successors. So the task is its key, and each history has it once. A goodput that knew no keys may have added it.
pub(super) fn keep(history: &Store, task: &str, record: &Record) -> Result<i64> {
    if let Some(id) = history.with_key(task)? {
        return Ok(id);
    }
    known(history, record)?.map_or_else(|| Ok(history.add_once(record, task)?.id), Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A history with a test on each of these days, whose JSON can be damaged afterwards.
    fn history(folder: &Path, days: &[&str]) -> Store {
        let json = include_str!("../../report/example/record.json");
        let record = goodput_store::read_record(json).unwrap();
        let store = Store::open(&folder.join("history.db")).unwrap();
        for day in days {
            store.add(&Record { started: format!("{day}T12:00:00Z"), ..record.clone() }).unwrap();
        }
        store
    }

    #[test]
    fn what_was_read_is_not_read_again_for_another_range() {
        let folder = tempfile::tempdir().unwrap();
        let history = history(folder.path(), &["2026-01-01", "2026-01-03"]);
        let mut memory = Memory::default();
        let mut looked_at = |since: &str| {
            let asked = Asked { mesh: None, since, slow_percent: 20.0 };
            let Surveyed { matrix, left_out, unreadable } =
                survey(&history, &asked, &mut memory).unwrap();
            assert!(unreadable.is_empty(), "{unreadable:?}");
            let cells = matrix.value().into_iter().flat_map(|matrix| matrix.cells());
            let seen: usize = cells.map(|cell| cell.tests).sum();
            seen + left_out.values().sum::<usize>()
        };
        assert_eq!(looked_at("2026-01-01"), 2);
        let db = rusqlite::Connection::open(folder.path().join("history.db")).unwrap();
        db.execute_batch("UPDATE records SET json = '{'; UPDATE outlines SET json = '{'").unwrap();
        assert_eq!(looked_at("2026-01-03"), 1);
        assert_eq!(looked_at("2026-01-01"), 2, "also after a look at a part");
        db.execute_batch("DELETE FROM records WHERE id = 1").unwrap();
        assert_eq!(looked_at("2026-01-01"), 1, "what was deleted is forgotten");
    }

    #[test]
    fn each_entry_comes_once_however_many_are_in_memory() {
        let folder = tempfile::tempdir().unwrap();
        let days = ["2026-01-01", "2026-01-03", "2026-01-03", "2026-01-02", "2026-01-03"];
        let history = history(folder.path(), &days);
        for limit in 1..=6 {
            let mut seen = Vec::new();
            let wanted = Wanted { limit, ..Wanted::default() };
            each(&history, wanted, |entry| seen.push(entry.id)).unwrap();
            assert_eq!(seen, [5, 3, 2, 4, 1], "{limit}");
        }
    }

    #[test]
    fn what_lies_before_the_range_is_forgotten_for_want_of_room() {
        let folder = tempfile::tempdir().unwrap();
        let history = history(folder.path(), &["2026-01-01", "2026-01-03"]);
        let mut memory = Memory::default();
        let asked = Asked { mesh: None, since: "2026-01-01", slow_percent: 20.0 };
        survey(&history, &asked, &mut memory).unwrap();
        let mut left = |most| {
            let asked_for = taken(&mut memory.said, "2026-01-02", most);
            let earlier = memory.said.len();
            memory.said.extend(asked_for);
            (earlier, memory.said.len())
        };
        assert_eq!(left(2), (1, 2));
        assert_eq!(left(1), (0, 1));
    }
}
