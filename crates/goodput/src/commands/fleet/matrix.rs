//! `goodput fleet matrix`: what the history says of each pair of a mesh.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use goodput_fleet::{Matrix, Surveyed, Unusable};
use goodput_model::Known;
use serde::Serialize;

use super::in_history::{Asked, Memory, survey};
use crate::args::FleetMatrixArgs;
use crate::data_dirs::history_to_read;
use crate::exit::Exit;
use crate::{report, screen};

/// Reads the history, and reports. Slow pairs are a problem.
pub(super) fn run(args: &FleetMatrixArgs) -> Result<Exit> {
    let asked = Asked { mesh: args.mesh.as_deref(), since: &args.since, slow_percent: args.slow };
    let Surveyed { matrix, left_out, unreadable } =
        survey(&history_to_read()?, &asked, &mut Memory::default())?;
    let matrix = match matrix {
        Known::Value(matrix) => matrix,
        Known::Missing(why) => bail!(
            "{why} since {} UTC; import results of other hosts with `goodput history import`, or go further back with --since",
            args.since
        ),
    };
    if args.json {
        let answer = Answer { matrix: &matrix, left_out: &left_out, unreadable: &unreadable };
        screen::print_data(|out| {
            serde_json::to_writer_pretty(&mut *out, &answer)?;
            writeln!(out)
        })?;
    } else {
        for part in report::fleet::matrix::parts(&matrix, args.cells, screen::columns()) {
            screen::print_fitted(&part)?;
        }
        screen::print_fitted(&report::fleet::matrix::left_out(&left_out))?;
    }
    unreadable.iter().for_each(|why| screen::say(format_args!("goodput: {why}")));
    Ok(if unreadable.is_empty() { exit(&matrix) } else { Exit::CouldNot })
}

fn exit(matrix: &Matrix) -> Exit {
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
