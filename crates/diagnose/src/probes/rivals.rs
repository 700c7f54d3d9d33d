//! Which two causes can't be distinguished, and what a probe's answer decides.

use goodput_model::finding::RIVAL;
use goodput_model::{Confidence, Finding, Known, Place, Record, Undecided, Verdict, Witness};

use super::{Probe, splitting};
use crate::held_shares::HeldShares;
use crate::rules;

/// Causes whose rules can't always exclude each other, though only one of them fires: both lose packets
/// without a queue on the path, or hold a steady rate.
const CLOSE: [(&str, &str); 3] =
    [("path-loss", "policer"), ("path-loss", "tso-oversize"), ("path-rate", "per-flow-limit")];

/// The first finding and the causes that it may be confused with.
#[derive(Debug, Clone)]
pub struct Rivals {
    /// The first finding's rule.
    pub first: String,
    /// Each probe that would decide, and the rule from which it distinguishes the first; never empty.
    pub splits: Vec<(String, &'static Probe)>,
}

/// The rivals of a test's findings, as its record has them.
pub fn rivals_in(record: &Record) -> Option<Rivals> {
    let held = HeldShares::in_verdict(&record.verdict, record.plan.transport);
    rivals(&record.findings, &record.undecided, held)
}

/// Causes that the kernel's counters do not distinguish: the best two findings if a probe does and
/// neither is certain; else a merely possible first finding and a rule that could not decide; else
/// the first finding's known look-alikes. What took no time is nobody's rival.
fn rivals(findings: &[Finding], undecided: &[Undecided], held: HeldShares) -> Option<Rivals> {
    let first = findings.first().filter(|first| first.confidence < Confidence::Certain)?;
    let may_limit = |rule: &&str| held.may_limit(rule);
    may_limit(&first.rule.as_str()).then_some(())?;
    let found = findings.iter().skip(1).filter(|f| f.confidence < Confidence::Certain);
    let found = found.map(|finding| finding.rule.as_str());
    let open = undecided.iter().map(|rule| rule.rule.as_str());
    let open = open.filter(|_| first.confidence == Confidence::Possible);
    let best = found.chain(open).filter(may_limit).filter(|rule| *rule != first.rule);
    let splits = best.map(|second| split_from(&first.rule, second)).find(|s| !s.is_empty());
    let splits = splits.unwrap_or_else(|| {
        let close = CLOSE.iter().filter_map(|(a, b)| match first.rule.as_str() {
            rule if rule == *a => Some(*b),
            rule if rule == *b => Some(*a),
            _ => None,
        });
        close
            .filter(may_limit)
            .filter_map(|second| split_from(&first.rule, second).into_iter().next())
            .collect()
    });
    (!splits.is_empty()).then(|| Rivals { first: first.rule.clone(), splits })
}

fn split_from(first: &str, second: &str) -> Vec<(String, &'static Probe)> {
    splitting(first, second).into_iter().map(|probe| (second.to_owned(), probe)).collect()
}

/// Whether a finding's advice names a cause that it may be confused with, instead of a remedy.
pub fn names_rival(advice: &str) -> bool {
    advice.starts_with(RIVAL)
}

/// Notes in the first finding what it may be confused with, and the probe that would decide.
pub fn doubt(findings: &mut [Finding], undecided: &[Undecided], held: HeldShares) {
    let Some(rivals) = rivals(findings, undecided, held) else { return };
    if let (Some(first), Some((second, probe))) = (findings.first_mut(), rivals.splits.first()) {
        first.advice.push(format!(
            "{RIVAL} {second}, which looks the same from here; a run with {} would show which (--probe)",
            probe.title
        ));
    }
}

/// Puts the cause favoured by the probes first, and the others below it. `text` says what the probes
/// showed, `value` is the reading of the deciding probe.
pub fn settle(
    findings: &mut Vec<Finding>,
    verdict: &mut Verdict,
    winner: &str,
    losers: &[&str],
    (text, value): (String, f64),
) {
    for finding in findings.iter_mut().filter(|f| losers.contains(&f.rule.as_str())) {
        settled(finding, Confidence::Possible);
    }
    let place = findings.iter().position(|finding| finding.rule == winner);
    let mut first = match place {
        Some(place) => findings.remove(place),
        None => unproven(winner),
    };
    let surer = first.confidence.max(Confidence::Likely);
    settled(&mut first, surer);
    first.advice.retain(|advice| !names_rival(advice));
    first.evidence.push(Witness { end: first.end, name: "probe".into(), value, text });
    verdict.limit.clone_from(&first.rule);
    verdict.end = first.end;
    verdict.share_percent = first.share_percent.clone();
    verdict.share_between_percent = first.share_between_percent;
    verdict.summary.clone_from(&first.summary);
    findings.retain(|finding| finding.rule != winner);
    findings.insert(0, first);
}

/// Gives a finding the word that a probe leaves it with. The runs that probabilities are fitted to had no probes.
fn settled(finding: &mut Finding, confidence: Confidence) {
    finding.confidence = confidence;
    finding.rule_confidence = None;
    finding.probability = Known::missing("a probe decided");
}

/// A cause that only the probe supports: its rule could not decide.
fn unproven(rule: &str) -> Finding {
    let title = rules::find(rule).map_or(rule, |rule| rule.title);
    Finding {
        probability: Known::missing("a probe decided"),
        share_percent: Known::missing("only a probe supports it"),
        ..Finding::new(rule, Place::Path, Confidence::Likely, title.to_lowercase())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::{Account, AccountPart, EndName, Limiter, Transport};

    fn finding(rule: &str, confidence: Confidence) -> Finding {
        Finding { confidence, ..unproven(rule) }
    }

    fn verdict() -> Verdict {
        Verdict {
            limit: "path-rate".into(),
            end: Place::Path,
            share_percent: Known::Value(90.0),
            share_between_percent: None,
            summary: "the path".into(),
            split: None,
            account: Known::missing("not asked"),
            loss: Known::missing("not asked"),
            sender: EndName::Near,
        }
    }

    fn unknown(verdict: &Verdict) -> HeldShares<'_> {
        HeldShares::in_verdict(verdict, Transport::Tcp)
    }

    #[test]
    fn what_took_no_time_is_no_rival() {
        let path = AccountPart {
            limiter: Limiter::PathRate,
            end: Place::Path,
            seconds: 4.0,
            between_s: None,
        };
        let account = Account {
            flows: 1,
            flow_seconds: 4.0,
            parts: vec![path],
            unknown_s: 0.0,
            timeline: Vec::new(),
            slices: Vec::new(),
        };
        let verdict = Verdict { account: Known::Value(account), ..verdict() };
        let held = HeldShares::in_verdict(&verdict, Transport::Tcp);
        let names = |first: &str, second: &str, held: HeldShares| {
            let both = [finding(first, Confidence::Likely), finding(second, Confidence::Possible)];
            let found = rivals(&both, &[], held).map_or_else(Vec::new, |rivals| rivals.splits);
            found.into_iter().any(|(rule, _)| rule == second)
        };
        assert!(!names("path-rate", "path-loss", held));
        assert!(!names("path-loss", "path-rate", held));
        assert!(names("path-rate", "path-loss", unknown(&self::verdict())));
    }

    #[test]
    fn two_findings_that_a_probe_splits_are_rivals() {
        let mut findings = vec![
            finding("path-rate", Confidence::Likely),
            finding("line-rate", Confidence::Likely),
            finding("path-loss", Confidence::Possible),
        ];
        let rivals = rivals(&findings, &[], unknown(&verdict())).unwrap();
        assert_eq!(
            (rivals.first.as_str(), rivals.splits[0].0.as_str()),
            ("path-rate", "path-loss")
        );
        doubt(&mut findings, &[], unknown(&verdict()));
        assert!(findings[0].advice[0].contains("path-loss"), "{findings:?}");
    }

    #[test]
    fn a_certain_finding_and_a_likely_one_alone_have_no_rival() {
        let verdict = verdict();
        let held = unknown(&verdict);
        let open = [Undecided { rule: "receiver-cpu".into(), because: "x".into() }];
        assert!(rivals(&[finding("sender-cpu", Confidence::Certain)], &open, held).is_none());
        assert!(rivals(&[finding("sender-cpu", Confidence::Likely)], &open, held).is_none());
        assert!(rivals(&[finding("sender-cpu", Confidence::Possible)], &open, held).is_some());
        assert!(rivals(&[], &open, held).is_none());
    }

    #[test]
    fn loss_is_probed_for_what_loses_by_rule() {
        let rivals =
            rivals(&[finding("path-loss", Confidence::Likely)], &[], unknown(&verdict())).unwrap();
        let names: Vec<_> =
            rivals.splits.iter().map(|(rule, probe)| (rule.as_str(), probe.id)).collect();
        let expected = [("policer", "paced"), ("tso-oversize", "offload-off")];
        assert_eq!(names, expected);
    }

    #[test]
    fn the_probes_answer_comes_first_and_says_why() {
        let mut findings = vec![
            finding("path-rate", Confidence::Likely),
            finding("path-loss", Confidence::Possible),
        ];
        for finding in &mut findings {
            finding.probability = Known::Value(0.9);
            finding.rule_confidence = Some(finding.confidence);
        }
        doubt(&mut findings, &[], unknown(&verdict()));
        let mut verdict = verdict();
        let shown = ("four flows gave 3.9 × the goodput".to_owned(), 3.9);
        settle(&mut findings, &mut verdict, "path-loss", &["path-rate"], shown);
        assert_eq!(verdict.limit, "path-loss");
        assert_eq!(
            findings.iter().map(|f| f.rule.as_str()).collect::<Vec<_>>(),
            ["path-loss", "path-rate"]
        );
        assert_eq!(findings[0].confidence, Confidence::Likely);
        assert_eq!(findings[1].confidence, Confidence::Possible);
        assert_eq!(findings[0].evidence[0].name, "probe");
        let fitted = |finding: &Finding| {
            finding.probability.value().is_some() || finding.rule_confidence.is_some()
        };
        assert!(!findings.iter().any(fitted));
    }
}
