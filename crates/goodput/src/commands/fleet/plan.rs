//! `goodput fleet plan`: the rounds of a mesh, and what they cost.

use anyhow::Result;

use super::mesh_file;
use crate::args::FleetPlanArgs;
use crate::exit::Exit;
use crate::{report, screen};

/// Plans and reports. What the budgets or the time leave out is a problem.
pub(super) fn run(args: &FleetPlanArgs) -> Result<Exit> {
    let mesh = mesh_file::read(&args.mesh)?;
    let plan = goodput_fleet::plan(&mesh);
    if args.json {
        screen::print_data(|out| {
            serde_json::to_writer_pretty(&mut *out, &plan)?;
            writeln!(out)
        })?;
    } else {
        screen::print_fitted(&report::fleet::plan::text(&plan, args.rounds))?;
    }
    let is_whole = plan.left_out.is_empty() && plan.doubts.is_empty();
    Ok(if is_whole { Exit::Fine } else { Exit::Problem })
}
