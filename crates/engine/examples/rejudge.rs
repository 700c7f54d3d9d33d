//! Diagnoses again, with today's rules, what `cargo xtask truth --keep FILE` has kept, and prints
//! each verdict beside what was planted: a changed rule is tried on every case within seconds.
//!
//! `cargo run -p goodput-engine --example rejudge -- FILE [CASE-PREFIX]`
//!
//! With `--json` instead of a file it reads the lines from standard input, and prints each with today's verdict and
//! findings instead of those of the day. `features` has what each finding's probability is made from, or null; `measured`
//! has the quantities that thresholds are fitted to.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{BufRead, Write};

use goodput_diagnose::measured;
use goodput_diagnose::probability::{FEATURES, Features, features_of};
use goodput_engine::conclude;
use goodput_engine::measurement::Measurement;
use goodput_model::{Finding, Length, Record, Sample, Verdict};
use serde::Deserialize;

#[derive(Deserialize)]
struct Kept {
    case: String,
    expected: Expected,
    record: Record,
}

#[derive(Deserialize)]
struct Expected {
    limit: Vec<String>,
    both: Vec<String>,
    healthy: bool,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("which file?")?;
    if file == "--json" {
        return every_line_anew();
    }
    let prefix = arguments.next().unwrap_or_default();
    for line in std::io::BufReader::new(std::fs::File::open(file)?).lines() {
        let Ok(kept) = serde_json::from_str::<Kept>(&line?) else { continue };
        if kept.case.starts_with(&prefix) {
            let case = kept.case.clone();
            judge(kept).unwrap_or_else(|why| println!("WRONG {case}: {why}"));
        }
    }
    Ok(())
}

/// Passes lines on with a new verdict and new findings, and without what was said of the old ones. A line without a record
/// stays as it is.
fn every_line_anew() -> Result<(), Box<dyn Error>> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for line in std::io::stdin().lines() {
        let mut line: serde_json::Value = serde_json::from_str(&line?)?;
        if !line["record"].is_null() {
            let record: Record = serde_json::from_value(line["record"].take())
                .map_err(|why| format!("{}: {why}", line["case"]))?;
            let (target, started) = (record.target.clone(), record.started.clone());
            let seen = measurement(record).map_err(|why| format!("{}: {why}", line["case"]))?;
            line["measured"] = quantities(&seen);
            let again = conclude(seen, &target, &started);
            let again = again.map_err(|why| format!("{}: {why}", line["case"]))?;
            line["features"] = features(&again.record);
            line["record"] = again.record.to_json_value()?;
            let line = line.as_object_mut().ok_or("a line is no object")?;
            line.retain(|key, _| !["judged", "fix"].contains(&key.as_str()));
        }
        writeln!(out, "{line}")?;
    }
    Ok(out.flush()?)
}

/// What a run shows of each quantity that a threshold is fitted to, by name. None if both ends sent.
fn quantities(seen: &Measurement) -> serde_json::Value {
    let senders = seen.senders();
    let [sender] = senders[..] else { return serde_json::json!({}) };
    serde_json::json!(seen.evidence(sender).map(|evidence| measured(&evidence)).unwrap_or_default())
}

/// For each finding, what its probability is made from, by name. None if both ends sent.
fn features(record: &Record) -> serde_json::Value {
    let of_one_direction = record.verdict_reverse.is_none();
    let each = of_one_direction.then(|| features_of(&record.findings, &record.verdict));
    let named = |values: Features| FEATURES.into_iter().zip(values).collect::<BTreeMap<_, _>>();
    let each = each.unwrap_or_default().into_iter().map(|values| values.map(named));
    serde_json::json!(each.collect::<Vec<_>>())
}

fn judge(kept: Kept) -> Result<(), Box<dyn Error>> {
    let record = kept.record;
    let before = named(&record.findings);
    let (target, started) = (record.target.clone(), record.started.clone());
    let again = conclude(measurement(record)?, &target, &started)?;
    let now = named(&again.record.findings);
    let wanted = &kept.expected;
    let first = again.record.verdict.limit.as_str();
    let has = |rule: &String| again.record.findings.iter().any(|f| f.rule == *rule);
    let right = match () {
        () if wanted.healthy => {
            again.record.findings.iter().all(|f| wanted.limit.contains(&f.rule))
        }
        () if !wanted.both.is_empty() => wanted.both.iter().all(has),
        () => wanted.limit.iter().any(|limit| limit == first),
    };
    let mark = if right { "right" } else { "WRONG" };
    let changed = if before == now { "" } else { " CHANGED from " };
    let before = if before == now { String::new() } else { before };
    println!("{mark} {}: {now}{changed}{before}", kept.case);
    for verdict in std::iter::once(&again.record.verdict).chain(&again.record.verdict_reverse) {
        println!("    {}", shadow(verdict));
    }
    Ok(())
}

/// What the account, which no verdict reads yet, and the loss model say.
fn shadow(verdict: &Verdict) -> String {
    let account = match verdict.account.get() {
        Ok(account) => account
            .parts
            .iter()
            .map(|part| format!("{} ({}) {}", part.limiter, part.end, account.share_text(part)))
            .collect::<Vec<_>>()
            .join(", "),
        Err(why) => why.to_string(),
    };
    let loss = match verdict.loss.get() {
        Ok(loss) => {
            let fits: Vec<_> = loss
                .candidates
                .iter()
                .map(|fit| format!("{} +{:.0}", fit.model, fit.behind))
                .collect();
            let explained =
                loss.explanation.get().map_or_else(|why| why.to_string(), |m| m.to_string());
            format!(
                "{} of {}: {explained} [{}]",
                loss.lost_segments,
                loss.sent_segments,
                fits.join(", ")
            )
        }
        Err(why) => why.to_string(),
    };
    format!("account: {account}\n    loss: {loss}")
}

fn named(findings: &[Finding]) -> String {
    let each: Vec<_> = findings
        .iter()
        .map(|f| {
            let share = f.share_percent.value().copied().unwrap_or(f64::NAN);
            format!("{} ({:?}, {share:.0} %)", f.rule, f.confidence)
        })
        .collect();
    each.join(", ")
}

/// As it was before the record was made of it, but for the samples after the senders' end, which a
/// record does not mark: those later than the plan's length are taken for them.
fn measurement(record: Record) -> Result<Measurement, Box<dyn Error>> {
    let near = record.ends.near.get().cloned().map_err(|why| why.to_string())?;
    let within = |samples: &[Sample]| match record.plan.length {
        Length::Seconds(seconds) => samples.iter().filter(|s| s.at_s <= seconds + 0.01).count(),
        _ => samples.len(),
    };
    let far = record.ends.far.value().map_or(0, |end| within(&end.samples));
    let steady_samples = match record.plan.length {
        Length::Seconds(_) => Some((within(&near.samples), far)),
        _ => None,
    };
    Ok(Measurement {
        plan: record.plan,
        near: near.into(),
        far: record.ends.far.map(Into::into),
        far_settings: None,
        connections: record.connections.clone(),
        far_totals: record.far_totals,
        intervals: record.intervals,
        thinned: record.thinned,
        steady_samples,
        latency: None,
        far_capture: None,
        fetches: record.fetches,
        clocks: record.clocks,
        incomplete: None,
        doubts: Vec::new(),
    })
}
