//! `cargo xtask fuzz`: runs every fuzz target for a while, on the nightly toolchain.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use goodput_testing::seeds;

use goodput_tools::shell::{capture, command, root, run as run_command};

/// Options of `cargo xtask fuzz`.
#[derive(clap::Args)]
pub struct Options {
    /// Seconds for each target.
    #[arg(default_value_t = 60)]
    seconds: u32,
    /// Don't search: keep the found inputs that reach code which no seed reaches.
    #[arg(long)]
    keep: bool,
    /// Only this target; can be repeated.
    #[arg(long, value_name = "TARGET")]
    only: Vec<String>,
}

/// Runs the targets one after the other; stops at the first crash.
pub fn run(options: &Options) -> Result<()> {
    if capture(outside_cargo("rustc").args(["+nightly", "--version"])).is_err() {
        bail!("needs the nightly toolchain: `rustup toolchain install nightly`");
    }
    let wanted = |target: &String| options.only.is_empty() || options.only.contains(target);
    for target in targets()?.into_iter().filter(wanted) {
        unpack(&target)?;
        if options.keep {
            println!("== {target}");
            run_command(outside_cargo("fuzz/run").args(["--keep", &target]))?;
            pack(&target)?;
        } else {
            println!("== {target}, {} s", options.seconds);
            let seconds = options.seconds.to_string();
            run_command(outside_cargo("fuzz/run").args([&target, &seconds]))?;
        }
    }
    Ok(())
}

/// The file with a target's seeds, and the folder into which they are unpacked for the fuzzer.
fn places(target: &str) -> (PathBuf, PathBuf) {
    let fuzz = root().join("fuzz");
    (fuzz.join("corpus").join(target).with_extension("seeds"), fuzz.join("seeds").join(target))
}

/// Fills the fuzzer's folder with the stored seeds, and nothing else.
fn unpack(target: &str) -> Result<()> {
    let (file, folder) = places(target);
    let packed = fs::read(&file).with_context(|| format!("read {}", file.display()))?;
    let seeds = seeds::unpack(&packed);
    let seeds = seeds.with_context(|| format!("{} is cut short", file.display()))?;
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("remove {}", folder.display()))?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
    for (number, seed) in seeds.iter().enumerate() {
        let path = folder.join(number.to_string());
        fs::write(&path, seed).with_context(|| format!("write {}", path.display()))?;
    }
    Ok(())
}

/// Stores what the fuzzer left in its folder.
fn pack(target: &str) -> Result<()> {
    let (file, folder) = places(target);
    let entries = fs::read_dir(&folder).with_context(|| format!("read {}", folder.display()))?;
    let read = |entry: std::io::Result<fs::DirEntry>| fs::read(entry?.path());
    let seeds = entries.map(read).collect::<Result<_, _>>();
    let seeds = seeds.with_context(|| format!("read the seeds in {}", folder.display()))?;
    fs::write(&file, seeds::pack(seeds)).with_context(|| format!("write {}", file.display()))
}

/// The names of the modules in crates/fuzzed/src/targets, files and folders, sorted.
fn targets() -> Result<Vec<String>> {
    let entries =
        fs::read_dir(root().join("crates/fuzzed/src/targets")).context("no fuzz targets")?;
    let mut names = Vec::new();
    for entry in entries {
        let stem = entry?.path().file_stem().and_then(|stem| Some(stem.to_str()?.to_owned()));
        names.extend(stem.filter(|stem| stem != "mod"));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_that_has_seeds_is_run() {
        let seeds = fs::read_dir(root().join("fuzz/corpus")).unwrap();
        let mut with_seeds: Vec<_> = seeds
            .map(|seed| seed.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
            .collect();
        with_seeds.sort();
        assert_eq!(targets().unwrap(), with_seeds);
    }
}
