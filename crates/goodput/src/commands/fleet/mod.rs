//! `goodput fleet`: a mesh of hosts.

mod matrix;
mod mesh_file;
mod plan;

use anyhow::Result;

use crate::args::Fleet;
use crate::exit::Exit;

/// Carries out one of the subcommands.
pub fn run(what: &Fleet) -> Result<Exit> {
    match what {
        Fleet::Plan(args) => plan::run(args),
        Fleet::Matrix(args) => matrix::run(args),
    }
}
