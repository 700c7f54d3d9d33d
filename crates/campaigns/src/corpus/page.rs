//! docs/corpus.md: how often the diagnosis is right on faults that nobody chose.

use std::collections::BTreeSet;
use std::fmt::Write;

use anyhow::{Context, Result};

use super::Case;
use super::store::Part;
use crate::truth::{Came, Planted, Ran, report, score};

/// The runs of kept lines.
///
/// # Errors
/// When a line is no run of a random fault.
pub fn cases(lines: &str) -> Result<Vec<Case>> {
    let case = |line| {
        let ran = Ran::parse(line)?;
        let drawn = ran.drawn.as_deref().and_then(Part::of);
        let part = drawn.with_context(|| format!("{} was not drawn at random", ran.case))?;
        Ok((part, ran))
    };
    lines.lines().map(case).collect()
}

/// Whether a run can be judged: it has a verdict, and if a fault was planted, it is known to have cost enough.
fn counts(ran: &Ran) -> bool {
    let has_cost = matches!(ran.planted, Planted::Nothing(_)) || ran.cost.is_some();
    matches!(ran.came, Came::Verdict(_)) && has_cost && score(ran).is_some()
}

/// The whole page.
pub fn page(cases: &[Case]) -> Result<String> {
    let part = |wanted| -> Vec<Ran> {
        let judged = cases.iter().filter(|(part, ran)| *part == wanted && counts(ran));
        judged.map(|(_, ran)| ran.clone()).collect()
    };
    let (held_out, fit) = (part(Part::HeldOut), part(Part::Fit));
    let mut page = head(cases);
    for (title, runs) in [("Held out", &held_out), ("Fitted to", &fit)] {
        writeln!(page, "\n## {title}\n\n| | share (95 % interval, Wilson) |\n|---|---|")?;
        page.push_str(&report::summary(runs));
        page.push_str("\nHow often a verdict of each confidence was right:\n\n");
        report::by_confidence(&mut page, runs)?;
        page.push('\n');
        report::by_cause(&mut page, runs)?;
    }
    page.push_str("\n## What was not right\n\nOf the part that rules may be fitted to.\n\n");
    report::faults(&mut page, &fit)?;
    Ok(page)
}

fn head(cases: &[Case]) -> String {
    let came = cases.iter().filter_map(|(_, ran)| match &ran.came {
        Came::Verdict(verdict) => Some(&verdict.started),
        Came::Skipped(_) | Came::Failed(_) => None,
    });
    let days: BTreeSet<&str> = came.filter_map(|started| started.get(..10)).collect();
    let days: Vec<&str> = days.into_iter().collect();
    format!(
        "# How often the diagnosis is right on faults that nobody chose\n\n\
         Written by `cargo xtask corpus`: today's rules judge runs that were kept, and nothing is run. Each run is a path \
         drawn at random, with a fault or without (`cargo xtask truth --random`), measured for four seconds. A \
         fault counts if it cost 15 % or more of its healthy twin's goodput. A quarter of the faults is held out, by \
         their SHA-256: rules and numbers are never fitted to these.\n\n\
         - {} runs, measured on {}\n\
         - {} of them can't be judged: the run failed, or the fault cost too little or nobody knows how much\n",
        cases.len(),
        days.join(", "),
        cases.iter().filter(|(_, ran)| !counts(ran)).count(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(drawn: &str, planted: &str, found: &str) -> String {
        format!(
            r#"{{"case":"{planted}-1","drawn":"{drawn}","cost":0.5,"expected":{{"limit":["{planted}"]}},"record":{{"started":"2026-01-02T00:00:00Z","verdict":{{"limit":"{found}"}},"findings":[{{"rule":"{found}","confidence":"likely"}}],"result":{{"goodput_bits_per_s":1e6}}}}}}"#
        )
    }

    #[test]
    fn both_parts_are_shown_and_single_cases_of_one() {
        let lines = [line("00", "a", "a"), line("00", "a", "b"), line("ff", "c", "d")].join("\n");
        let page = page(&cases(&lines).unwrap()).unwrap();
        let (held_out, rest) = page.split_once("## Fitted to").unwrap();
        assert!(held_out.contains("3 runs, measured on 2026-01-02"), "{page}");
        assert!(held_out.contains("| right cause first | 1 of 2 "), "{page}");
        let (fit, single) = rest.split_once("## What was not right").unwrap();
        assert!(fit.contains("| right cause first | 0 of 1 "), "{page}");
        assert!(single.contains("`c-1`") && !single.contains("`a-1`"), "{page}");
    }

    #[test]
    fn a_run_that_was_not_drawn_is_refused() {
        let line = r#"{"case":"x","expected":{"limit":["a"]},"skipped":"y"}"#;
        assert!(cases(line).unwrap_err().to_string().contains("x was not drawn"));
    }
}
