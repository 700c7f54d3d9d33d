//! `cargo xtask fuzz`: every fuzz target for a while, with cargo-fuzz on the nightly toolchain.

use std::process::Command;

use anyhow::{Result, bail};

use crate::shell::{capture, command, run as run_command};

/// Options of `cargo xtask fuzz`.
#[derive(clap::Args)]
pub struct Options {
    /// Seconds for each target.
    #[arg(default_value_t = 60)]
    seconds: u32,
}

/// Runs the targets one after the other; the first crash ends it.
pub fn run(options: &Options) -> Result<()> {
    if capture(fuzz().arg("--version")).is_err() {
        bail!(
            "needs the nightly toolchain and cargo-fuzz: \
             `rustup toolchain install nightly && cargo install cargo-fuzz`"
        );
    }
    let targets = capture(fuzz().arg("list"))?;
    for target in targets.lines() {
        println!("== {target}, {} s", options.seconds);
        let limit = format!("-max_total_time={}", options.seconds);
        run_command(fuzz().args(["run", target, "--", &limit]))?;
    }
    Ok(())
}

/// `cargo fuzz` of the nightly toolchain, whichever one runs us.
fn fuzz() -> Command {
    let mut command = command("rustup");
    command.args(["run", "nightly", "cargo", "fuzz"]);
    for chosen_by_cargo in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN"] {
        command.env_remove(chosen_by_cargo);
    }
    command
}
