//! `goodput lab`: scenarios on virtual hosts.

mod up;

use std::env;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use goodput_lab::{Expectation, Failed, LabError, Observed, Scenario};
use goodput_model::Record;
use goodput_remote::Hosts;
use serde_json::Value;
use tempfile::TempDir;

use super::list;
use crate::args;
use crate::exit::Exit;
use crate::os_error::without_numbers;
use crate::report::{self, style};
use crate::screen;

/// Carries out one of the subcommands.
pub fn run(what: args::Lab) -> Result<Exit> {
    match what {
        args::Lab::List { json: true, .. } => list::cases().map(|()| Exit::Fine),
        args::Lab::List { narrowed, .. } => list::scenarios(&narrowed).map(|()| Exit::Fine),
        args::Lab::Show { scenario } => {
            screen::print(&goodput_lab::scenario_source(&scenario)?)?;
            Ok(Exit::Fine)
        }
        args::Lab::Run { scenarios, full, json } => run_all(&scenarios, full, json),
        args::Lab::Compare { scenario, factor, max_time, json } => {
            compare(&scenario, &factor, max_time, json)
        }
        args::Lab::Tune { scenario, max_time, json } => tune(&scenario, max_time, json),
        args::Lab::Up { scenario, command } => up::run(&scenario, &command),
    }
}

/// The number of cases for each outcome.
#[derive(Default)]
struct Counted {
    passed: u32,
    failed: u32,
    skipped: u32,
    /// How many of the skipped cases need a permission.
    not_permitted: u32,
}

fn run_all(names: &[String], full: bool, json: bool) -> Result<Exit> {
    goodput_lab::privilege::enter()?;
    let all: Vec<String> = goodput_lab::builtin().iter().map(|b| b.name.to_string()).collect();
    let names = if names.is_empty() { &all } else { names };
    let mut scenarios = Vec::new();
    for name in names {
        match full {
            true => scenarios.extend(Scenario::cases(name)?),
            false => scenarios.push(Scenario::load(name)?),
        }
    }
    let exe = env::current_exe().context("can't find the program that runs")?;
    let mut counted = Counted::default();
    for scenario in &scenarios {
        let ran = run_one(scenario, &exe);
        counted.add(&ran);
        if json {
            screen::line(ran.to_json(scenario)?)?;
        } else {
            ran.print(&scenario.case)?;
        }
    }
    if !json {
        let Counted { passed, failed, skipped, .. } = counted;
        screen::line(format_args!(
            "{passed} as expected, {failed} not as expected, {skipped} skipped"
        ))?;
    }
    Ok(counted.exit())
}

/// Compares the change in a fresh lab of the same case; returns the record of `goodput compare`.
fn compare(name: &str, factor: &str, max_time_s: f64, json: bool) -> Result<Exit> {
    // A wrong setting is refused before the hosts are made.
    super::compare::factor(factor, &Hosts::default(), 2)?;
    let stage = ChangeStage::of(name)?;
    let ChangeStage { scenario, exe, folder } = &stage;
    let compared = goodput_lab::compare(scenario, exe, factor, max_time_s, folder.path());
    if json {
        return stage.print_line(serde_json::json!({ "compared": factor }), &compared);
    }
    let record = stage.record("comparison", compared)?;
    screen::print_fitted(&report::compare::text(&record))?;
    Ok(Exit::Fine)
}

/// Tunes in a fresh lab of the case; returns the record of `goodput tune`.
fn tune(name: &str, max_time_s: f64, json: bool) -> Result<Exit> {
    let stage = ChangeStage::of(name)?;
    let tuned = goodput_lab::tune(&stage.scenario, &stage.exe, max_time_s, stage.folder.path());
    if json {
        return stage.print_line(serde_json::json!({}), &tuned);
    }
    let record = stage.record("tuning", tuned)?;
    screen::print_fitted(&report::tune::text_of_lab(&record))?;
    if let Some(why) = &record.incomplete {
        screen::say(format_args!("goodput: {why}"));
    }
    Ok(super::tune::tried(&record))
}

/// The outcome of a record: the lab may be broken, or the client may fail.
type Changed = Result<Result<Record, Failed>, LabError>;

/// A case in which settings are changed, and a directory for the programs' files.
struct ChangeStage {
    scenario: Scenario,
    exe: PathBuf,
    folder: TempDir,
}

impl ChangeStage {
    fn of(name: &str) -> Result<Self> {
        goodput_lab::privilege::enter()?;
        Ok(Self {
            scenario: Scenario::load(name)?,
            exe: env::current_exe().context("can't find the program that runs")?,
            folder: tempfile::tempdir().context("can't make a temporary directory")?,
        })
    }

    /// One line for programs: the case, the rest of `line`, and the record or why there is none.
    fn print_line(&self, mut line: Value, changed: &Changed) -> Result<Exit> {
        let (key, value) = match changed {
            Ok(Ok(record)) => ("record", record.to_json_value()?),
            Ok(Err(failed)) => ("failed", failed.stderr.trim().into()),
            Err(why) => ("failed", why.to_string().into()),
        };
        line["case"] = self.scenario.case.as_str().into();
        line[key] = value;
        screen::line(line)?;
        Ok(Exit::Fine)
    }

    fn record(&self, what: &str, changed: Changed) -> Result<Record> {
        let case = &self.scenario.case;
        changed?.map_err(|failed| {
            // What a second goodput said.
            let why = failed.stderr.trim().trim_start_matches("goodput: ");
            anyhow!("the {what} in {case} failed: {why}")
        })
    }
}

/// The result of one case.
enum CaseResult {
    /// The case ran, but may not have had the expected result.
    Observed(Box<Observed>),
    /// This machine can't run the case.
    Skipped { needs: String, not_permitted: bool },
    /// The lab itself failed; the other cases can still run.
    Broken(String),
}

fn run_one(scenario: &Scenario, exe: &Path) -> CaseResult {
    if let Some(needs) = scenario.obstacle() {
        return CaseResult::Skipped { needs, not_permitted: scenario.lacks_permission() };
    }
    match goodput_lab::run(scenario, exe, &[]) {
        Ok(observed) => CaseResult::Observed(Box::new(observed)),
        Err(why) => CaseResult::Broken(why.to_string()),
    }
}

impl Counted {
    fn add(&mut self, ran: &CaseResult) {
        match ran {
            CaseResult::Observed(observed) if observed.is_as_expected() => self.passed += 1,
            CaseResult::Skipped { not_permitted, .. } => {
                self.skipped += 1;
                self.not_permitted += u32::from(*not_permitted);
            }
            _ => self.failed += 1,
        }
    }

    /// A case in which nothing was observed is not a success.
    fn exit(&self) -> Exit {
        match (self.passed, self.failed, self.skipped) {
            (0, 0, 1..) if self.not_permitted > 0 => Exit::NotPermitted,
            (0, 0, 1..) => Exit::CouldNot,
            (_, 0, _) => Exit::Fine,
            _ => Exit::Problem,
        }
    }
}

impl CaseResult {
    /// One line for programs: the case, the expectation, and the result.
    fn to_json(&self, scenario: &Scenario) -> Result<String> {
        let mut line = serde_json::json!({ "case": scenario.case, "expected": scenario.expect });
        let (key, value) = match self {
            Self::Skipped { needs, .. } => ("skipped", needs.as_str().into()),
            Self::Broken(why) => ("failed", why.as_str().into()),
            Self::Observed(observed) => {
                line["judged"] = serde_json::to_value(&observed.judged)?;
                match &observed.record {
                    Ok(record) => ("record", record.to_json_value()?),
                    Err(failed) => ("failed", failed.stderr.trim().into()),
                }
            }
        };
        line[key] = value;
        Ok(serde_json::to_string(&line)?)
    }

    fn print(&self, case: &str) -> io::Result<()> {
        match self {
            Self::Observed(observed) => print_text(case, observed),
            Self::Skipped { needs, .. } => {
                screen::say(format_args!("SKIPPED {case}: needs {needs}"));
                Ok(())
            }
            Self::Broken(why) => {
                let why = without_numbers(why);
                screen::line(format_args!("{case:32} {:8} {why}", style::bad("failed")))
            }
        }
    }
}

fn print_text(case: &str, observed: &Observed) -> io::Result<()> {
    let ok = if observed.is_as_expected() { style::good("ok") } else { style::bad("not ok") };
    let found = match &observed.record {
        Ok(record) => format!("{}   {}", record.result.goodput_bits_per_s, record.verdict.summary),
        Err(failure) => failure.stderr.trim().into(),
    };
    screen::line(format_args!("{case:32} {ok:8} {found}"))?;
    for Expectation { what, wanted, got, .. } in observed.judged.iter().filter(|e| !e.ok) {
        screen::line(format_args!("{:32}   {what}: wanted {wanted}, got {got}", ""))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_in_which_nothing_could_run_is_no_success() {
        let skipped =
            |not_permitted| CaseResult::Skipped { needs: "a device".into(), not_permitted };
        let exit = |results: &[CaseResult]| {
            let mut counted = Counted::default();
            results.iter().for_each(|result| counted.add(result));
            counted.exit()
        };
        assert_eq!(exit(&[skipped(false), skipped(true)]), Exit::NotPermitted);
        assert_eq!(exit(&[skipped(false)]), Exit::CouldNot);
        assert_eq!(exit(&[skipped(true), CaseResult::Broken("no".into())]), Exit::Problem);
        assert_eq!(exit(&[]), Exit::Fine);
        assert_eq!(Counted { passed: 1, skipped: 1, ..Counted::default() }.exit(), Exit::Fine);
    }
}
