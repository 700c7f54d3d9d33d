//! Tunes one path, beside the same path with nothing wrong.

use std::fs;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::lab_program::LabProgram;
use goodput_model::median;

/// Runs of the healthy path before tuning, and the same number after.
const TWIN_RUNS: usize = 2;

/// Whether something is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A fault that a setting removes.
    Faulty,
    /// Nothing.
    Healthy,
}

/// A path to tune.
pub struct TunedPath {
    /// Its name.
    pub name: String,
    /// Whether something is wrong with it.
    pub kind: Kind,
    /// The scenario that is tuned.
    pub tuned: String,
    /// The scenario with nothing wrong.
    pub healthy: String,
    /// Whether it keeps the CPUs so idle that others may be tuned beside it.
    pub light: bool,
}

/// The result of tuning a path.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Tuned {
    /// Its name.
    pub name: String,
    /// Whether something was wrong.
    pub kind: Kind,
    /// When tuning began, RFC 3339, UTC; `None` if it failed.
    pub started: Option<String>,
    /// Median goodput of the healthy path in runs as long as the first one of tuning, bits per second; `None` if it
    /// could not be measured.
    pub healthy_bits_per_s: Option<f64>,
    /// The same in runs as short as those that tuning compares: a bucket that is full at first counts for more.
    pub healthy_briefly_bits_per_s: Option<f64>,
    /// Largest difference between the healthy path's long runs, and between its short ones, as shares of their medians.
    #[serde(default)]
    pub healthy_spreads: [Option<f64>; 2],
    /// Goodput before any change.
    pub start_bits_per_s: Option<f64>,
    /// Goodput with all proven changes; the starting goodput if none was proven.
    pub tuned_bits_per_s: Option<f64>,
    /// The proven changes, `SETTING=VALUE`.
    pub proven: Vec<String>,
    /// Whether the last comparison found the proven changes better.
    pub supported: bool,
    /// How long tuning took, seconds.
    pub took_s: f64,
    /// Why tuning stopped, or what failed.
    pub ended: String,
    /// The scenario that was tuned; empty in older files.
    #[serde(default)]
    pub scenario: String,
    /// Every change that was tried, with its comparison, as in the record; null in older files.
    #[serde(default)]
    pub steps: Value,
}

impl TunedPath {
    /// Measures the healthy path, tunes, and measures the healthy path again.
    pub fn tune(&self, program: &LabProgram, folder: &Path) -> Result<Tuned> {
        let tuned = write(folder, &self.name, &self.tuned)?;
        let long = write(folder, &format!("{}-twin", self.name), &lasting(&self.healthy, None)?)?;
        let before = goodputs(program, &long, TWIN_RUNS)?;
        let began = Instant::now();
        let line: Value =
            serde_json::from_str(&program.tune(&tuned)?).context("tuning printed no JSON")?;
        let took_s = began.elapsed().as_secs_f64();
        let after = goodputs(program, &long, TWIN_RUNS)?;
        // As long as the runs of the last comparison, whose goodput is held against it.
        let run_s = line["record"]["tuning"]["run_length"]["seconds"].as_f64();
        let brief = lasting(&self.healthy, run_s)?;
        let brief = write(folder, &format!("{}-brief-twin", self.name), &brief)?;
        let brief = goodputs(program, &brief, 2 * TWIN_RUNS)?;
        Ok(self.read(&line, [[before, after].concat(), brief], took_s))
    }

    /// `healthy` is the goodput of the healthy path in runs as long as those of `goodput test`, and as those of the last
    /// comparison.
    fn read(&self, line: &Value, healthy: [Vec<f64>; 2], took_s: f64) -> Tuned {
        let healthy_spreads = [spread(&healthy[0]), spread(&healthy[1])];
        let healthy = healthy.map(median);
        let (record, tuning) = (&line["record"], &line["record"]["tuning"]);
        let arm = &record["comparison"]["arms"][1];
        let start = record["result"]["goodput_bits_per_s"].as_f64();
        let proven: Vec<String> =
            tuning["proven"].as_array().into_iter().flatten().map(spelled).collect();
        let with_proven = arm["goodput_bits_per_s"].as_f64().filter(|_| !proven.is_empty());
        let ended = tuning["stopped"].as_str().or(line["failed"].as_str()).unwrap_or("no record");
        Tuned {
            name: self.name.clone(),
            kind: self.kind,
            started: record["started"].as_str().map(Into::into),
            healthy_bits_per_s: healthy[0],
            healthy_briefly_bits_per_s: healthy[1],
            healthy_spreads,
            start_bits_per_s: start,
            tuned_bits_per_s: with_proven.or(start),
            supported: proven.is_empty() || arm["goodput"]["judgement"] == "better",
            proven,
            took_s,
            ended: ended.lines().next().unwrap_or_default().into(),
            scenario: self.tuned.clone(),
            steps: tuning["steps"].clone(),
        }
    }
}

impl Tuned {
    /// Share of the healthy path's goodput that the fault cost; `None` without both figures.
    pub fn cost(&self) -> Option<f64> {
        Some(1.0 - self.start_bits_per_s? / self.healthy_bits_per_s?)
    }

    /// Goodput after tuning, as a share of the healthy path's.
    pub fn reached(&self) -> Option<f64> {
        let healthy = match self.is_held_against_brief_runs() {
            false => self.healthy_bits_per_s,
            true => self.healthy_briefly_bits_per_s,
        };
        Some(self.tuned_bits_per_s? / healthy?)
    }

    /// How far the runs of the healthy path are apart that this share is of; `None` if that was not kept.
    pub fn healthy_spread(&self) -> Option<f64> {
        self.healthy_spreads[usize::from(self.is_held_against_brief_runs())]
    }

    /// What was compared ran as briefly as the comparison's runs.
    fn is_held_against_brief_runs(&self) -> bool {
        !self.proven.is_empty()
    }
}

fn write(folder: &Path, name: &str, toml: &str) -> Result<String> {
    let path = folder.join(format!("{}.toml", name.replace('/', "-")));
    fs::write(&path, toml).with_context(|| format!("write {}", path.display()))?;
    Ok(path.display().to_string())
}

/// The scenario with runs that last `seconds`; as long as goodput chooses if `None`.
fn lasting(scenario: &str, seconds: Option<f64>) -> Result<String> {
    let mut table: toml::Table = scenario.parse().context("a scenario is not TOML")?;
    let run = table.entry("run").or_insert_with(|| toml::Table::new().into());
    let run = run.as_table_mut().context("run is no table")?;
    run.remove("seconds");
    run.extend(seconds.map(|seconds| ("seconds".into(), seconds.into())));
    Ok(table.to_string())
}

fn goodputs(program: &LabProgram, case: &str, runs: usize) -> Result<Vec<f64>> {
    let mut goodputs = Vec::new();
    for _ in 0..runs {
        let line: Value =
            serde_json::from_str(&program.run(case)?).context("a run printed no JSON")?;
        goodputs.extend(line["record"]["result"]["goodput_bits_per_s"].as_f64());
    }
    Ok(goodputs)
}

/// Largest difference between values, as a share of their median.
fn spread(values: &[f64]) -> Option<f64> {
    let most = values.iter().copied().reduce(f64::max)?;
    let least = values.iter().copied().reduce(f64::min)?;
    Some((most - least) / median(values.to_vec())?)
}

/// `[far:]NAME[@SCOPE]=VALUE`.
fn spelled(change: &Value) -> String {
    let setting = &change["setting"];
    let name = match setting.as_str() {
        Some(name) => name.to_owned(),
        None => {
            let far = if setting["end"] == "far" { "far:" } else { "" };
            let scope = setting["scope"].as_str().map(|scope| format!("@{scope}"));
            let name = setting["name"].as_str().unwrap_or("?");
            format!("{far}{name}{}", scope.unwrap_or_default())
        }
    };
    format!("{name}={}", change["to"].as_str().unwrap_or("?"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn path(kind: Kind) -> TunedPath {
        TunedPath {
            name: "x".into(),
            kind,
            tuned: String::new(),
            healthy: String::new(),
            light: false,
        }
    }

    #[test]
    fn what_was_proven_counts_and_else_the_start() {
        let proven =
            json!([{ "setting": { "end": "far", "name": "mtu", "scope": "eth0" }, "to": "9000" }]);
        let line = |proven: Value, judgement: &str| {
            json!({ "record": {
                "result": { "goodput_bits_per_s": 10.0 },
                "tuning": { "proven": proven, "stopped": "nothing is left" },
                "comparison": { "arms": [{}, { "goodput_bits_per_s": 95.0, "goodput": { "judgement": judgement } }] },
            } })
        };
        let tuned = path(Kind::Faulty).read(
            &line(proven.clone(), "better"),
            [vec![90.0, 100.0, 110.0], vec![100.0]],
            1.0,
        );
        assert_eq!((tuned.reached(), tuned.supported), (Some(0.95), true));
        assert_eq!(tuned.healthy_spreads, [Some(0.2), Some(0.0)]);
        assert_eq!(tuned.healthy_spread(), Some(0.0), "of the runs that are as brief");
        assert_eq!(
            (tuned.proven, tuned.ended.as_str()),
            (vec!["far:mtu@eth0=9000".into()], "nothing is left")
        );
        let tuned = path(Kind::Faulty).read(
            &line(json!([]), "worse"),
            [vec![90.0, 100.0, 110.0], vec![100.0]],
            1.0,
        );
        assert_eq!((tuned.reached(), tuned.cost(), tuned.supported), (Some(0.1), Some(0.9), true));
        assert!(
            !path(Kind::Faulty)
                .read(&line(proven, "inconclusive"), [vec![90.0, 100.0, 110.0], vec![100.0]], 1.0)
                .supported
        );
    }

    #[test]
    fn what_was_compared_is_held_against_runs_of_its_length() {
        let proven = json!([{ "setting": "far:link.mtu@e", "to": "9000" }]);
        let line = |proven: Value| {
            json!({ "record": {
                "result": { "goodput_bits_per_s": 50.0 },
                "tuning": { "proven": proven, "stopped": "done" },
                "comparison": { "arms": [{}, { "goodput_bits_per_s": 110.0 }] },
            } })
        };
        let reached =
            |line| path(Kind::Faulty).read(&line, [vec![100.0], vec![110.0]], 1.0).reached();
        assert_eq!((reached(line(proven)), reached(line(json!([])))), (Some(1.0), Some(0.5)));
    }

    #[test]
    fn a_failure_is_what_ended_it() {
        let tuned =
            path(Kind::Faulty).read(&json!({ "failed": "no route\nmore" }), [vec![], vec![]], 1.0);
        assert_eq!((tuned.ended.as_str(), tuned.reached()), ("no route", None));
    }
}
