//! `cargo xtask shapers`: how often `goodput shaping` is right about shapers that are drawn at random, in real runs in the
//! lab.

mod draw;
mod judged;

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use self::draw::{Drawn, Planted};
use self::judged::{Judged, computed_bucket, gives};
use crate::lab_program::LabProgram;
use crate::options::{DrawOptions, RunOptions};
use crate::side_by_side;
use crate::wilson;

/// A bucket with which the rate of any drawn shaper must be given, if any bucket gives it: 50 ms at 5 Gbit/s, bytes.
const AMPLE_BYTES: f64 = 32e6;

/// Options of `cargo xtask shapers`.
#[derive(clap::Args)]
pub struct Options {
    /// Shapers to draw.
    #[arg(default_value_t = 100)]
    shapers: u64,
    /// Only draw and test; don't try the computed buckets.
    #[arg(long)]
    no_buckets: bool,
    #[command(flatten)]
    draw: DrawOptions,
    #[command(flatten)]
    run: RunOptions,
}

/// What came of one draw.
struct Outcome {
    planted: Planted,
    judged: Judged,
    /// Whether the computed bucket gives the rate; `None` if no bucket does, or none was tried.
    enough: Option<bool>,
}

/// Tests shapers whose truth is known, and prints how often each answer is right.
pub fn run(options: &Options) -> Result<()> {
    let program = options.run.program()?;
    let keep = options.run.keep("shapers");
    let mut kept = File::create(&keep).with_context(|| format!("create {}", keep.display()))?;
    let folder = tempfile::tempdir().context("make a temporary directory")?;
    let DrawOptions { seed, first, jobs } = options.draw;
    let numbers = first..first.saturating_add(options.shapers);
    let mut all = Vec::new();
    side_by_side::each(
        numbers.map(|number| Drawn::of(seed, number)),
        jobs,
        |_| false,
        |drawn| tested(&program, folder.path(), &drawn, !options.no_buckets),
        |(drawn, record, outcome)| {
            let Judged { kind, rate, bucket, .. } = outcome.judged;
            let enough = outcome.enough;
            println!("{}: {}", drawn.name, words(&drawn, &record, &outcome));
            let truth = json!({ "kbit": drawn.asked_kbit, "bucket": drawn.bucket_bytes, "no_offload": drawn.no_offload });
            let line = json!({ "name": drawn.name, "truth": truth, "kind": kind, "rate": rate, "bucket": bucket,
                "enough": enough, "shaping": record["shaping"] });
            writeln!(kept, "{line}").context("keep what came of a test")?;
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
    drawn: &Drawn,
    tries_buckets: bool,
) -> Result<(Drawn, Value, Outcome)> {
    let record = shaping(program, folder, drawn, None)?;
    let judged = Judged::of(drawn, &record);
    let computed = computed_bucket(&record).filter(|_| tries_buckets);
    // Only tbf has one bucket, and the sender's own.
    let enough = match (drawn.planted, computed) {
        (Planted::Tbf, Some(bytes)) => enough(program, folder, drawn, bytes)?,
        _ => None,
    };
    Ok((drawn.clone(), record, Outcome { planted: drawn.planted, judged, enough }))
}

/// Whether this bucket gives the rate; `None` if an ample one does not either.
fn enough(program: &LabProgram, folder: &Path, drawn: &Drawn, bytes: f64) -> Result<Option<bool>> {
    if gives(drawn, &shaping(program, folder, drawn, Some(bytes))?) {
        return Ok(Some(true));
    }
    let ample = shaping(program, folder, drawn, Some(AMPLE_BYTES))?;
    Ok(gives(drawn, &ample).then_some(false))
}

/// The record of a test; without one, an object that says why.
fn shaping(
    program: &LabProgram,
    folder: &Path,
    drawn: &Drawn,
    bucket: Option<f64>,
) -> Result<Value> {
    let path = folder.join(format!("{}.toml", drawn.name));
    fs::write(&path, drawn.scenario(bucket))
        .with_context(|| format!("write {}", path.display()))?;
    let test =
        format!("exec goodput shaping \"$FAR\" --rate {}kbit --no-store --json", drawn.asked_kbit);
    let case = path.display().to_string();
    match program.up(&case, &["sh", "-c", &test]) {
        Ok(said) => serde_json::from_str(&said).context("a record is not JSON"),
        Err(why) => Ok(json!({ "failed": why.to_string() })),
    }
}

fn words(drawn: &Drawn, record: &Value, outcome: &Outcome) -> String {
    if let Some(why) = record["failed"].as_str() {
        return format!("not tested: {why}");
    }
    let train = &record["shaping"]["train"];
    let shown = |right: Option<bool>| match right {
        Some(true) => "right",
        Some(false) => "WRONG",
        None => "no truth",
    };
    let percent = |seen: &Value, truth: f64| {
        let seen = seen["value"].as_f64();
        seen.map_or("unknown".into(), |seen| format!("{:+.2} %", (seen / truth - 1.0) * 100.0))
    };
    let Judged { kind, rate, bucket, .. } = outcome.judged;
    format!(
        "{} kbit/s, {:.0} bytes: kind {} ({}), rate {} ({}), bucket {} ({}), computed bucket {}",
        drawn.asked_kbit,
        drawn.bucket_bytes,
        train["kind"].as_str().unwrap_or("unknown"),
        shown(Some(kind)),
        percent(&train["rate_bits_per_s"], drawn.rate_bits_per_s),
        shown(rate),
        percent(&train["bucket_bytes"], drawn.at_once_bytes),
        shown(bucket),
        shown(outcome.enough)
    )
}

fn summary(all: &[Outcome]) -> String {
    let of = |answer: &dyn Fn(&Outcome) -> Option<bool>| {
        let known: Vec<_> = all.iter().filter_map(answer).collect();
        wilson::shown(known.iter().filter(|right| **right).count(), known.len())
    };
    let kinds = Planted::ALL.map(|planted| {
        let right = of(&|one| (one.planted == planted).then_some(one.judged.kind));
        format!("kind of {}: {right}\n", planted.id())
    });
    format!(
        "kind: {}\n{}rate within 0.5 %: {}\nbucket within 10 % or a frame: {}\ntraffic of at most 5 s: {}\n\
         computed bucket gives 95 % where any does: {}\n",
        of(&|one| Some(one.judged.kind)),
        kinds.concat(),
        of(&|one| one.judged.rate),
        of(&|one| one.judged.bucket),
        of(&|one| one.judged.is_short),
        of(&|one| one.enough)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_has_a_truth_counts() {
        let judged = Judged { kind: true, rate: None, bucket: Some(false), is_short: Some(true) };
        let outcome = |planted, enough| Outcome { planted, judged, enough };
        let all = [outcome(Planted::Tbf, Some(true)), outcome(Planted::Nothing, None)];
        let text = summary(&all);
        for line in ["kind: 2 of 2 ", "kind of htb: none", "rate within 0.5 %: none"] {
            assert!(text.contains(line), "{text}");
        }
        assert!(text.contains("frame: 0 of 2 ") && text.contains("any does: 1 of 1 "), "{text}");
    }
}
