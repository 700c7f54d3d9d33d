//! Which finding limits: what can be gained first, then by the order of elimination, then by the share of the time.

use std::cmp::Ordering;

use goodput_model::{Confidence, Finding, Place};

use crate::held_shares::HeldShares;
use crate::parts;
use crate::rule::{Depth, Rule, Stage};
use crate::rules;
use crate::thresholds::MIN_WORTHWHILE_RATE_RATIO;
use crate::view::View;

/// Limits whose reason may sit at the other end: both ends agree on windows and segments, and a setting at
/// one end applies to both.
const AGREED_BY_BOTH: [&str; 4] = ["receive-window", "send-buffer", "line-rate", "shaper-rate"];

/// Reasons at one end for the other's behaviour: an end sends nothing while it waits for the answer before a file.
const REACHING_ACROSS: [&str; 1] = ["waiting-for-answers"];

/// Puts the most limiting finding first.
pub fn rank(view: &View, held: HeldShares, findings: &mut [Finding]) {
    findings.sort_by(|a, b| key(view, held, a).order(&key(view, held, b)));
}

/// Removes findings that explain parts of the account which took next to no time.
pub fn drop_what_held_nothing(held: HeldShares, findings: &mut Vec<Finding>) {
    let explains = |finding: &Finding| {
        rules::find(&finding.rule)
            .is_some_and(|rule| rule.depth != Depth::Beside && rule.stage != Stage::Aside)
    };
    findings.retain(|finding| !(explains(finding) && held.is_nothing(&finding.rule)));
}

/// Removes findings whose reason is another finding, as [`crate::Rule::explains`] says. A merely
/// possible reason explains only findings that are merely possible themselves, and a reason for what took no time only
/// findings of the same kind.
pub fn drop_explained(held: HeldShares, findings: &mut Vec<Finding>) {
    let reasons = findings.clone();
    let is_vain = |reason: &Finding, effect: &Finding| {
        held.is_nothing(&reason.rule) && !held.is_nothing(&effect.rule)
    };
    findings.retain(|effect| {
        !reasons.iter().any(|reason| explains(reason, effect) && !is_vain(reason, effect))
    });
}

fn explains(reason: &Finding, effect: &Finding) -> bool {
    let both = rules::find(&reason.rule).zip(rules::find(&effect.rule));
    let named = both.is_some_and(|(reason, effect)| is_reason(reason, effect));
    let sure =
        reason.confidence > Confidence::Possible || effect.confidence == Confidence::Possible;
    // What a host counted explains what the path seemed to do.
    let in_reach = reason.end == effect.end
        || effect.end == Place::Path
        || REACHING_ACROSS.contains(&reason.rule.as_str())
        || AGREED_BY_BOTH.contains(&effect.rule.as_str());
    named && sure && in_reach
}

/// Whether one rule says why, where the other only names the limiter.
fn is_reason(reason: &Rule, effect: &Rule) -> bool {
    let same_part = || reason.refines.iter().any(|part| effect.refines.contains(part));
    let deeper = reason.depth == Depth::Reason && effect.depth == Depth::Limiter;
    reason.explains.contains(&effect.id) || deeper && same_part()
}

struct Key {
    aside: bool,
    held_nothing: bool,
    unavoidable: bool,
    merely_possible: bool,
    gains_nothing: bool,
    stage: Stage,
    share: f64,
    predicted: f64,
}

impl Key {
    fn order(&self, other: &Self) -> Ordering {
        let doubt = |key: &Self| {
            let worth = (key.aside, key.held_nothing, key.unavoidable);
            (worth, key.merely_possible, key.gains_nothing, key.stage)
        };
        doubt(self)
            .cmp(&doubt(other))
            .then(other.share.total_cmp(&self.share))
            .then(other.predicted.total_cmp(&self.predicted))
    }
}

fn is_inferred(finding: &Finding) -> bool {
    finding.end == Place::Path && finding.confidence < Confidence::Certain
}

fn key(view: &View, held: HeldShares, finding: &Finding) -> Key {
    let goodput = view.goodput_or_zero();
    let stage = match rules::find(&finding.rule).map_or(Stage::Path, |rule| rule.stage) {
        // No host counts what happens on the path: unless it is certain, it was inferred.
        Stage::Counted if is_inferred(finding) => Stage::Path,
        stage => stage,
    };
    let predicted = finding.predicted_bits_per_s.value().map_or(0.0, |rate| rate.0);
    let counted = || finding.share_percent.value().map_or(0.0, |percent| percent / 100.0);
    let small = predicted > 0.0 && predicted < MIN_WORTHWHILE_RATE_RATIO * goodput;
    Key {
        aside: stage == Stage::Aside,
        held_nothing: held.is_nothing(&finding.rule),
        unavoidable: rules::find(&finding.rule).is_some_and(only_names_the_rate),
        // A cause with one witness never outranks one with two.
        merely_possible: finding.confidence == Confidence::Possible,
        // At the ceiling there is nothing to gain, and that is the answer.
        gains_nothing: small && stage != Stage::Ceiling,
        stage,
        share: held.share(&finding.rule).unwrap_or_else(counted),
        predicted,
    }
}

/// Whether a rule names what the path carries, of which nothing can be taken away: all that takes something of it comes first,
/// however little. The rate of the path holds the flows for the rest.
fn only_names_the_rate(rule: &Rule) -> bool {
    rule.depth == Depth::Limiter && rule.refines == [parts::PATH_RATE]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Draft;
    use crate::testing::Case;

    fn finding(rule: &'static str, end: Place, share: f64) -> Finding {
        let draft = Draft::new(rule, end, Confidence::Likely, "x").share(share);
        draft.found().unwrap().unwrap()
    }

    #[test]
    fn a_certain_finding_of_the_path_ranks_as_counted() {
        let evidence = Case::path_loss().evidence();
        let view = View::new(&evidence);
        let program = finding("sender-application", Place::Near, 1.0);
        let unanswered = finding("mtu-mismatch", Place::Path, 1.0);
        let certain = Finding { confidence: Confidence::Certain, ..unanswered };
        let mut findings = vec![program, certain];
        rank(&view, HeldShares::of(&view), &mut findings);
        assert_eq!(findings[0].rule, "mtu-mismatch");
    }

    #[test]
    fn what_takes_from_the_path_s_rate_comes_before_it_however_little() {
        let evidence = Case::path_rate().evidence();
        let view = View::new(&evidence);
        let possible =
            Finding { confidence: Confidence::Possible, ..finding("ack-path", Place::Path, 0.2) };
        let mut findings = vec![
            finding("path-rate", Place::Path, 0.8),
            possible,
            finding("wrong-class", Place::Path, 0.2),
        ];
        rank(&view, HeldShares::of(&view), &mut findings);
        let order: Vec<_> = findings.iter().map(|finding| finding.rule.as_str()).collect();
        assert_eq!(order, ["wrong-class", "ack-path", "path-rate"]);
    }

    #[test]
    fn what_a_host_counted_outranks_what_was_inferred_of_the_path() {
        let evidence = Case::path_loss().evidence();
        let view = View::new(&evidence);
        let mut findings = vec![
            finding("queue-too-short", Place::Path, 1.0),
            finding("ring-overrun", Place::Far, 0.2),
        ];
        rank(&view, HeldShares::of(&view), &mut findings);
        assert_eq!(findings[0].rule, "ring-overrun");
    }
}
