//! The tables of `goodput compare`: one for each size of file and number of clients, in one record.

use std::collections::HashSet;

use anyhow::{Context, Result, bail};
use goodput_engine::{EngineError, Event};
use goodput_model::{Bytes, Direction, Length, Plan, Record, Source};

use crate::exit::{self, Exit};
use crate::report::transfers::title;
use crate::screen;

/// The plan for each size and number of clients.
pub fn cells(plan: &Plan, sizes: &[Bytes], clients: &[u16]) -> Result<Vec<Plan>> {
    if !clients.is_empty() && sizes.is_empty() && plan.storage.source.is_none() {
        bail!("--clients needs files: give --sizes or --source; for plain flows use -P");
    }
    if plan.storage.source == Some(Source::Input) {
        bail!(
            "a comparison sends its source repeatedly, but standard input can be read only once: name a file"
        );
    }
    let sizes: Vec<_> = match sizes {
        [] => vec![None],
        sizes => sizes.iter().copied().map(Some).collect(),
    };
    let clients = if clients.is_empty() { vec![plan.flows] } else { clients.to_vec() };
    let mut cells = Vec::new();
    for size in sizes {
        for flows in &clients {
            let plan = Plan { flows: *flows, ..plan.clone() };
            cells.push(size.map_or(Ok(plan.clone()), |size| of_size(plan, size))?);
        }
    }
    Ok(cells)
}

/// Bytes for each client, if the plan's length is in bytes.
fn cell_size(plan: &Plan) -> Option<u64> {
    match (&plan.storage.source, plan.length) {
        (Some(Source::Memory(size)), Length::Source) => Some(size.0),
        (_, Length::Bytes(all)) => Some(all.0 / u64::from(plan.flows)),
        _ => None,
    }
}

/// The same plan for a file in memory of this size, or for this part of the file that it names.
fn of_size(mut plan: Plan, size: Bytes) -> Result<Plan> {
    if size.0 == 0 {
        bail!("--sizes: a file of 0 bytes measures nothing; write at least 1");
    }
    match plan.storage.source {
        Some(Source::File { ref name, .. }) => {
            if plan.direction == Direction::Send {
                has_so_much(name, size)?;
            }
            let all = size.0.checked_mul(u64::from(plan.flows));
            plan.length = Length::Bytes(Bytes(all.context("this is too many bytes")?));
        }
        None | Some(Source::Memory(_) | Source::Input) => {
            plan.storage.source = Some(Source::Memory(size));
            plan.length = Length::Source;
        }
    }
    Ok(plan)
}

/// Fails if a file of this end is shorter than the bytes to send. A device has no size here.
fn has_so_much(name: &str, size: Bytes) -> Result<()> {
    let file = std::fs::metadata(name).with_context(|| format!("can't read {name}"))?;
    if file.is_file() && file.len() < size.0 {
        bail!("--sizes: {name} has {} bytes, fewer than {}", file.len(), size.0);
    }
    Ok(())
}

/// The tables so far.
pub struct Tables {
    several: bool,
    title: String,
    whole: Option<Record>,
    /// A message about an earlier table is not repeated.
    said: HashSet<String>,
    broke_off: Option<Exit>,
}

impl Tables {
    /// No tables yet; `cells` will fill them.
    pub fn of(cells: &[Plan]) -> Self {
        let several = cells.len() > 1;
        let (title, said) = (String::new(), HashSet::new());
        Self { several, title, whole: None, said, broke_off: None }
    }

    /// Begins the next table; returns its heading if there are several.
    pub fn begin(&mut self, plan: &Plan) -> Option<Event> {
        let (size_bytes, clients) = (cell_size(plan), plan.flows);
        self.title = title(size_bytes, clients);
        self.several.then_some(Event::TransfersBegan { size_bytes, clients })
    }

    /// Takes a result. An error ends the series; it is the outcome if there is no table yet, and otherwise a doubt
    /// beside the earlier tables.
    pub fn enter(&mut self, compared: Result<Record, EngineError>) -> Result<bool, EngineError> {
        match (compared, &mut self.whole) {
            (Ok(record), _) => {
                if let Some(why) = &record.incomplete {
                    screen::say(format_args!("goodput: {why}"));
                    self.broke_off = Some(Exit::CouldNot);
                }
                self.add(record);
            }
            (Err(error), None) => return Err(error),
            (Err(error), Some(whole)) => {
                let error = anyhow::Error::from(error);
                self.broke_off = Some(exit::of(&error));
                let error = exit::in_words(&error);
                whole.doubts.push(format!("it ended at {}: {error}", self.title));
            }
        }
        Ok(self.broke_off.is_none())
    }

    fn add(&mut self, mut record: Record) {
        record.doubts.retain(|doubt| self.said.insert(doubt.clone()));
        if self.several {
            record.doubts.iter_mut().for_each(|doubt| *doubt = format!("{}: {doubt}", self.title));
        }
        match &mut self.whole {
            None => self.whole = Some(record),
            Some(whole) => {
                whole.transfers.append(&mut record.transfers);
                whole.incomplete = whole.incomplete.take().or(record.incomplete);
                whole.doubts.append(&mut record.doubts);
            }
        }
    }

    /// The first record with all tables, and the exit code if an error cut the series short.
    pub fn close(self) -> Result<(Record, Option<Exit>), EngineError> {
        Ok((self.whole.ok_or(EngineError::Interrupted)?, self.broke_off))
    }
}
