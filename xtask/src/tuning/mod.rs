//! `cargo xtask tuning`: whether `goodput tune`, unaided, brings a path with a removable fault to the goodput of the
//! same path without the fault, and keeps no change on a path with nothing wrong.

mod case;
mod report;

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::lab_program::LabProgram;
use crate::random::{self, Which};
use case::{Kind, Path};
use xtask::shell::root;

/// Options of `cargo xtask tuning`.
#[derive(clap::Args)]
pub struct Options {
    /// One case of each built-in scenario whose fault a setting removes.
    #[arg(long)]
    scenarios: bool,
    /// This many random faults that a setting removes.
    #[arg(long, value_name = "N", default_value_t = 0)]
    random: u64,
    /// This many random paths with nothing wrong.
    #[arg(long, value_name = "N", default_value_t = 0)]
    healthy: u64,
    /// Seed of what is random.
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
    /// Number of the first random case.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    first: u64,
    /// The program to judge instead of the one built here.
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Keep what came of each case, one JSON line a case, in this file.
    #[arg(long, value_name = "FILE", default_value = "target/tuning.jsonl")]
    keep: PathBuf,
}

/// Tunes one case after the other, and prints the results.
pub fn run(options: &Options) -> Result<()> {
    let program = LabProgram::given_or_built(options.program.as_deref())?;
    let paths = paths(options, &program)?;
    if paths.is_empty() {
        bail!("choose at least one of --scenarios, --random N and --healthy N");
    }
    let keep = root().join(&options.keep);
    let mut kept = File::create(&keep).with_context(|| format!("create {}", keep.display()))?;
    let folder = tempfile::tempdir().context("make a temporary directory")?;
    let mut all = Vec::new();
    for (number, path) in paths.iter().enumerate() {
        let tuned = path.tune(&program, folder.path())?;
        println!("{} of {}: {}", number + 1, paths.len(), report::one_line(&tuned));
        writeln!(kept, "{}", serde_json::to_string(&tuned)?).context("keep what came of a case")?;
        all.push(tuned);
    }
    print!("{}", report::summary(&all));
    Ok(())
}

fn paths(options: &Options, program: &LabProgram) -> Result<Vec<Path>> {
    let mut paths = if options.scenarios { of_scenarios(program)? } else { Vec::new() };
    let numbers = |count: u64| options.first..options.first.saturating_add(count);
    for number in numbers(options.random) {
        let case = drawn(options.seed, number)?;
        paths.push(Path {
            name: case.name,
            kind: Kind::Faulty,
            tuned: case.faulty,
            healthy: case.healthy,
        });
    }
    for number in numbers(options.healthy) {
        let case = drawn(options.seed.wrapping_add(1), number)?;
        let (name, healthy) = (format!("{}-healthy", case.name), case.healthy);
        paths.push(Path { name, kind: Kind::Healthy, tuned: healthy.clone(), healthy });
    }
    Ok(paths)
}

fn drawn(seed: u64, number: u64) -> Result<random::Case> {
    random::draw(seed, number, Which::Fixable)
        .with_context(|| format!("no path fits fault {number} of seed {seed}"))
}

/// The default cases of scenarios that are marked fixable. Without their faults, or with what the best setting would
/// leave of them, the path is healthy.
fn of_scenarios(program: &LabProgram) -> Result<Vec<Path>> {
    let mut paths = Vec::new();
    for case in program.default_cases()? {
        let shown = program.show(&case)?;
        let mut table: toml::Table = shown.parse().with_context(|| format!("{case}: not TOML"))?;
        if table["expect"].get("fixable").and_then(toml::Value::as_bool) != Some(true) {
            continue;
        }
        let faults = table.get("fault").and_then(toml::Value::as_array).cloned();
        let mended: Vec<_> = faults.iter().flatten().filter_map(random::mended).collect();
        table.insert("fault".into(), mended.into());
        let healthy = table.to_string();
        paths.push(Path { name: case, kind: Kind::Faulty, tuned: shown, healthy });
    }
    Ok(paths)
}
