//! What `goodput list` takes.

use clap::{Args, ValueEnum};

/// `goodput list`
#[derive(Debug, Args)]
pub struct ListArgs {
    /// What to list
    #[arg(value_enum)]
    pub what: Listed,
    #[command(flatten)]
    pub narrowed: Narrowed,
}

/// Which rows of a list are shown, and how much of each.
#[derive(Debug, Args)]
pub struct Narrowed {
    /// Show only rows that contain this
    #[arg(value_name = "TEXT")]
    pub containing: Option<String>,
    /// Show all columns, and in a file or pipe each row in one line
    #[arg(long)]
    pub long: bool,
}

/// What `goodput list` can list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Listed {
    /// Causes the diagnosis can name
    Rules,
    /// What `goodput check` looks at
    Checks,
    /// Short runs of `test --probe` that distinguish two causes
    Probes,
    /// What `goodput ceiling` computes
    Bounds,
    /// Settings that can be changed
    Settings,
    /// Settings that a server may let its clients change
    FarSettings,
    /// Ways to move payload
    Movers,
    /// Protocols spoken with peers
    Protocols,
    /// Outputs of other programs, for `--format`
    Formats,
    /// Scenarios of the lab
    Scenarios,
    /// Faults that scenarios plant
    Faults,
    /// Where the facts of a host come from
    Sources,
}
