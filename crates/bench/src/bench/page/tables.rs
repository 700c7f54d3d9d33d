//! The results of each contestant of a contest, and the failures.

use std::collections::BTreeMap;
use std::fmt::Write;

use anyhow::Result;

use super::shown;
use crate::bench::contest::Contest;
use crate::bench::kept::{Kept, RunOutcome};
use crate::bench::place::Place;
use crate::bench::stats::estimate;

/// A row for each entry, a column for each measure.
pub fn entries(page: &mut String, kept: &Kept, contest: &Contest, place: Place) -> Result<()> {
    let headings: Vec<_> = contest.columns.iter().map(|column| column.heading).collect();
    writeln!(page, "| | {} |", headings.join(" | "))?;
    writeln!(page, "|---|{}", "---|".repeat(headings.len()))?;
    for who in contest.contestants(&kept.machine.peers) {
        let cells = contest.columns.iter().map(|column| {
            let runs = kept.of(contest, place).filter(|ran| ran.entry == who.name);
            let values = runs.filter_map(|ran| Some(ran.value(column)? * column.scale));
            estimate(values).map_or("–".into(), |value| shown(value, column.digits))
        });
        writeln!(page, "| {} | {} |", who.name, cells.collect::<Vec<_>>().join(" | "))?;
    }
    Ok(())
}

/// A line for each entry that failed, with the message of its first failure.
pub fn failures(page: &mut String, kept: &Kept, contest: &Contest, place: Place) -> Result<()> {
    let mut failed: BTreeMap<&str, (u32, &str)> = BTreeMap::new();
    for ran in kept.of(contest, place) {
        if let RunOutcome::Failed(why) = &ran.came {
            failed.entry(&ran.entry).or_insert((0, why)).0 += 1;
        }
    }
    if !failed.is_empty() {
        writeln!(page)?;
    }
    for (entry, (times, why)) in failed {
        let why = why.replace('\n', " ");
        writeln!(
            page,
            "- {entry} failed in {times} of {} rounds: {why}",
            kept.rounds_of(contest, place)
        )?;
    }
    Ok(())
}
