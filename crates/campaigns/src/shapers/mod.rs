//! `cargo xtask shapers`: how often `goodput shaping` is right about shapers that are drawn at random, in real runs in the
//! lab. What came of each run is kept, with the times of its datagrams, so that it can be judged again.

mod draw;
mod judged;
mod kept;
mod planted;
mod report;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use self::draw::Drawn;
use self::judged::{computed_bucket, gives};
use self::kept::Kept;
use self::planted::Kernel;
use self::report::{Outcome, summary, words};
use crate::lab_program::LabProgram;
use crate::options::{DrawOptions, RunOptions};
use crate::side_by_side;

/// A bucket with which the rate of any drawn shaper must be given, if any bucket gives it: 50 ms at 5 Gbit/s, bytes.
const AMPLE_BYTES: f64 = 32e6;

/// Options of `cargo xtask shapers`.
#[derive(clap::Args)]
pub struct Options {
    /// Shapers to draw.
    #[arg(default_value_t = 100)]
    shapers: u64,
    /// Draw from what this kernel has; in `cargo xtask kernel debian`, that is `distribution`
    #[arg(long, value_enum, default_value_t = Kernel::Own)]
    kernel: Kernel,
    /// Only draw and test; don't try the computed buckets.
    #[arg(long)]
    no_buckets: bool,
    /// Judge what was kept in this file again, with the estimators of this tree, and run nothing
    #[arg(long, value_name = "FILE")]
    again: Option<PathBuf>,
    #[command(flatten)]
    draw: DrawOptions,
    #[command(flatten)]
    run: RunOptions,
}

/// Tests shapers whose truth is known, and prints how often each answer is right.
pub fn run(options: &Options) -> Result<()> {
    if let Some(file) = &options.again {
        return kept::again(file);
    }
    let program = options.run.program()?;
    let (mut file, before) = options.run.keep("shapers", crate::kept::read::<Kept>)?;
    let folder = tempfile::tempdir().context("make a temporary directory")?;
    let DrawOptions { seed, first, jobs } = options.draw;
    let numbers = first..first.saturating_add(options.shapers);
    let mut drawn: Vec<_> = numbers.map(|number| Drawn::of(options.kernel, seed, number)).collect();
    drawn.retain(|drawn| before.iter().all(|kept| kept.drawn != *drawn));
    let mut all: Vec<_> = before.iter().map(|kept| kept.outcome(&kept.record())).collect();
    side_by_side::each(
        drawn,
        jobs,
        |_| false,
        |drawn| tested(&program, folder.path(), drawn, !options.no_buckets),
        |(kept, outcome)| {
            println!("{}", words(&kept.drawn, &kept.record(), &outcome));
            file.add(&serde_json::to_string(&kept).context("write what came of a test")?)?;
            all.push(outcome);
            Ok(())
        },
    )?;
    print!("{}", summary(&all));
    Ok(())
}

fn tested(
    program: &LabProgram,
    folder: &Path,
    drawn: Drawn,
    tries_buckets: bool,
) -> Result<(Kept, Outcome)> {
    let (record, train) = shaping(program, folder, &drawn, None)?;
    let computed = computed_bucket(&record).filter(|_| tries_buckets);
    // Only tbf has one bucket, and the sender's own.
    let enough = match (drawn.planted().id, computed) {
        ("tbf", Some(bytes)) => enough(program, folder, &drawn, bytes)?,
        _ => None,
    };
    let kept = Kept::of(drawn, &record, train, enough);
    let outcome = kept.outcome(&record);
    Ok((kept, outcome))
}

/// Whether this bucket gives the rate; `None` if an ample one does not either.
fn enough(program: &LabProgram, folder: &Path, drawn: &Drawn, bytes: f64) -> Result<Option<bool>> {
    if gives(drawn, &shaping(program, folder, drawn, Some(bytes))?.0) {
        return Ok(Some(true));
    }
    let (ample, _) = shaping(program, folder, drawn, Some(AMPLE_BYTES))?;
    Ok(gives(drawn, &ample).then_some(false))
}

/// The record of a test, and the times of its train; without a record, an object that says why.
fn shaping(
    program: &LabProgram,
    folder: &Path,
    drawn: &Drawn,
    bucket: Option<f64>,
) -> Result<(Value, Option<Value>)> {
    let path = folder.join(format!("{}.toml", drawn.name));
    let times = folder.join(format!("{}.json", drawn.name));
    fs::write(&path, drawn.scenario(bucket))
        .with_context(|| format!("write {}", path.display()))?;
    let test = format!(
        "exec goodput shaping \"$FAR\" --rate {}kbit --times '{}' --no-store --json",
        drawn.asked_kbit,
        times.display()
    );
    let case = path.display().to_string();
    let record = match program.up(&case, &["sh", "-c", &test]) {
        Ok(said) => serde_json::from_str(&said).context("a record is not JSON")?,
        Err(why) => json!({ "failed": why.to_string() }),
    };
    // Without a train there is none.
    let train = fs::read(&times).ok().and_then(|text| serde_json::from_slice(&text).ok());
    Ok((record, train))
}
