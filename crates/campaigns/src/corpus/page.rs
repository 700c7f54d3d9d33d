//! docs/corpus.md: how often the diagnosis is right on faults that nobody chose.

use std::collections::BTreeSet;
use std::fmt::Write;

use anyhow::{Context, Result};

use super::fit::Fit;
use super::said::{Said, measured, said};
use super::{Case, reliability};
use crate::part::Part;
use crate::truth::{Came, Ran, report, score};

/// The runs of kept lines.
///
/// # Errors
/// When a line is no run of a random fault.
pub fn cases(lines: &str) -> Result<Vec<Case>> {
    let case = |line: &str| {
        let ran = Ran::parse(line)?;
        let drawn = ran.drawn.as_deref().and_then(Part::of);
        let part = drawn.with_context(|| format!("{} was not drawn at random", ran.case))?;
        Ok(Case { part, said: said(line, &ran)?, measured: measured(line)?, ran })
    };
    lines.lines().map(case).collect()
}

/// The runs of a part that can be judged.
pub fn judged(cases: &[Case], part: Part) -> Vec<&Case> {
    cases.iter().filter(|case| case.part == part && score(&case.ran).is_some()).collect()
}

/// The whole page.
pub fn page(cases: &[Case], weights: &Fit) -> Result<String> {
    let mut page = head(cases);
    for (title, part) in Part::ALL {
        let judged = judged(cases, part);
        let runs: Vec<Ran> = judged.iter().map(|case| case.ran.clone()).collect();
        writeln!(page, "\n## {title}\n\n| | share (95 % interval, Wilson) |\n|---|---|")?;
        page.push_str(&report::summary(&runs));
        page.push_str("\nHow often findings were right that were said with a probability:\n\n");
        let said: Vec<&Said> = judged.iter().flat_map(|case| &case.said).collect();
        page.push_str(&reliability::table(&said));
        page.push('\n');
        report::by_cause(&mut page, &runs)?;
    }
    page.push_str(&reliability::weights(weights));
    page.push_str(&reliability::thresholds(weights));
    page.push_str("\n## What was not right\n\nOf the part that rules may be fitted to.\n\n");
    let fit: Vec<Ran> = judged(cases, Part::Fit).into_iter().map(|case| case.ran.clone()).collect();
    report::faults(&mut page, &fit)?;
    Ok(page)
}

fn head(cases: &[Case]) -> String {
    let came = cases.iter().filter_map(|case| match &case.ran.came {
        Came::Verdict(verdict) => Some(&verdict.started),
        Came::Skipped(_) | Came::Failed(_) => None,
    });
    let days: BTreeSet<&str> = came.filter_map(|started| started.get(..10)).collect();
    let days: Vec<&str> = days.into_iter().collect();
    format!(
        "# How often the diagnosis is right on faults that nobody chose\n\n\
         Written by `cargo xtask corpus`: today's rules judge runs that were kept, and nothing is run. Each run is a path \
         drawn at random, with a fault or without (`cargo xtask truth --random`), measured for four seconds. A \
         fault counts if it cost 15 % or more of its healthy twin's goodput, a path without a fault if it carried more \
         than 95 % of its rate. A quarter of the faults is held out, by \
         their SHA-256: rules and weights are never fitted to these. On a path without a fault, `cpu-contention` is no false \
         alarm if programs of lower priority took more than 5 % of the CPUs meanwhile; such runs are counted apart.\n\n\
         - {} runs, measured on {}\n\
         - {} of them can't be judged: the run failed, the fault cost too little or its cost is unknown, or the path without a fault was far from full\n",
        cases.len(),
        days.join(", "),
        cases.iter().filter(|case| score(&case.ran).is_none()).count(),
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
        let weights = Fit::read().unwrap();
        let page = page(&cases(&lines).unwrap(), &weights).unwrap();
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
