//! The results of a turn: lines as they come, records in the history, and the matrix in the end.

use std::cell::{Cell, RefCell};

use anyhow::Result;
use goodput_fleet::{End, Mesh, Observation, Outcome, Question, Task, seen_between};
use goodput_model::{Record, plain_char};
use goodput_store::{Store, read_record};

use crate::commands::history::known;
use crate::data_dirs::history;
use crate::exit::Exit;
use crate::{report, screen};

/// How much slower than typical a slow pair is, percent: as in `goodput fleet matrix`.
const SLOW_PERCENT: f64 = 10.0;

/// What came so far.
pub(super) struct Results<'a> {
    mesh: &'a Mesh,
    store: Store,
    seen: RefCell<Vec<Observation>>,
    done: Cell<usize>,
    without_record: Cell<usize>,
}

impl<'a> Results<'a> {
    /// None yet; records go into this host's history.
    pub fn of(mesh: &'a Mesh) -> Result<Self> {
        let (seen, done, without_record) = Default::default();
        Ok(Self { mesh, store: history()?, seen, done, without_record })
    }

    /// Adds the outcome of a task, one of `all`. One that `is_old` may be in the history already.
    pub fn add(&self, task: &Task, outcome: &[u8], is_old: bool, all: usize) -> Result<()> {
        self.done.set(self.done.get() + 1);
        let text = match record(outcome) {
            Ok(record) => {
                let id = self.keep(&record, is_old);
                // What says nothing of the pair is a dot in the matrix.
                self.seen.borrow_mut().extend(seen_between(&record, id, [&task.near, &task.far]));
                said(&record)
            }
            Err(why) => {
                self.without_record.set(self.without_record.get() + 1);
                format!("no record: {why}")
            }
        };
        let (done, from, to) = (self.done.get(), task.sender(), task.receiver());
        let text: String = text.chars().map(plain_char).collect();
        Ok(screen::line(format_args!("{done}/{all}  {from} → {to}  {text}"))?)
    }

    /// The number of the record in the history; 0 if a full disk does not take it, which must not end the fleet's tests.
    fn keep(&self, record: &Record, is_old: bool) -> i64 {
        let found = if is_old { known(&self.store, record).ok().flatten() } else { None };
        found.unwrap_or_else(|| {
            self.store.add(record).unwrap_or_else(|why| {
                screen::say(format_args!("goodput: a record was not kept: {why}"));
                0
            })
        })
    }

    /// Prints the matrix of this turn, at `now_s` seconds since 1970.
    pub fn print_matrix(&self, now_s: f64) -> Result<()> {
        let sites = self.mesh.sites.iter().map(|site| site.name.clone()).collect();
        let question = Question { now_s, slow_percent: SLOW_PERCENT };
        let matrix = goodput_fleet::matrix(sites, &self.seen.borrow(), question);
        let text = report::fleet::matrix::text(&matrix, false, screen::columns());
        Ok(screen::print_fitted(&format!("\n{text}"))?)
    }

    /// Tests without a record are a problem.
    pub fn exit(&self) -> Exit {
        if self.without_record.get() == 0 { Exit::Fine } else { Exit::Problem }
    }
}

/// The record of an outcome, or why there is none.
fn record(outcome: &[u8]) -> Result<Record, String> {
    match Outcome::read(outcome)?.end {
        End::Record(record) => read_record(&record.to_string()).map_err(|why| why.to_string()),
        End::Reason(why) => Err(why),
    }
}

/// `941.2 Mbit/s, limited by path-rate`
fn said(record: &Record) -> String {
    let rate = record.result.goodput_bits_per_s;
    match &record.incomplete {
        Some(why) => format!("{rate}, only a part: {why}"),
        None if record.verdict.limit == goodput_model::Verdict::NO_LIMIT => rate.to_string(),
        None => format!("{rate}, limited by {}", record.verdict.limit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_is_a_record_or_a_reason() {
        let json = include_str!("../../../report/example/record.json");
        let end = End::Record(serde_json::from_str(json).unwrap());
        let outcome = |end| serde_json::to_vec(&Outcome::new("t", "a", end)).unwrap();
        let read = record(&outcome(end)).unwrap();
        assert_eq!(read, read_record(json).unwrap(), "to the last bit");
        assert_eq!(said(&read), "419.9 Mbit/s, limited by shaper-burst");
        assert_eq!(record(&outcome(End::Reason("busy".into()))), Err("busy".into()));
        let newer = End::Record(serde_json::json!({ "format": 999 }));
        assert!(record(&outcome(newer)).unwrap_err().contains("999"));
        assert!(record(b"{").is_err());
    }
}
