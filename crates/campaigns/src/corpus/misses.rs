//! What was not right in the part that rules may be fitted to, with all that today's rules say of it, to look at.

use std::fmt::Write;

use anyhow::{Context, Result};
use serde_json::Value;

use super::Case;
use crate::part::Part;
use crate::truth::{report, score};

/// A paragraph for each run that was not right, by its judged line.
pub fn misses(cases: &[Case], lines: &str) -> Result<String> {
    let mut out = String::new();
    for (case, line) in cases.iter().zip(lines.lines()) {
        let right = score(&case.ran).is_none_or(|score| score.is_perfect());
        if case.part != Part::Fit || right {
            continue;
        }
        let line: Value = serde_json::from_str(line).context("a judged run is not JSON")?;
        let expected = &line["expected"];
        writeln!(out, "{}", report::one_line(&case.ran))?;
        writeln!(
            out,
            "  planted: {} at {}, cost {}",
            expected["limit"], expected["end"], line["cost"]
        )?;
        one(&mut out, &line["record"])?;
    }
    Ok(out)
}

fn one(out: &mut String, record: &Value) -> Result<()> {
    let (plan, round_trip) = (&record["plan"], &record["result"]["directions"][0]);
    writeln!(
        out,
        "  path: {} flows, {}, {}, {} bit/s, round trips of {} µs, {} at best",
        plan["flows"],
        plan["direction"],
        plan["socket"]["congestion"],
        record["result"]["goodput_bits_per_s"],
        round_trip["rtt_us"],
        round_trip["min_rtt_us"]
    )?;
    let account = &record["verdict"]["account"];
    let whole = account["flow_seconds"].as_f64().unwrap_or(f64::NAN);
    for part in list(&account["parts"]) {
        let share = part["seconds"].as_f64().unwrap_or(f64::NAN) / whole * 100.0;
        writeln!(out, "  time: {} {} {share:.0} %", part["limiter"], part["end"])?;
    }
    let loss = &record["verdict"]["loss"];
    writeln!(
        out,
        "  lost: {} of {}, {}",
        loss["lost_segments"], loss["sent_segments"], loss["explanation"]
    )?;
    for fit in list(&loss["candidates"]) {
        writeln!(
            out,
            "    {} behind {:.1}",
            fit["model"],
            fit["behind"].as_f64().unwrap_or(f64::NAN)
        )?;
    }
    for finding in list(&record["findings"]) {
        writeln!(
            out,
            "  said: {} at {}, {}, probability {}, share {}",
            finding["rule"],
            finding["end"],
            finding["rule_confidence"],
            finding["probability"],
            finding["share_percent"]
        )?;
        for witness in list(&finding["evidence"]) {
            writeln!(out, "    {}", witness["text"])?;
        }
    }
    for undecided in list(&record["undecided"]) {
        writeln!(out, "  can't tell: {}: {}", undecided["rule"], undecided["because"])?;
    }
    Ok(())
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::page::cases;

    #[test]
    fn only_what_was_not_right_and_may_be_looked_at_is_shown() {
        let line = |name: &str, drawn: &str, found: &str| {
            format!(
                r#"{{"case":"{name}","drawn":"{drawn}","cost":0.5,"expected":{{"limit":["a"]}},"record":{{"started":"","verdict":{{"limit":"{found}"}},"findings":[{{"rule":"{found}","evidence":[{{"text":"why"}}]}}]}}}}"#
            )
        };
        let lines =
            [line("x-1", "ff", "b"), line("x-2", "00", "b"), line("x-3", "ff", "a")].join("\n");
        let text = misses(&cases(&lines).unwrap(), &lines).unwrap();
        assert!(text.contains("x-1: wrong") && text.contains("why"), "{text}");
        assert!(!text.contains("x-2") && !text.contains("x-3"), "{text}");
    }
}
