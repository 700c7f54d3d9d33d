//! What the purpose of tuning changes about what is tried first, and last.

use goodput_diagnose::check::is_seen;
use goodput_diagnose::is_of_purpose;
use goodput_diagnose::rule::Depth;
use goodput_diagnose::rules::find;
use goodput_model::{Finding, Purpose};

/// Findings of a measurement, those about the purpose first. What limits nothing costs no goodput.
pub fn first(purpose: Purpose, findings: &[Finding]) -> Vec<Finding> {
    let is_aside =
        |finding: &Finding| find(&finding.rule).is_some_and(|rule| rule.depth == Depth::Aside);
    let mut findings = findings.to_vec();
    findings.retain(|finding| purpose != Purpose::Throughput || !is_aside(finding));
    findings.sort_by_key(|finding| !is_of_purpose(&finding.rule, purpose));
    findings
}

/// What is tried after the findings of measurements: what `check` has seen harm of, what the purpose offers, and what
/// `check` says could limit.
pub fn last(checked: Vec<Finding>, offered: Vec<Finding>) -> Vec<Finding> {
    let (seen, possible): (Vec<_>, Vec<_>) = checked.into_iter().partition(is_seen);
    seen.into_iter().chain(offered).chain(possible).collect()
}

#[cfg(test)]
mod tests {
    use goodput_model::{Confidence, Place};

    use super::*;

    fn findings(rules: &[(&str, Confidence)]) -> Vec<Finding> {
        let finding = |(rule, confidence): &(&str, Confidence)| {
            Finding::new(rule, Place::Near, *confidence, "x")
        };
        rules.iter().map(finding).collect()
    }

    fn rules(findings: &[Finding]) -> Vec<&str> {
        findings.iter().map(|finding| finding.rule.as_str()).collect()
    }

    #[test]
    fn what_the_purpose_is_about_comes_first() {
        let found = findings(
            &["path-rate", "queue-too-long", "sender-cpu"].map(|rule| (rule, Confidence::Likely)),
        );
        let ordered = |purpose| first(purpose, &found);
        assert_eq!(rules(&ordered(Purpose::Balanced)), rules(&found));
        let for_goodput = ["path-rate", "sender-cpu"];
        assert_eq!(rules(&ordered(Purpose::Throughput)), for_goodput, "a queue costs no goodput");
        assert_eq!(rules(&ordered(Purpose::Latency))[0], "queue-too-long");
        assert_eq!(rules(&ordered(Purpose::Cpu)), ["sender-cpu", "path-rate", "queue-too-long"]);
    }

    #[test]
    fn what_only_could_limit_comes_last() {
        let checked = findings(&[("a", Confidence::Possible), ("b", Confidence::Likely)]);
        let offered = findings(&[("c", Confidence::Possible)]);
        assert_eq!(rules(&last(checked, offered)), ["b", "c", "a"]);
    }
}
