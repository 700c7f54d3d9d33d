//! What `goodput fleet` takes.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::args::values::number::whole;
use crate::args::values::{percent, when};

const MATRIX_EXAMPLES: &str = "\
Examples:
    goodput fleet matrix                            # of all hosts
    goodput fleet matrix --mesh mesh.toml --cells";

/// `goodput fleet`
#[derive(Debug, Subcommand)]
pub enum Fleet {
    /// Plan the rounds in which a mesh is tested, and what they cost
    ///
    /// No host and no declared uplink is in two tests at once. goodput reads the file and sends nothing. docs/fleet.md
    /// describes the file.
    Plan(FleetPlanArgs),
    /// Show each pair of a mesh, and what explains the slow ones
    ///
    /// goodput reads the history, with the results that `goodput history import` took from other hosts. For each pair it
    /// shows the week up to the newest test. It tells slow senders, slow receivers and slow paths apart.
    #[command(after_help = MATRIX_EXAMPLES)]
    Matrix(FleetMatrixArgs),
}

/// `goodput fleet plan`
#[derive(Debug, Args)]
pub struct FleetPlanArgs {
    /// Mesh file: sites, uplinks, pairs, budgets and windows (TOML)
    #[arg(value_name = "MESH.toml")]
    pub mesh: PathBuf,
    /// Number of rounds to print
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = whole("a number of rounds", 0..=u32::MAX))]
    pub rounds: u32,
    /// Print the whole plan as JSON
    #[arg(long)]
    pub json: bool,
}

/// `goodput fleet matrix`
#[derive(Debug, Args)]
pub struct FleetMatrixArgs {
    /// Mesh file whose sites are the rows and columns [default: all hosts]
    #[arg(long, value_name = "MESH.toml")]
    pub mesh: Option<PathBuf>,
    /// Only results since this time (UTC), like 2026-11-24, or an age: 7d
    #[arg(long, value_name = "WHEN", default_value = "30d", value_parser = when::since)]
    pub since: String,
    /// How much slower than typical a slow pair is, at least
    #[arg(long, value_name = "PERCENT", default_value = "10%", value_parser = percent::tolerance)]
    pub slow: f64,
    /// Describe each pair, not only the slow ones
    #[arg(long)]
    pub cells: bool,
    /// Print the matrix and what explains it as JSON
    #[arg(long)]
    pub json: bool,
}
