//! `cargo xtask same`: how often `goodput compare` reports a difference between equal arms, or finds a known one, in real
//! runs in the lab.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::kept::{self, Identity};
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

/// Longest comparison: what `goodput compare` takes by itself.
const MAX_TIME: &str = "5m";

/// The spread of runs up to which a difference of 5 % has to be found.
const STEADY: f64 = 0.03;

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
    let read = |file: &Path| kept::read_by(file, Compared::read);
    let (mut kept, mut all) = options.run.keep("same", read)?;
    let drawn = options.paths()?.into_iter().map(|path| (path.digest(), path)).collect();
    let kept_before = all.iter().map(Compared::identity);
    let paths =
        kept::left(drawn, kept_before, |(drawn, path)| Identity { name: &path.name, drawn })?;
    let folder = tempfile::tempdir().context("make a temporary directory")?;
    side_by_side::each(
        paths,
        options.draw.jobs,
        |(_, path)| path.light,
        |(drawn, path)| compare(&program, folder.path(), &path, &drawn),
        |line| {
            kept.add(&line)?;
            let compared = Compared::read(&line)?;
            println!("{compared}");
            all.push(compared);
            Ok(())
        },
    )?;
    print!("{}", summary(&all));
    Ok(())
}

/// The line of the comparison on a path, with the digest of what was `drawn`.
fn compare(program: &LabProgram, folder: &Path, known: &Known, drawn: &str) -> Result<String> {
    let path = folder.join(format!("{}.toml", known.name));
    fs::write(&path, &known.scenario).with_context(|| format!("write {}", path.display()))?;
    let line = program.compare(&path.display().to_string(), &known.change, MAX_TIME)?;
    let mut line: Value = serde_json::from_str(&line).context("a comparison's line is not JSON")?;
    line["drawn"] = drawn.into();
    Ok(line.to_string())
}

/// What came of a comparison.
struct Compared {
    /// The path.
    case: String,
    /// Digest of what was drawn.
    drawn: String,
    /// The judgement, or why there is none.
    judgement: String,
    /// Pooled standard deviation of the logarithms of an arm's runs: about the spread as a share of their goodput.
    spread: Option<f64>,
}

impl Compared {
    fn read(line: &str) -> Result<Self> {
        let line: Value = serde_json::from_str(line).context("a comparison's line is not JSON")?;
        let comparison = &line["record"]["comparison"];
        let judgement = comparison["arms"][1]["goodput"]["judgement"].as_str();
        let why = line["failed"].as_str().and_then(|why| why.lines().next());
        Ok(Self {
            case: line["case"].as_str().context("a comparison's line names no case")?.into(),
            drawn: line["drawn"].as_str().context("a comparison's line has no digest")?.into(),
            judgement: judgement.or(why).unwrap_or("no run counts").into(),
            spread: spread(&comparison["trials"]),
        })
    }

    fn identity(&self) -> Identity<'_> {
        Identity { name: &self.case, drawn: &self.drawn }
    }
}

impl std::fmt::Display for Compared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.case, self.judgement)?;
        match self.spread {
            Some(spread) => write!(f, " (runs spread by {:.1} %)", spread * 100.0),
            None => Ok(()),
        }
    }
}

/// The spread of the runs that count, each about the mean of its arm; `None` if no arm has two.
fn spread(trials: &Value) -> Option<f64> {
    let mut arms: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for trial in trials.as_array()?.iter().filter(|trial| trial["discarded"].is_null()) {
        let goodput = trial["goodput_bits_per_s"].as_f64()?;
        arms.entry(trial["arm"].as_u64()?).or_default().push(goodput.ln());
    }
    let freedom: usize = arms.values().map(|logs| logs.len() - 1).sum();
    let squares: f64 = arms.values().map(|logs| squares(logs)).sum();
    (freedom > 0).then(|| (squares / freedom as f64).sqrt())
}

/// The sum of the squared distances from the mean.
fn squares(logs: &[f64]) -> f64 {
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    logs.iter().map(|log| (log - mean).powi(2)).sum()
}

fn summary(all: &[Compared]) -> String {
    let steady = |one: &&Compared| one.spread.is_some_and(|spread| spread <= STEADY);
    let steady: Vec<_> = all.iter().filter(steady).collect();
    let every: Vec<_> = all.iter().collect();
    let failed = every.len() - compared(&every);
    let heading = format!("where runs spread by at most {:.0} %:\n", STEADY * 100.0);
    format!(
        "{}not compared: {failed}\n{}{}",
        answers("", &every),
        answers(&heading, &steady),
        spreads(all)
    )
}

/// The heading, and how often each answer came, a line each; nothing if nothing was compared.
fn answers(heading: &str, of: &[&Compared]) -> String {
    let all = compared(of);
    if all == 0 {
        return String::new();
    }
    let line = |(answer, said): &(&str, &[&str])| {
        format!("{answer}: {}\n", wilson::shown(count(of, said), all))
    };
    heading.to_owned() + &ANSWERS.iter().map(line).collect::<String>()
}

fn count(of: &[&Compared], said: &[&str]) -> usize {
    of.iter().filter(|one| said.contains(&&*one.judgement)).count()
}

fn compared(of: &[&Compared]) -> usize {
    ANSWERS.iter().map(|(_, said)| count(of, said)).sum()
}

/// The spreads of all comparisons: their median and the largest.
fn spreads(all: &[Compared]) -> String {
    let spreads: Vec<f64> = all.iter().filter_map(|one| one.spread).collect();
    let largest = spreads.iter().copied().reduce(f64::max);
    match (goodput_model::median(spreads), largest) {
        (Some(median), Some(largest)) => format!(
            "spread of the runs: {:.1} % in the median, {:.1} % at most\n",
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
        let judged = r#"{"case":"a","drawn":"1","record":{"comparison":{"arms":[{},{"goodput":{"judgement":"worse"}}]}}}"#;
        let failed = r#"{"case":"b","drawn":"2","failed":"no route\nmore"}"#;
        let all = [read(judged), read(failed)];
        assert_eq!(all[1].judgement, "no route");
        let text = summary(&all);
        assert!(
            text.starts_with("worse: 1 of 1 ") && text.ends_with("\nnot compared: 1\n"),
            "nothing is steady: {text}"
        );
        assert_eq!(summary(&all[1..]), "not compared: 1\n");
    }

    #[test]
    fn the_spread_is_that_of_the_runs_about_the_mean_of_their_arm() {
        let trial = |arm: u8, rate: f64, discarded: Value| serde_json::json!({ "arm": arm, "goodput_bits_per_s": rate, "discarded": discarded });
        let counted = [(0, 97.0), (0, 103.0), (1, 50.0), (1, 50.0)];
        let trials = counted.map(|(arm, rate)| trial(arm, rate, Value::Null));
        let dropped = trial(0, 1.0, "interrupted".into());
        let spread = spread(&trials.into_iter().chain([dropped]).collect()).unwrap();
        assert!((spread - (103.0_f64 / 97.0).ln() / 2.0).abs() < 1e-12, "{spread}");
    }
}
