//! What came of drawn shapers, in words.

use serde_json::Value;

use super::draw::Drawn;
use super::judged::Judged;
use super::planted::{ALL, Planted};
use crate::wilson;

/// What came of one draw.
pub struct Outcome {
    /// What limited.
    pub planted: &'static Planted,
    /// Which answers are right.
    pub judged: Judged,
    /// Whether the computed bucket gives the rate; `None` if no bucket does, or none was tried.
    pub enough: Option<bool>,
}

/// A line about one draw.
pub fn words(drawn: &Drawn, record: &Value, outcome: &Outcome) -> String {
    if let Some(why) = record["failed"].as_str() {
        return format!("{}: not tested: {why}", drawn.name);
    }
    let train = &record["shaping"]["train"];
    let percent = |seen: &Value, truth: f64| {
        let seen = seen["value"].as_f64();
        seen.map_or("unknown".into(), |seen| format!("{:+.2} %", (seen / truth - 1.0) * 100.0))
    };
    let Judged { kind, rate, interval, bucket, queue, fair, .. } = outcome.judged;
    format!(
        "{}: {} kbit/s, {:.0} bytes: kind {} ({}), rate {} ({}, interval {}), bucket {} ({}), queue {} ({}), \
         flows {} ({}), computed bucket {}",
        drawn.name,
        drawn.asked_kbit,
        drawn.bucket_bytes,
        train["kind"].as_str().unwrap_or("unknown"),
        shown(Some(kind)),
        percent(&train["rate_bits_per_s"], drawn.rate_bits_per_s),
        shown(rate),
        shown(interval),
        percent(&train["bucket_bytes"], drawn.at_once_bytes),
        shown(bucket),
        known(&train["queue"], "discipline"),
        shown(queue),
        known(&train["queue"], "between_flows"),
        shown(fair),
        shown(outcome.enough)
    )
}

/// A part of a queue in words, or why it is unknown.
fn known<'a>(queue: &'a Value, what: &str) -> &'a str {
    let part = &queue[what];
    part.as_str().or_else(|| part["missing"].as_str()).unwrap_or("none")
}

fn shown(right: Option<bool>) -> &'static str {
    match right {
        Some(true) => "right",
        Some(false) => "WRONG",
        None => "no truth",
    }
}

/// How often each answer is right.
pub fn summary(all: &[Outcome]) -> String {
    let of = |answer: &dyn Fn(&Outcome) -> Option<bool>| {
        let known: Vec<_> = all.iter().filter_map(answer).collect();
        wilson::shown(known.iter().filter(|right| **right).count(), known.len())
    };
    let drawn = ALL.iter().filter(|row| all.iter().any(|one| std::ptr::eq(one.planted, *row)));
    let kinds = drawn.map(|row| {
        let own = |one: &Outcome| std::ptr::eq(one.planted, row);
        let kind = of(&|one| own(one).then_some(one.judged.kind));
        let rate = of(&|one| one.judged.rate.filter(|_| own(one)));
        let bucket = of(&|one| one.judged.bucket.filter(|_| own(one)));
        format!("{}: kind {kind}; rate {rate}; bucket {bucket}\n", row.id)
    });
    let kinds: String = kinds.collect();
    format!(
        "{kinds}kind: {}\nrate within 0.5 %: {}\nits interval has the truth: {}\n\
         bucket within 10 % or a frame: {}\nqueue that drops early or not: {}\n\
         fair queue or not, where it is said: {}\ntraffic of at most 5 s: {}\n\
         computed bucket gives 95 % where any does: {}\n",
        of(&|one| Some(one.judged.kind)),
        of(&|one| one.judged.rate),
        of(&|one| one.judged.interval),
        of(&|one| one.judged.bucket),
        of(&|one| one.judged.queue),
        of(&|one| one.judged.fair),
        of(&|one| one.judged.is_short),
        of(&|one| one.enough)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_has_a_truth_counts() {
        let judged = Judged {
            kind: true,
            rate: None,
            interval: None,
            bucket: Some(false),
            queue: None,
            fair: None,
            is_short: Some(true),
        };
        let outcome = |id, enough| Outcome { planted: Planted::named(id).unwrap(), judged, enough };
        let all = [outcome("tbf", Some(true)), outcome("none", None)];
        let text = summary(&all);
        for line in ["kind: 2 of 2 ", "tbf: kind 1 of 1 ", "rate within 0.5 %: none"] {
            assert!(text.contains(line), "{text}");
        }
        assert!(text.contains("frame: 0 of 2 ") && text.contains("any does: 1 of 1 "), "{text}");
        assert!(!text.contains("htb:"), "{text}");
    }
}
