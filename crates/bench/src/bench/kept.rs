//! The kept results of a bench, one JSON line per run, from which the page can be generated again.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::contest::Contest;
use super::machine::Machine;
use super::measure::{Measure, Values};
use super::place::Place;

/// A line.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// The first line: the machine.
    Machine(Machine),
    /// All other lines.
    Run(RunRecord),
}

/// One run of one entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// From 1.
    pub round: u32,
    /// The contest's id.
    pub contest: String,
    /// The place's id.
    pub place: String,
    /// The entry's name.
    pub entry: String,
    /// CPU time that the hypervisor gave to others during the run, percent of all.
    #[serde(default)]
    pub steal_percent: Option<f64>,
    /// The outcome.
    #[serde(flatten)]
    pub came: RunOutcome,
}

/// The outcome of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunOutcome {
    /// The measured values.
    Values(Values),
    /// No values, for this reason.
    Failed(String),
}

/// All kept results.
pub struct Kept {
    /// The machine.
    pub machine: Machine,
    /// The runs, in the order in which they took place.
    pub runs: Vec<RunRecord>,
}

impl RunRecord {
    /// Its value of `measure`.
    pub fn value(&self, measure: &Measure) -> Option<f64> {
        match &self.came {
            RunOutcome::Values(values) => values.get(measure.id).copied(),
            RunOutcome::Failed(_) => None,
        }
    }
}

impl Kept {
    /// Reads the results that an earlier bench kept in `path`.
    pub fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
        Self::parse(&text).with_context(|| format!("{} is not what a bench keeps", path.display()))
    }

    fn parse(text: &str) -> Result<Self> {
        let mut lines = text.lines().map(serde_json::from_str);
        let Some(Line::Machine(machine)) = lines.next().transpose()? else {
            bail!("the first line does not say what it ran on");
        };
        let run = |line: serde_json::Result<Line>| match line? {
            Line::Run(ran) => Ok(ran),
            Line::Machine(_) => bail!("it holds two benches"),
        };
        Ok(Self { machine, runs: lines.map(run).collect::<Result<_>>()? })
    }

    /// The runs of a contest at a place.
    pub fn of(&self, contest: &Contest, place: Place) -> impl Iterator<Item = &RunRecord> {
        let (contest, place) = (contest.id, place.id());
        self.runs.iter().filter(move |ran| ran.contest == contest && ran.place == place)
    }

    /// How many rounds a contest had at a place.
    pub fn rounds_of(&self, contest: &Contest, place: Place) -> u32 {
        self.of(contest, place).map(|ran| ran.round).max().unwrap_or(0)
    }

    /// The fewest and the most rounds of any contest.
    pub fn rounds(&self) -> (u32, u32) {
        let mut last: BTreeMap<(&str, &str), u32> = BTreeMap::new();
        for ran in &self.runs {
            let rounds = last.entry((&ran.contest, &ran.place)).or_default();
            *rounds = ran.round.max(*rounds);
        }
        let (least, most) = (last.values().min(), last.values().max());
        (least.copied().unwrap_or(0), most.copied().unwrap_or(0))
    }
}

/// Writes lines; each is on disk before the next run begins.
pub struct ResultLog(Option<File>);

impl ResultLog {
    /// A log in this file, or in none.
    pub fn create(path: Option<&Path>) -> Result<Self> {
        let create =
            |path: &Path| File::create(path).with_context(|| format!("create {}", path.display()));
        Ok(Self(path.map(create).transpose()?))
    }

    /// Writes a line.
    pub fn add(&mut self, line: &Line) -> Result<()> {
        let Some(file) = &mut self.0 else { return Ok(()) };
        writeln!(file, "{}", serde_json::to_string(line)?).context("keep what a run gave")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_again() {
        let machine = Line::Machine(Machine::default());
        let ran = |came| RunRecord {
            round: 2,
            contest: "tcp-copy".into(),
            place: "veth".into(),
            entry: "iperf3".into(),
            steal_percent: None,
            came,
        };
        let good = ran(RunOutcome::Values(Values::from([("bits_per_s".into(), 1.5)])));
        let bad = ran(RunOutcome::Failed("why".into()));
        let lines = [machine.clone(), Line::Run(good.clone()), Line::Run(bad.clone())];
        let text: String =
            lines.iter().map(|line| serde_json::to_string(line).unwrap() + "\n").collect();
        let kept = Kept::parse(&text).unwrap();
        assert_eq!(kept.runs, [good, bad]);
        assert_eq!(kept.rounds(), (2, 2));
        assert!(text.contains(r#""values":{"bits_per_s":1.5}"#), "{text}");
    }

    #[test]
    fn other_files_are_refused() {
        let machine = serde_json::to_string(&Line::Machine(Machine::default())).unwrap();
        for text in ["", "{}", "nonsense", &format!("{machine}\n{machine}\n")] {
            assert!(Kept::parse(text).is_err(), "{text}");
        }
    }
}
