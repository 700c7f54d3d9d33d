//! The report of tuning: what was tried, what it gained, and what is proven.

use std::fmt::Write;

use goodput_model::{
    ArmResult, Change, Comparison, Effect, EndName, Judgement, Known, Purpose, Record, SettingRef,
    Tuning, TuningOutcome, TuningStep, Verdict,
};
use goodput_settings::Setting;

use super::labelled::{line, lines};
use super::table::Table;
use super::{compare, permanent, style};
use crate::shell;

/// The whole report.
pub fn text(record: &Record) -> String {
    let Some(tuning) = &record.tuning else { return String::new() };
    let mut out = String::from("\n");
    out += &tried(tuning);
    lines(&mut out, "not tried", tuning.steps.iter().filter_map(not_tried));
    let planned = tuning.steps.iter().filter(|step| step.outcome == TuningOutcome::Planned);
    lines(&mut out, "undo", planned.filter_map(|step| undo(&step.change)));
    let rate = &record.result.goodput_bits_per_s;
    line(&mut out, "start", &format!("{rate}{}", limited(&record.verdict)));
    if let Some(comparison) = &record.comparison {
        line(&mut out, "all kept", &whole(tuning, comparison));
    }
    match &tuning.proven[..] {
        [] => line(&mut out, "proven", &nothing(tuning)),
        proven => keep(&mut out, proven, &tuning.kept_in),
    }
    line(&mut out, "stopped", &tuning.stopped);
    out + &compare::notes(record)
}

fn limited(verdict: &Verdict) -> String {
    match verdict.limit.as_str() {
        Verdict::NO_LIMIT => format!(", {}", verdict.summary),
        _ => format!(", limited by {}", verdict.summary),
    }
}

/// A row for each change.
fn tried(tuning: &Tuning) -> String {
    if tuning.steps.is_empty() {
        return String::new();
    }
    let mut table =
        Table::new(&["change", "from", "proposed by", judged(tuning.purpose), "outcome"]);
    for step in &tuning.steps {
        let from = step.change.from.as_deref().unwrap_or("default");
        table.row(&[&assignment(&step.change), from, &step.rule, &effect(step), &outcome(step)]);
    }
    table.text()
}

/// What the first response of the comparisons is.
fn judged(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Throughput | Purpose::Balanced => "goodput",
        Purpose::Latency => "round trip under load",
        Purpose::Cpu => "CPU time per byte",
    }
}

/// The arm with the change.
fn changed(step: &TuningStep) -> Option<&ArmResult> {
    step.comparison.value()?.arms.get(1)
}

fn effect(step: &TuningStep) -> String {
    let of = |effect: &Effect| format!("{} ({})", effect.difference(), effect.interval(1));
    changed(step).and_then(ArmResult::primary).map_or_else(|| "–".into(), of)
}

/// What the change makes worse, if its runs have shown that.
fn worse(step: &TuningStep) -> Option<String> {
    changed(step)?.responses.iter().find_map(|result| {
        let effect = result.against.as_ref().filter(|effect| {
            matches!(effect.judgement, Judgement::Worse | Judgement::WorsePerhapsBelowThreshold)
        })?;
        Some(format!("not kept: {} gets worse ({})", result.response, effect.difference()))
    })
}

/// The result of one change, while others are still to be tried.
pub fn ended(step: &TuningStep) -> String {
    let why = not_tried(step);
    why.unwrap_or_else(|| format!("{}: {}", assignment(&step.change), outcome(step)))
}

/// Why a change could not be tried.
fn not_tried(step: &TuningStep) -> Option<String> {
    let Known::Missing(why) = &step.comparison else { return None };
    Some(format!("{}: {why}", assignment(&step.change)))
}

fn assignment(Change { setting, to, .. }: &Change) -> String {
    format!("{setting}={to}")
}

fn outcome(step: &TuningStep) -> String {
    match step.outcome {
        TuningOutcome::Kept => style::good("kept"),
        TuningOutcome::Dropped => "dropped: no longer needed".into(),
        TuningOutcome::Confirmed => "stays".into(),
        TuningOutcome::NotBetter => worse(step).unwrap_or_else(|| "not proven better".into()),
        TuningOutcome::TooFewRuns => "too few runs".into(),
        TuningOutcome::Planned => "not tried yet".into(),
        TuningOutcome::NotPermitted => "not permitted".into(),
        TuningOutcome::Failed => "not possible".into(),
    }
}

/// `943 Mbit/s, better: +812 % (95.0 % interval …) than the start`.
fn whole(tuning: &Tuning, comparison: &Comparison) -> String {
    let Some(arm) = comparison.arms.get(1) else { return "not compared".into() };
    let mut text = match &arm.goodput_bits_per_s {
        Known::Value(rate) => style::strong(rate),
        Known::Missing(why) => format!("unknown ({why})"),
    };
    match arm.primary() {
        Some(effect) => {
            let judged = compare::judged(effect, tuning.purpose == Purpose::Cpu);
            let _ = write!(text, ", {judged}");
        }
        None => text += ", too few runs to compare it with the start",
    }
    text
}

fn nothing(tuning: &Tuning) -> String {
    let any = |outcome| tuning.steps.iter().any(|step| step.outcome == outcome);
    if tuning.steps.is_empty() {
        return "nothing: no finding proposes a change".into();
    }
    match (any(TuningOutcome::Kept), any(TuningOutcome::NotBetter)) {
        (true, _) => "nothing: what helped alone is not proven against the start".into(),
        (_, true) => "nothing: leave the settings as they are".into(),
        (false, false) if any(TuningOutcome::TooFewRuns) => {
            "nothing: too few runs to prove a change".into()
        }
        (false, false) if any(TuningOutcome::Planned) => "nothing: no change was tried".into(),
        (false, false) => "nothing: no change could be tried".into(),
    }
}

/// The proven changes, and how to save those that aren't saved yet.
fn keep(out: &mut String, proven: &[Change], kept_in: &[String]) {
    lines(out, "proven", proven.iter().map(assignment));
    // Either all are saved or none: only the combination is proven.
    let open: Vec<&Change> = proven.iter().filter(|_| kept_in.is_empty()).collect();
    if !kept_in.is_empty() {
        let files = kept_in.join(", ");
        line(out, "kept", &format!("now, and after a reboot by {files}"));
        let by_ssh = kept_in.iter().any(|file| file.starts_with("ssh://"));
        let on = if by_ssh { ", with `--on ssh://…` at another host," } else { "" };
        line(out, "", &format!("`goodput settings undo --saved`{on} removes it from there"));
        // The present values; a host reached by SSH has its own command, with `--on`.
        lines(out, "undo", proven.iter().filter(|_| !by_ssh).filter_map(undo));
    }
    lines(out, "to keep", open.iter().map(|change| command(change)));
    let forms = open.iter().map(|change| (&change.setting, change.to.as_str()));
    // The permanent form of a setting that only the far end knows is unknown.
    let form = |setting: &SettingRef, value: &str| {
        goodput_settings::permanent(setting, value).unwrap_or_default()
    };
    lines(out, "for good", permanent::lines(&goodput_settings::at_both_ends(forms, form)));
}

fn is_plan(setting: &SettingRef) -> bool {
    goodput_settings::find_for(setting).is_ok_and(Setting::is_plan)
}

/// The command that makes a change until the next boot.
fn command(Change { setting, to, .. }: &Change) -> String {
    command_for(setting, to)
}

/// The command that restores a setting's old value; `None` if the change lasts only for the measurement.
fn undo(Change { setting, from, .. }: &Change) -> Option<String> {
    let from = from.as_deref().unwrap_or("default");
    (!is_plan(setting)).then(|| command_for(setting, from))
}

fn command_for(setting: &SettingRef, to: &str) -> String {
    let own = SettingRef { end: EndName::Near, ..setting.clone() };
    let command = format!("goodput settings set {}", shell::word(&format!("{own}={to}")));
    match setting.end {
        _ if is_plan(setting) => format!("in the application: {setting}={to}"),
        EndName::Near => style::strong(command),
        EndName::Far => format!("at the far end: {}", style::strong(command)),
    }
}
