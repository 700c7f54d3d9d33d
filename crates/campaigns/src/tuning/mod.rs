//! `cargo xtask tuning`: whether `goodput tune`, unaided, brings a path with a removable fault to the goodput of the
//! same path without the fault, and keeps no change on a path with nothing wrong.

mod case;
mod report;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::kept;
use crate::lab_program::LabProgram;
use crate::options::{DrawOptions, RunOptions};
use crate::random::{self, Which};
use crate::side_by_side;
use case::{Kind, Tuned, TunedPath};
use goodput_tools::shell::root;

/// Options of `cargo xtask tuning`.
#[derive(clap::Args)]
pub struct Options {
    /// One case of each built-in scenario whose fault a setting removes.
    #[arg(long)]
    scenarios: bool,
    /// All cases of these scenarios.
    #[arg(long, requires = "scenarios")]
    full: bool,
    /// Only scenarios and their cases whose names begin so.
    #[arg(long, value_name = "NAME", requires = "scenarios")]
    only: Vec<String>,
    /// This many random faults that a setting removes.
    #[arg(long, value_name = "N", default_value_t = 0)]
    random: u64,
    /// This many random paths with nothing wrong.
    #[arg(long, value_name = "N", default_value_t = 0)]
    healthy: u64,
    #[command(flatten)]
    draw: DrawOptions,
    #[command(flatten)]
    run: RunOptions,
    /// Run nothing: write docs/tuning.md from what earlier runs kept in this file.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["scenarios", "random", "healthy", "program"])]
    from: Option<PathBuf>,
}

/// Tunes one case after the other, and prints the results.
pub fn run(options: &Options) -> Result<()> {
    if let Some(file) = &options.from {
        return write_page(file);
    }
    let program = options.run.program()?;
    let paths = paths(options, &program)?;
    if paths.is_empty() {
        bail!("choose at least one of --scenarios, --random N and --healthy N");
    }
    let (mut kept, mut all) = options.run.keep("tuning", kept::read::<Tuned>)?;
    let paths = kept::left(paths, all.iter().map(Tuned::identity), TunedPath::identity)?;
    let folder = tempfile::tempdir().context("make a temporary directory")?;
    let count = all.len() + paths.len();
    let tune = |path: TunedPath| path.tune(&program, folder.path());
    side_by_side::each(
        paths,
        options.draw.jobs,
        |path| path.light,
        tune,
        |tuned| {
            println!("{} of {count}: {}", all.len() + 1, report::one_line(&tuned));
            kept.add(&serde_json::to_string(&tuned)?)?;
            all.push(tuned);
            Ok(())
        },
    )?;
    for (what, shown) in report::summary(&all) {
        println!("{what}: {shown}");
    }
    Ok(())
}

/// Writes the page of what was kept in a file.
fn write_page(file: &Path) -> Result<()> {
    let page = report::page(&kept::read(file)?)?;
    fs::write(root().join("docs/tuning.md"), page).context("write docs/tuning.md")
}

fn paths(options: &Options, program: &LabProgram) -> Result<Vec<TunedPath>> {
    let mut paths = if options.scenarios { of_scenarios(options, program)? } else { Vec::new() };
    for number in options.draw.first..options.draw.first.saturating_add(options.random) {
        let case = random::case(options.draw.seed, number, Which::Fixable)?;
        paths.push(TunedPath {
            name: case.name,
            kind: Kind::Faulty,
            tuned: case.faulty,
            healthy: case.healthy,
            light: case.light,
        });
    }
    let healthy = (options.draw.first..)
        .map(|number| random::case(options.draw.seed.wrapping_add(1), number, Which::Fixable));
    // Some twins still have what no setting removes, or what another setting would.
    let is_bare = |case: &Result<random::Case>| {
        case.as_ref().map_or(true, |case| !case.healthy.contains("[[fault]]"))
    };
    for case in healthy.filter(is_bare).take(options.healthy as usize) {
        let random::Case { name, healthy, light, .. } = case?;
        let name = random::healthy_name(&name);
        let tuned = healthy.clone();
        paths.push(TunedPath { name, kind: Kind::Healthy, tuned, healthy, light });
    }
    Ok(paths)
}

/// The wanted cases of scenarios that are marked fixable. Without their faults, or with what the best setting would
/// leave of them, the path is healthy.
fn of_scenarios(options: &Options, program: &LabProgram) -> Result<Vec<TunedPath>> {
    let cases = if options.full { program.every_case()? } else { program.default_cases()? };
    let is_wanted = |case: &String| {
        options.only.is_empty() || options.only.iter().any(|name| case.starts_with(name))
    };
    let mut paths = Vec::new();
    for case in cases.into_iter().filter(is_wanted) {
        let shown = program.show(&case)?;
        let mut table: toml::Table = shown.parse().with_context(|| format!("{case}: not TOML"))?;
        if table["expect"].get("fixable").and_then(toml::Value::as_bool) != Some(true) {
            continue;
        }
        let faults = table.get("fault").and_then(toml::Value::as_array).cloned();
        let mended: Vec<_> = faults.iter().flatten().filter_map(random::mended).collect();
        table.insert("fault".into(), mended.into());
        let healthy = table.to_string();
        let kind = Kind::Faulty;
        paths.push(TunedPath { name: case, kind, tuned: shown, healthy, light: false });
    }
    Ok(paths)
}
