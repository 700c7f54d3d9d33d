//! `goodput fleet`: a mesh of hosts.
//!
//! ```text
//! plan, matrix        the mesh file, the history (in_history)
//! keys                the mesh file ──▶ users of NATS and their keys
//! run, ask ──▶ coordinator ──▶ places ──▶ NATS ◀── places ◀── agent
//! held, fence         a name or the lease, for as long as it is renewed; who has it now
//! trouble             what is wrong, said once until it has passed; since when NATS is away
//! saving              records on their way into the history; while it is away, they wait on disk (durable)
//! unless              what waits for someone who may not answer, until the user ends it
//! ```

mod agent;
mod ask;
mod coordinator;
mod durable;
mod fence;
mod held;
mod in_history;
mod keys;
mod matrix;
pub(super) mod mesh_file;
mod places;
mod plan;
mod run;
mod saving;
mod trouble;
mod unless;

use std::path::PathBuf;

use anyhow::Result;

pub(super) use self::in_history::{Asked, Memory, survey};

use crate::args::Fleet;
use crate::exit::Exit;

/// Carries out one of the subcommands.
pub fn run(what: &Fleet, state: Option<PathBuf>) -> Result<Exit> {
    match what {
        Fleet::Plan(args) => plan::run(args),
        Fleet::Matrix(args) => matrix::run(args),
        Fleet::Agent(args) => agent::run(args, state),
        Fleet::Run(args) => run::run(args, state),
        Fleet::Test(args) => ask::run(args),
        Fleet::Keys(args) => keys::run(args),
    }
}
