//! `goodput fleet matrix`: what the history says of each pair of a mesh.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};
use goodput_fleet::{Matrix, Mesh, Observation, Question, Unusable};
use goodput_store::{Store, StoreError, Wanted};
use jiff::Timestamp;
use serde::Serialize;

use super::mesh_file;
use crate::args::FleetMatrixArgs;
use crate::data_dirs::history_to_read;
use crate::exit::Exit;
use crate::{report, screen};

/// How the history names a single test.
const TEST: &str = "test";

/// Reads the history, and reports. Slow pairs are a problem.
pub(super) fn run(args: &FleetMatrixArgs) -> Result<Exit> {
    let mesh = args.mesh.as_deref().map(mesh_file::read).transpose()?;
    let read = Read::of(&history_to_read()?, &args.since, mesh.as_ref())?;
    if read.seen.is_empty() {
        bail!(
            "the history has no test of a pair since {}{}; take in the results of other hosts with `goodput history import`, or go further back with --since",
            args.since,
            read.why_not()
        );
    }
    let now_s = Timestamp::now().as_second() as f64;
    let question = Question { now_s, slow_percent: args.slow };
    let matrix = goodput_fleet::matrix(read.sites(mesh.as_ref()), &read.seen, question);
    if args.json {
        let answer =
            Answer { matrix: &matrix, left_out: &read.left_out, unreadable: &read.unreadable };
        screen::print_data(|out| {
            serde_json::to_writer_pretty(&mut *out, &answer)?;
            writeln!(out)
        })?;
    } else {
        let text = report::fleet::matrix::text(&matrix, args.cells, screen::columns());
        screen::print_fitted(&(text + &report::fleet::matrix::left_out(&read.left_out)))?;
    }
    read.unreadable.iter().for_each(|why| screen::say(format_args!("goodput: {why}")));
    Ok(exit(&matrix, &read))
}

fn exit(matrix: &Matrix, read: &Read) -> Exit {
    if !read.unreadable.is_empty() {
        return Exit::CouldNot;
    }
    match matrix.explanation.value() {
        None => Exit::Inconclusive,
        Some(explanation) if explanation.slow.is_empty() => Exit::Fine,
        Some(_) => Exit::Problem,
    }
}

/// What `--json` prints.
#[derive(Serialize)]
struct Answer<'a> {
    #[serde(flatten)]
    matrix: &'a Matrix,
    /// Tests that say nothing of a pair, by the reason.
    left_out: &'a BTreeMap<Unusable, usize>,
    /// Records that could not be read, and why.
    unreadable: &'a [String],
}

/// What the records say.
#[derive(Default)]
struct Read {
    seen: Vec<Observation>,
    left_out: BTreeMap<Unusable, usize>,
    unreadable: Vec<String>,
}

impl Read {
    /// Reads each test that began at `since` or later.
    fn of(store: &Store, since: &str, mesh: Option<&Mesh>) -> Result<Self> {
        let wanted = Wanted { from: Some(since.into()), ..Wanted::default() };
        let mut read = Self::default();
        for entry in store.search(&wanted)?.into_iter().filter(|entry| entry.kind == TEST) {
            match store.get(entry.id) {
                // Another process may have deleted it meanwhile.
                Err(StoreError::UnknownId { .. }) => {}
                Err(why) => read.unreadable.push(why.to_string()),
                Ok(record) => match goodput_fleet::seen(&record, entry.id, mesh) {
                    Ok(seen) => read.seen.push(seen),
                    Err(why) => *read.left_out.entry(why).or_default() += 1,
                },
            }
        }
        Ok(read)
    }

    /// Those of the mesh, or all that were seen.
    fn sites(&self, mesh: Option<&Mesh>) -> Vec<String> {
        if let Some(mesh) = mesh {
            return mesh.sites.iter().map(|site| site.name.clone()).collect();
        }
        let ends = self.seen.iter().flat_map(|seen| [&seen.sender, &seen.receiver]);
        ends.collect::<BTreeSet<_>>().into_iter().cloned().collect()
    }

    /// Why tests that exist say nothing.
    fn why_not(&self) -> String {
        match report::fleet::matrix::counts(&self.left_out) {
            counts if counts.is_empty() => String::new(),
            counts => format!(" (left out: {counts})"),
        }
    }
}
