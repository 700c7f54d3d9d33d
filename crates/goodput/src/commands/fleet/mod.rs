//! `goodput fleet`: a mesh of hosts.
//!
//! ```text
//! plan, matrix        the mesh file, the history
//! run    ──▶ places ──▶ NATS ◀── places ◀── agent
//! held                a name or the lease, for as long as it is renewed
//! ```

mod agent;
mod held;
mod matrix;
mod mesh_file;
mod places;
mod plan;
mod run;

use std::path::PathBuf;

use anyhow::Result;

use crate::args::Fleet;
use crate::exit::Exit;

/// Carries out one of the subcommands.
pub fn run(what: &Fleet, state: Option<PathBuf>) -> Result<Exit> {
    match what {
        Fleet::Plan(args) => plan::run(args),
        Fleet::Matrix(args) => matrix::run(args),
        Fleet::Agent(args) => agent::run(args, state),
        Fleet::Run(args) => run::run(args),
    }
}
