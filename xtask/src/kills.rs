//! `cargo xtask kills`: runs that change settings are killed at random moments, and the whole
//! network namespace is compared with what it was.

use anyhow::Result;

use xtask::shell;

/// How many kills.
#[derive(clap::Args)]
pub struct Options {
    /// Runs that are killed, half of them together with their guard
    #[arg(default_value_t = 1000)]
    kills: u32,
}

/// Runs the test that does it, with this many kills, and shows what it counted or what differed.
pub fn run(options: &Options) -> Result<()> {
    let test = "conformance::killed_at_any_moment_the_whole_namespace_comes_back";
    let mut cargo = shell::cargo(["test", "--package", "goodput-settings", "--lib", "--"]);
    cargo.args(["--exact", test, "--nocapture"]);
    cargo.env("GOODPUT_KILLS", options.kills.to_string()).env("GOODPUT_REQUIRE", "all");
    shell::run(&mut cargo)
}
