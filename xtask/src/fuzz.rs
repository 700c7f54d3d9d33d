//! `cargo xtask fuzz`: every fuzz target for a while, on the nightly toolchain.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail};

use xtask::shell::{capture, command, root, run as run_command};

/// Options of `cargo xtask fuzz`.
#[derive(clap::Args)]
pub struct Options {
    /// Seconds for each target.
    #[arg(default_value_t = 60)]
    seconds: u32,
}

/// Runs the targets one after the other; the first crash ends it.
pub fn run(options: &Options) -> Result<()> {
    if capture(outside_cargo("rustc").args(["+nightly", "--version"])).is_err() {
        bail!("needs the nightly toolchain: `rustup toolchain install nightly`");
    }
    for target in targets()? {
        println!("== {target}, {} s", options.seconds);
        let seconds = options.seconds.to_string();
        run_command(outside_cargo("fuzz/run").args([&target, &seconds]))?;
    }
    Ok(())
}

/// The names of the files in crates/fuzzed/src/targets, in order.
fn targets() -> Result<Vec<String>> {
    let entries =
        fs::read_dir(root().join("crates/fuzzed/src/targets")).context("no fuzz targets")?;
    let mut names = Vec::new();
    for entry in entries {
        let path = entry?.path();
        // A folder beside a target holds what belongs to it.
        if path.extension().is_some_and(|extension| extension == "rs") {
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            names.extend(stem.filter(|stem| *stem != "mod").map(String::from));
        }
    }
    names.sort();
    Ok(names)
}

/// A command that does not inherit the toolchain of the cargo that runs us.
fn outside_cargo(program: &str) -> Command {
    let mut command = command(program);
    for chosen_by_cargo in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN"] {
        command.env_remove(chosen_by_cargo);
    }
    command
}
