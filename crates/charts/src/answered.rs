//! What a command with several runs found, before what one of its runs was.

use goodput_model::answer::arm_name;
use goodput_model::{
    ArmResult, Change, Comparison, Kind, Permanent, Record, Response, Tuning, TuningStep, answer,
    counted,
};

use crate::figure::Table;

/// An answer, with what a reader needs to trust it and to act on it.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered<'a> {
    /// The answer itself.
    pub lead: String,
    /// How it was found, a sentence each.
    pub lines: Vec<String>,
    /// What was tried, if several things were.
    pub tried: Option<Table>,
    /// Commands that keep what is proven better.
    pub commands: &'a [String],
    /// Files that keep it over a reboot.
    pub permanent: Vec<&'a Permanent>,
}

/// The answer of a record; `None` if its one run is the answer.
pub fn answered(record: &Record) -> Option<Answered<'_>> {
    let lead = lead(record)?;
    let nothing =
        Answered { lead, lines: Vec::new(), tried: None, commands: &[], permanent: Vec::new() };
    match (record.kind, &record.comparison, &record.tuning) {
        (Kind::Compare, Some(comparison), _) => Some(compared(nothing, comparison)),
        (Kind::Tune, comparison, Some(tuning)) => Some(tuned(nothing, tuning, comparison.as_ref())),
        // What a shaper is found to do stands with its reasons elsewhere.
        (Kind::Shaping, ..) => None,
        _ => Some(nothing),
    }
}

/// The answer in one line; of a comparison of two arms, with what is compared.
pub fn lead(record: &Record) -> Option<String> {
    let answer = answer(record)?;
    let comparison = record.comparison.as_ref().filter(|_| record.kind == Kind::Compare);
    match comparison.map(|comparison| (comparison, &comparison.arms[..])) {
        Some((comparison, [base, only])) => {
            let [name, base] = [arm_name(comparison, only), base.values.join(" ")];
            Some(format!("{name} against {base}: {answer}"))
        }
        _ => Some(answer),
    }
}

fn compared<'a>(answered: Answered<'a>, comparison: &'a Comparison) -> Answered<'a> {
    let base = comparison.arms.first();
    let base = base.map(|base| arm_name(comparison, base));
    let against = base.map(|base| format!("The baseline is {base}."));
    let stopped = format!("{}; {}.", counted(comparison.trials.len(), "run"), comparison.stopped);
    let permanent = comparison.arms.iter().flat_map(|arm| &arm.permanent).collect();
    let lines = against.into_iter().chain([stopped]).collect();
    Answered { lines, tried: Some(arms(comparison)), permanent, ..answered }
}

/// Each arm with its difference from the baseline.
fn arms(comparison: &Comparison) -> Table {
    let mut table = Table::new(["arm", "runs", "goodput", "against the baseline"]);
    for (number, arm) in comparison.arms.iter().enumerate() {
        let goodput = arm.goodput_bits_per_s.value();
        let against = match number {
            0 => "the baseline".into(),
            _ => goodput_model::answer::of_arm(comparison, arm)
                .unwrap_or_else(|| comparison.why_unjudged(number).into()),
        };
        table.row([
            arm_name(comparison, arm),
            arm.n.to_string(),
            goodput.map_or("unknown".into(), ToString::to_string),
            against,
        ]);
    }
    table
}

fn tuned<'a>(
    answered: Answered<'a>,
    tuning: &'a Tuning,
    comparison: Option<&'a Comparison>,
) -> Answered<'a> {
    let mut lines = Vec::new();
    let arms = comparison.map_or(&[][..], |comparison| &comparison.arms);
    if let [start, changed, ..] = arms {
        lines.extend(tuning.purpose.responses().iter().filter_map(|response| {
            let median = |arm: &ArmResult| Some(response.written(*arm.median(*response).value()?));
            let (from, to) = (median(start)?, median(changed)?);
            Some(match response {
                Response::Throughput => {
                    format!("From {from} at the start to {to} with all that was kept.")
                }
                _ => format!(
                    "The {} was {from} at the start, and is {to} with all that was kept.",
                    response.title()
                ),
            })
        }));
    }
    if !tuning.kept_in.is_empty() {
        lines.push(format!(
            "Kept now; after a reboot, these files keep it: {}.",
            tuning.kept_in.join(", ")
        ));
    }
    lines.push(format!("Tuning stopped: {}.", tuning.stopped));
    let tried = (!tuning.steps.is_empty()).then(|| tried(&tuning.steps));
    Answered { lines, tried, commands: &tuning.to_keep, ..answered }
}

/// Each change, who proposed it, and what it gained.
fn tried(steps: &[TuningStep]) -> Table {
    let mut table = Table::new(["change", "from", "proposed by", "gained", "outcome"]);
    for step in steps {
        let Change { setting, from, to, .. } = &step.change;
        let gained = step.gained().zip(step.effect());
        let gained =
            gained.map(|(gained, effect)| format!("{gained}, n = {}", counted(effect.n, "pair")));
        let why = step.comparison.get().err().map(|why| format!(": {why}")).unwrap_or_default();
        table.row([
            format!("{setting}={to}"),
            from.clone().unwrap_or("the default".into()),
            step.rule.clone(),
            gained.unwrap_or("–".into()),
            format!("{}{why}", step.outcome),
        ]);
    }
    table
}
