//! Comparing a record with the expectations of its scenario.

use goodput_model::Record;
use goodput_model::units::BitRate;
use serde::Serialize;

use crate::scenario::{Expect, GoodputRange};

/// One expectation and its outcome, in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Expectation {
    /// What is judged: "limit", "both", "healthy", "end", "not", "goodput".
    pub what: &'static str,
    /// What the scenario wants.
    pub wanted: String,
    /// What the record shows.
    pub got: String,
    /// Whether the two agree.
    pub ok: bool,
}

/// Every expectation of a scenario against a record.
pub(super) fn judge(expect: &Expect, record: &Record) -> Vec<Expectation> {
    let verdict = &record.verdict;
    let found: Vec<_> = record.findings.iter().map(|finding| finding.rule.as_str()).collect();
    let mut judged = Vec::new();
    if !expect.limit.is_empty() {
        let ok = expect.limit.contains(&verdict.limit);
        judged.push(expectation("limit", expect.limit.join(" or "), &verdict.limit, ok));
    }
    if !expect.both.is_empty() {
        let first = expect.both.contains(&verdict.limit);
        let all = expect.both.iter().all(|rule| found.contains(&rule.as_str()));
        judged.push(expectation("both", expect.both.join(" and "), named(&found), first && all));
    }
    if expect.healthy {
        let alarm = found.iter().any(|rule| !expect.limit.iter().any(|may| may == rule));
        let wanted = format!("nothing but {}", expect.limit.join(" or "));
        judged.push(expectation("healthy", wanted, named(&found), !alarm));
    }
    if let Some(end) = expect.end {
        judged.push(expectation("end", end, verdict.end, verdict.end == end));
    }
    if !expect.not.is_empty() {
        judged.push(judge_absent(&expect.not, &found));
    }
    if let Some(range) = expect.goodput {
        judged.push(judge_goodput(range, record.result.goodput_bits_per_s));
    }
    judged
}

fn judge_absent(not: &[String], found: &[&str]) -> Expectation {
    let wrong: Vec<_> = found.iter().filter(|rule| not.iter().any(|no| no == *rule)).collect();
    let wanted = format!("no finding of {}", not.join(", "));
    expectation("not", wanted, named(found), wrong.is_empty())
}

fn named(found: &[&str]) -> String {
    if found.is_empty() { "no findings".into() } else { found.join(", ") }
}

fn judge_goodput(range: GoodputRange, goodput: BitRate) -> Expectation {
    let low = range.min.is_some_and(|min| goodput < min);
    let high = range.max.is_some_and(|max| goodput > max);
    let wanted = match (range.min, range.max) {
        (Some(min), Some(max)) => format!("{min} to {max}"),
        (Some(min), None) => format!("at least {min}"),
        (None, Some(max)) => format!("at most {max}"),
        (None, None) => "any".into(),
    };
    expectation("goodput", wanted, goodput, !low && !high)
}

fn expectation(
    what: &'static str,
    wanted: impl ToString,
    got: impl ToString,
    ok: bool,
) -> Expectation {
    Expectation { what, wanted: wanted.to_string(), got: got.to_string(), ok }
}

#[cfg(test)]
mod tests;
