//! `cargo xtask same`: how often `goodput compare` reports a difference between equal arms, in real runs in the lab.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::lab_program::LabProgram;
use crate::options::{DrawOptions, RunOptions};
use crate::random::{self, Case};
use crate::side_by_side;
use crate::wilson;

/// Two values that no queue of the drawn paths distinguishes: none of them has bands.
const SAME: &str = "socket.priority=0,1";

/// Judgements that report a difference, however large.
const DIFFERENT: [&str; 4] =
    ["better", "worse", "better-perhaps-below-threshold", "worse-perhaps-below-threshold"];

/// Options of `cargo xtask same`.
#[derive(clap::Args)]
pub struct Options {
    /// Comparisons, each on a random path with nothing wrong.
    #[arg(default_value_t = 200)]
    comparisons: u64,
    #[command(flatten)]
    draw: DrawOptions,
    #[command(flatten)]
    run: RunOptions,
}

/// Compares identical arms, and prints how often they came out as different.
pub fn run(options: &Options) -> Result<()> {
    let program = options.run.program()?;
    let keep = options.run.keep("same");
    let mut kept = File::create(&keep).with_context(|| format!("create {}", keep.display()))?;
    let folder = tempfile::tempdir().context("make a temporary directory")?;
    let mut judgements = Vec::new();
    let cases = random::cases(options.draw.seed, options.draw.first, options.comparisons)?;
    let compare = |case| compare(&program, folder.path(), &case);
    side_by_side::each(
        cases,
        options.draw.jobs,
        |case| case.light,
        compare,
        |(name, line)| {
            writeln!(kept, "{line}").context("keep what came of a comparison")?;
            let judged = judgement(&line)?;
            println!("{name}: {judged}");
            judgements.push(judged);
            Ok(())
        },
    )?;
    print!("{}", summary(&judgements));
    Ok(())
}

/// The name of a path and the line of a comparison of equal arms on it.
fn compare(program: &LabProgram, folder: &Path, case: &Case) -> Result<(String, String)> {
    let path = folder.join(format!("{}.toml", case.name));
    fs::write(&path, &case.healthy).with_context(|| format!("write {}", path.display()))?;
    Ok((case.name.clone(), program.compare(&path.display().to_string(), SAME)?))
}

/// The result of a comparison, or why there is none.
fn judgement(line: &str) -> Result<String> {
    let line: Value = serde_json::from_str(line).context("a comparison's line is not JSON")?;
    let effect = &line["record"]["comparison"]["arms"][1]["goodput"]["judgement"];
    let why = line["failed"].as_str().and_then(|why| why.lines().next());
    Ok(effect.as_str().or(why).unwrap_or("no run counts").into())
}

fn summary(judgements: &[String]) -> String {
    let count = |wanted: &[&str]| {
        judgements.iter().filter(|judged| wanted.contains(&judged.as_str())).count()
    };
    let (different, same) = (count(&DIFFERENT), count(&["no-difference"]));
    let undecided = count(&["inconclusive"]);
    let decided = different + same + undecided;
    format!(
        "different: {}\nno difference: {}\ninconclusive: {}\nnot compared: {}\n",
        wilson::shown(different, decided),
        wilson::shown(same, decided),
        wilson::shown(undecided, decided),
        judgements.len() - decided
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_compared_counts() {
        let line = |text: &str| judgement(text).unwrap();
        let judged = r#"{"record":{"comparison":{"arms":[{},{"goodput":{"judgement":"worse"}}]}}}"#;
        let failed = r#"{"failed":"no route\nmore"}"#;
        let judgements = [line(judged), line(failed), "no-difference".into()];
        assert_eq!(judgements[1], "no route");
        let text = summary(&judgements);
        assert!(
            text.starts_with("different: 1 of 2 ") && text.ends_with("not compared: 1\n"),
            "{text}"
        );
    }
}
