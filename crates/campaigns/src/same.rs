//! `cargo xtask same`: how often `goodput compare` reports a difference between equal arms, or finds a known one, in real
//! runs in the lab.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::lab_program::LabProgram;
use crate::options::{DrawOptions, RunOptions};
use crate::random::{self, Known};
use crate::side_by_side;
use crate::wilson;

/// What a comparison may say, and the judgements that say it.
const ANSWERS: [(&str, &[&str]); 4] = [
    ("worse", &["worse", "worse-perhaps-below-threshold"]),
    ("better", &["better", "better-perhaps-below-threshold"]),
    ("no difference", &["no-difference"]),
    ("inconclusive", &["inconclusive"]),
];

/// Options of `cargo xtask same`.
#[derive(clap::Args)]
pub struct Options {
    /// Comparisons, each on a random path with nothing wrong.
    #[arg(default_value_t = 200)]
    comparisons: u64,
    /// Instead of equal arms, compare a shaper with one whose rate is this many percent lower.
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(1..=99))]
    slower: Option<u8>,
    #[command(flatten)]
    draw: DrawOptions,
    #[command(flatten)]
    run: RunOptions,
}

impl Options {
    fn paths(&self) -> Result<Vec<Known>> {
        let DrawOptions { seed, first, .. } = self.draw;
        match self.slower {
            Some(percent) => Ok(random::slower(seed, first, self.comparisons, percent.into())),
            None => random::same(seed, first, self.comparisons),
        }
    }
}

/// Compares arms whose difference is known, and prints how often each answer came.
pub fn run(options: &Options) -> Result<()> {
    let program = options.run.program()?;
    let keep = options.run.keep("same");
    let mut kept = File::create(&keep).with_context(|| format!("create {}", keep.display()))?;
    let folder = tempfile::tempdir().context("make a temporary directory")?;
    let mut all = Vec::new();
    side_by_side::each(
        options.paths()?,
        options.draw.jobs,
        |path| path.light,
        |path| compare(&program, folder.path(), &path),
        |(name, line)| {
            writeln!(kept, "{line}").context("keep what came of a comparison")?;
            let compared = Compared::read(&line)?;
            println!("{name}: {compared}");
            all.push(compared);
            Ok(())
        },
    )?;
    print!("{}", summary(&all));
    Ok(())
}

/// The name of a path and the line of the comparison on it.
fn compare(program: &LabProgram, folder: &Path, known: &Known) -> Result<(String, String)> {
    let path = folder.join(format!("{}.toml", known.name));
    fs::write(&path, &known.scenario).with_context(|| format!("write {}", path.display()))?;
    Ok((known.name.clone(), program.compare(&path.display().to_string(), &known.change)?))
}

/// What came of a comparison.
struct Compared {
    /// The judgement, or why there is none.
    judgement: String,
    /// Sample standard deviation of the logarithms of the baseline's runs: about the spread as a share of their goodput.
    spread: Option<f64>,
}

impl Compared {
    fn read(line: &str) -> Result<Self> {
        let line: Value = serde_json::from_str(line).context("a comparison's line is not JSON")?;
        let comparison = &line["record"]["comparison"];
        let judgement = comparison["arms"][1]["goodput"]["judgement"].as_str();
        let why = line["failed"].as_str().and_then(|why| why.lines().next());
        Ok(Self {
            judgement: judgement.or(why).unwrap_or("no run counts").into(),
            spread: spread(&comparison["trials"]),
        })
    }
}

impl std::fmt::Display for Compared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.judgement)?;
        match self.spread {
            Some(spread) => write!(f, " (spread of the baseline's runs {:.1} %)", spread * 100.0),
            None => Ok(()),
        }
    }
}

/// The spread of the baseline's runs that count; `None` if fewer than two do.
fn spread(trials: &Value) -> Option<f64> {
    let counts = |trial: &&Value| trial["arm"] == 0 && trial["discarded"].is_null();
    let trials = trials.as_array()?.iter().filter(counts);
    let logs: Vec<f64> =
        trials.filter_map(|trial| trial["goodput_bits_per_s"].as_f64()).map(f64::ln).collect();
    if logs.len() < 2 {
        return None;
    }
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
    Some((squares / (logs.len() - 1) as f64).sqrt())
}

fn summary(all: &[Compared]) -> String {
    let count = |said: &[&str]| all.iter().filter(|one| said.contains(&&*one.judgement)).count();
    let counts = ANSWERS.map(|(answer, said)| (answer, count(said)));
    let compared = counts.iter().map(|(_, count)| count).sum();
    let lines: String = counts
        .iter()
        .map(|(answer, count)| format!("{answer}: {}\n", wilson::shown(*count, compared)))
        .collect();
    format!("{lines}not compared: {}\n{}", all.len() - compared, spreads(all))
}

/// The spreads of all comparisons: their median and the largest.
fn spreads(all: &[Compared]) -> String {
    let spreads: Vec<f64> = all.iter().filter_map(|one| one.spread).collect();
    let largest = spreads.iter().copied().reduce(f64::max);
    match (goodput_model::median(spreads), largest) {
        (Some(median), Some(largest)) => format!(
            "spread of the baseline's runs: {:.1} % in the median, {:.1} % at most\n",
            median * 100.0,
            largest * 100.0
        ),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_compared_counts() {
        let read = |text: &str| Compared::read(text).unwrap();
        let judged = r#"{"record":{"comparison":{"arms":[{},{"goodput":{"judgement":"worse"}}]}}}"#;
        let failed = r#"{"failed":"no route\nmore"}"#;
        let all = [read(judged), read(failed)];
        assert_eq!(all[1].judgement, "no route");
        let text = summary(&all);
        assert!(
            text.starts_with("worse: 1 of 1 ") && text.ends_with("not compared: 1\n"),
            "{text}"
        );
    }

    #[test]
    fn the_spread_is_that_of_the_runs_of_the_baseline() {
        let trial = |arm: u8, rate: f64, discarded: Value| serde_json::json!({ "arm": arm, "goodput_bits_per_s": rate, "discarded": discarded });
        let trials =
            [(0, 97.0), (0, 103.0), (1, 50.0)].map(|(arm, rate)| trial(arm, rate, Value::Null));
        let dropped = trial(0, 1.0, "interrupted".into());
        let spread = spread(&trials.into_iter().chain([dropped]).collect()).unwrap();
        assert!((spread - (103.0_f64 / 97.0).ln() / 2_f64.sqrt()).abs() < 1e-12, "{spread}");
    }
}
