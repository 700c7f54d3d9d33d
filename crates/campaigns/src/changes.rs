//! `cargo xtask changes`: how often `goodput watch` names what changed on a path, in real tests in the lab.

use anyhow::Result;

use goodput_tools::shell;

/// Which changes.
#[derive(clap::Args)]
pub struct Options {
    /// Changes, each on a random path, with a random cause and strength; each takes about a minute
    #[arg(default_value_t = 100)]
    changes: u64,
    /// Seed of what is random
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
    /// Number of the first change
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    first: u64,
}

/// Runs the test with this many changes, which prints what is said of each.
pub fn run(options: &Options) -> Result<()> {
    let mut cargo = shell::cargo(["test", "--package", "goodput", "--test", "lab", "--"]);
    cargo.args(["--exact", "changes::planted_at_random", "--nocapture"]);
    cargo.env("GOODPUT_CHANGES", options.changes.to_string());
    cargo.env("GOODPUT_SEED", options.seed.to_string());
    cargo.env("GOODPUT_FIRST", options.first.to_string()).env("GOODPUT_REQUIRE", "all");
    shell::run(&mut cargo)
}
