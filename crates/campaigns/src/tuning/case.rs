//! Tunes one path, beside the same path with nothing wrong.

use std::fs;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::kept::Identity;
use crate::lab_program::LabProgram;
use crate::ratio::Ratio;
use goodput_model::median;

/// Runs of the healthy path before tuning, and the same number after.
const TWIN_RUNS: usize = 2;

/// Brief runs of the healthy path: against the six runs or more of a comparison, the interval of the ratio is about 2.4 times
/// as wide as the runs' standard deviation.
const BRIEF_TWIN_RUNS: usize = 8;

/// Share of the healthy path's goodput that tuning should reach.
const REACHED_SHARE: f64 = 0.95;

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
    /// Goodput of the healthy path in each run that was as long as the first one of tuning, bits per second.
    pub healthy_bits_per_s: Vec<f64>,
    /// The same in runs as short as those that tuning compares: a bucket that is full at first counts for more.
    pub healthy_briefly_bits_per_s: Vec<f64>,
    /// Goodput before any change.
    pub start_bits_per_s: Option<f64>,
    /// The rules of the findings before any change, the most important first; none in files of earlier campaigns.
    #[serde(default)]
    pub found: Vec<String>,
    /// Goodput of each run with all proven changes, in the last comparison; none if nothing was proven.
    pub tuned_bits_per_s: Vec<f64>,
    /// The proven changes, `SETTING=VALUE`.
    pub proven: Vec<String>,
    /// Whether the last comparison found the proven changes better.
    pub supported: bool,
    /// How long tuning took, seconds.
    pub took_s: f64,
    /// Why tuning stopped, or what failed.
    pub ended: String,
    /// The scenario that was tuned.
    pub scenario: String,
    /// Every change that was tried, with its comparison, as in the record.
    pub steps: Value,
}

impl TunedPath {
    /// Which case it is.
    pub fn identity(&self) -> Identity<'_> {
        Identity { name: &self.name, drawn: &self.tuned }
    }

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
        let brief = goodputs(program, &brief, BRIEF_TWIN_RUNS)?;
        Ok(self.read(&line, [[before, after].concat(), brief], took_s))
    }

    /// `long` and `brief` are the goodputs of the healthy path in runs as long as those of `goodput test`, and as those of
    /// the last comparison.
    fn read(&self, line: &Value, [long, brief]: [Vec<f64>; 2], took_s: f64) -> Tuned {
        let (record, tuning) = (&line["record"], &line["record"]["tuning"]);
        let arm = &record["comparison"]["arms"][1];
        let proven: Vec<String> =
            tuning["proven"].as_array().into_iter().flatten().map(spelled).collect();
        let with_proven = match proven.is_empty() {
            true => Vec::new(),
            false => runs_with_changes(&record["comparison"]["trials"]),
        };
        let ended = tuning["stopped"].as_str().or(line["failed"].as_str()).unwrap_or("no record");
        Tuned {
            name: self.name.clone(),
            kind: self.kind,
            started: record["started"].as_str().map(Into::into),
            healthy_bits_per_s: long,
            healthy_briefly_bits_per_s: brief,
            start_bits_per_s: record["result"]["goodput_bits_per_s"].as_f64(),
            found: named(&record["findings"]),
            tuned_bits_per_s: with_proven,
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
    /// Which case it was.
    pub fn identity(&self) -> Identity<'_> {
        Identity { name: &self.name, drawn: &self.scenario }
    }

    /// Share of the healthy path's goodput that the fault cost; `None` without both figures.
    pub fn cost(&self) -> Option<f64> {
        Some(1.0 - self.start_bits_per_s? / median(self.healthy_bits_per_s.clone())?)
    }

    /// Goodput after tuning, as a share of the healthy path's. What was compared is set beside runs as brief.
    pub fn after(&self) -> Option<Ratio> {
        if self.proven.is_empty() {
            return Ratio::of(self.start_bits_per_s.as_slice(), &self.healthy_bits_per_s);
        }
        Ratio::of(&self.tuned_bits_per_s, &self.healthy_briefly_bits_per_s)
    }

    /// Whether tuning brought a costly fault to the share of the healthy path's goodput that it should reach; `None` if
    /// the runs differ so much that they can't tell.
    pub fn reaches(&self) -> Option<bool> {
        if self.proven.is_empty() {
            return Some(false);
        }
        let (low, high) = self.after()?.interval?;
        (low >= REACHED_SHARE || high < REACHED_SHARE).then_some(low >= REACHED_SHARE)
    }
}

/// Goodput of each run of the second arm that counts.
fn runs_with_changes(trials: &Value) -> Vec<f64> {
    let trials = trials.as_array().into_iter().flatten();
    let counts = |trial: &&Value| trial["discarded"].is_null() && trial["arm"] == 1;
    trials.filter(counts).filter_map(|trial| trial["goodput_bits_per_s"].as_f64()).collect()
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

/// The rules of the findings of a record.
fn named(findings: &Value) -> Vec<String> {
    let rule = |finding: &Value| Some(finding["rule"].as_str()?.to_owned());
    findings.as_array().into_iter().flatten().filter_map(rule).collect()
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

    /// What tuning prints, if the goodput was 10 before any change, and `with_changes` with what was proven.
    fn line(proven: &Value, with_changes: &[f64], judgement: &str) -> Value {
        let trial = |goodput| json!({ "arm": 1, "discarded": null, "goodput_bits_per_s": goodput });
        let mut trials: Vec<Value> = with_changes.iter().map(trial).collect();
        trials.push(json!({ "arm": 0, "discarded": null, "goodput_bits_per_s": 10.0 }));
        trials.push(json!({ "arm": 1, "discarded": "steal", "goodput_bits_per_s": 1.0 }));
        json!({ "record": {
            "result": { "goodput_bits_per_s": 10.0 },
            "tuning": { "proven": proven, "stopped": "nothing is left" },
            "comparison": { "arms": [{}, { "goodput": { "judgement": judgement } }], "trials": trials },
        } })
    }

    fn healthy() -> [Vec<f64>; 2] {
        [vec![90.0, 100.0, 110.0], vec![198.0, 199.0, 200.0, 200.0, 201.0, 202.0]]
    }

    fn proven() -> Value {
        let setting = json!({ "end": "far", "name": "mtu", "scope": "eth0" });
        json!([{ "setting": setting, "to": "9000" }])
    }

    #[test]
    fn what_was_proven_is_held_against_brief_runs_of_the_healthy_path() {
        let read = |with_changes: &[f64], judgement| {
            path(Kind::Faulty).read(&line(&proven(), with_changes, judgement), healthy(), 1.0)
        };
        let tuned = read(&[198.0, 199.0, 200.0, 201.0, 202.0, 203.0], "better");
        assert_eq!((tuned.reaches(), tuned.supported), (Some(true), true));
        assert!((tuned.after().unwrap().estimate - 1.0).abs() < 0.01);
        assert_eq!(
            (tuned.proven, tuned.ended.as_str()),
            (vec!["far:mtu@eth0=9000".into()], "nothing is left")
        );
        let short = read(&[178.0, 179.0, 180.0, 181.0, 182.0, 183.0], "inconclusive");
        assert_eq!((short.reaches(), short.supported), (Some(false), false));
        assert_eq!(read(&[150.0, 170.0, 190.0, 210.0, 230.0, 250.0], "better").reaches(), None);
        assert_eq!(read(&[200.0, 200.0], "better").reaches(), None, "too few");
    }

    #[test]
    fn without_a_proven_change_a_path_is_as_it_was() {
        let tuned = path(Kind::Faulty).read(&line(&json!([]), &[], "worse"), healthy(), 1.0);
        assert_eq!((tuned.cost(), tuned.supported), (Some(0.9), true));
        assert_eq!((tuned.after().unwrap().estimate, tuned.reaches()), (0.1, Some(false)));
    }

    #[test]
    fn findings_are_kept_by_their_rules() {
        let findings = json!([{"rule": "offload-off", "end": "far"}, {"rule": "sender-cpu"}]);
        assert_eq!(named(&findings), ["offload-off", "sender-cpu"]);
        assert!(named(&Value::Null).is_empty());
    }

    #[test]
    fn a_failure_is_what_ended_it() {
        let tuned =
            path(Kind::Faulty).read(&json!({ "failed": "no route\nmore" }), [vec![], vec![]], 1.0);
        assert_eq!((tuned.ended.as_str(), tuned.after()), ("no route", None));
    }
}
