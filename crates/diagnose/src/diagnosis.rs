//! Asks every rule and turns the answers into a verdict.

use std::collections::BTreeMap;

use goodput_model::{BitRate, Evidence, Finding, Known, Missing, Place, Split, Undecided, Verdict};

use crate::ceiling::ceiling;
use crate::rank::rank;
use crate::rules;
use crate::split::split;
use crate::view::View;

/// What the rules say of one direction of one measurement.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnosis {
    /// What limits.
    pub verdict: Verdict,
    /// Every cause found, the most limiting first; what follows the first contributes.
    pub findings: Vec<Finding>,
    /// Rules that could not decide, with what they lacked.
    pub undecided: Vec<Undecided>,
    /// What each rule's witness read, by rule id, where it could be read. Each falls when its cause
    /// is removed.
    pub witnesses: BTreeMap<String, f64>,
    /// Goodput that the path could carry at best.
    pub ceiling: Known<BitRate>,
}

/// Asks every rule. Never fails: what can't be told is among `undecided`.
pub fn diagnose(evidence: &Evidence) -> Diagnosis {
    let view = View::new(evidence);
    let (mut findings, mut undecided) = (Vec::new(), Vec::new());
    for rule in rules::ALL {
        match (rule.check)(&view) {
            Ok(found) => findings.extend(found),
            Err(why) => {
                undecided.push(Undecided { rule: rule.id.into(), because: why.to_string() });
            }
        }
    }
    rank(&mut findings, evidence.measured.goodput.0);
    Diagnosis {
        verdict: verdict(&view, &findings, &undecided),
        witnesses: witnesses(&view),
        ceiling: ceiling(&view),
        findings,
        undecided,
    }
}

fn witnesses(view: &View) -> BTreeMap<String, f64> {
    let read = rules::ALL.iter().filter_map(|rule| Some((rule.id, (rule.witness)(view).ok()?)));
    read.filter(|(_, value)| value.is_finite()).map(|(id, value)| (id.into(), value)).collect()
}

fn verdict(view: &View, findings: &[Finding], undecided: &[Undecided]) -> Verdict {
    let split = split(view);
    let sender = view.sender.name;
    match findings.first() {
        Some(first) => Verdict {
            limit: first.rule.clone(),
            end: first.end,
            share_percent: first.share_percent.clone(),
            summary: first.summary.clone(),
            split: split.into(),
            sender,
        },
        None => Verdict {
            limit: "none".into(),
            end: Place::Path,
            share_percent: Known::missing("no rule found a limit"),
            summary: nothing_found(&split, undecided.len()),
            split: split.into(),
            sender,
        },
    }
}

/// What can be said where no rule fired: where the time went, and how many rules could not tell.
fn nothing_found(split: &Result<Split, Missing>, undecided: usize) -> String {
    let time = match split {
        Ok(split) => format!("nothing found; {}", largest_part(split)),
        Err(_) => "nothing found".into(),
    };
    match undecided {
        0 => time,
        1 => format!("{time}; 1 rule could not tell"),
        n => format!("{time}; {n} rules could not tell"),
    }
}

fn largest_part(split: &Split) -> String {
    let parts = [
        (split.path_percent, "on the path"),
        (split.application_percent, "in the sending application"),
        (split.send_buffer_percent, "in the send buffer"),
        (split.receive_window_percent, "in the receive window"),
    ];
    let (share, place) = parts.into_iter().fold(parts[0], |a, b| if b.0 > a.0 { b } else { a });
    format!("the sender spent {share:.0} % of its time {place}")
}
