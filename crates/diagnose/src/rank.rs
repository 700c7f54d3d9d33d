//! Which finding limits: the largest part of the account that can be gained, and of its causes the most probable one.

use std::cmp::Ordering;

use goodput_model::{Confidence, Finding, Place};

use crate::held_shares::{HeldShares, KEPT_LIMIT, is_aside};
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::rules;
use crate::thresholds::MIN_COSTLY_SHARE;
use crate::view::View;

/// Limits whose reason may sit at the other end: both ends agree on windows, and a setting at one end applies to both.
const AGREED_BY_BOTH: [&str; 2] = ["receive-window", "send-buffer"];

/// Reasons at one end for the other's behaviour: an end sends nothing while it waits for the answer before a file.
const REACHING_ACROSS: [&str; 1] = ["waiting-for-answers"];

/// Puts the most limiting finding first.
pub fn rank(view: &View, held: HeldShares, findings: &mut [Finding]) {
    findings.sort_by(|a, b| Key::of(view, held, a).order(&Key::of(view, held, b)));
}

/// Removes findings about parts of the account which took next to no time.
pub fn drop_what_held_nothing(held: HeldShares, findings: &mut Vec<Finding>) {
    let is_about_parts = |finding: &Finding| {
        let about = |rule: &Rule| !matches!(rule.depth, Depth::Beside | Depth::Aside);
        rules::find(&finding.rule).is_some_and(about)
    };
    findings.retain(|finding| !(is_about_parts(finding) && held.is_nothing(&finding.rule)));
}

/// If the sender kept to an operator's limit and reached it, removes all other findings of what limits: nothing else can have
/// held more back, and no change of it would make the test faster.
pub fn drop_what_a_kept_limit_explains(view: &View, findings: &mut Vec<Finding>) {
    if view.kept_limit().is_none() {
        return;
    }
    let limits = |rule: &Rule| !matches!(rule.depth, Depth::Beside | Depth::Aside);
    let is_other = |finding: &Finding| {
        finding.rule != KEPT_LIMIT && rules::find(&finding.rule).is_some_and(limits)
    };
    findings.retain(|finding| !is_other(finding));
}

/// Removes findings about a part of the account, if another goes deeper: it says why that part took time. A merely possible
/// reason takes the place only of a merely possible finding, and a reason for what took no time only of its like.
pub fn drop_what_has_a_reason(held: HeldShares, findings: &mut Vec<Finding>) {
    let reasons = findings.clone();
    let is_vain = |reason: &Finding, named: &Finding| {
        held.is_nothing(&reason.rule) && !held.is_nothing(&named.rule)
    };
    findings.retain(|named| {
        !reasons.iter().any(|reason| is_why(reason, named) && !is_vain(reason, named))
    });
}

fn is_why(reason: &Finding, named: &Finding) -> bool {
    let both = rules::find(&reason.rule).zip(rules::find(&named.rule));
    let sure = reason.confidence > Confidence::Possible || named.confidence == Confidence::Possible;
    // What a host counted is why the path seemed to do something.
    let in_reach = reason.end == named.end
        || named.end == Place::Path
        || REACHING_ACROSS.contains(&reason.rule.as_str())
        || AGREED_BY_BOTH.contains(&named.rule.as_str());
    both.is_some_and(|(reason, named)| says_why(reason, named)) && sure && in_reach
}

/// Whether one rule goes deeper than the other about the same part.
fn says_why(reason: &Rule, named: &Rule) -> bool {
    let same_part = || reason.refines.iter().any(|part| named.refines.contains(part));
    let deeper = matches!(
        (reason.depth, named.depth),
        (Depth::Reason | Depth::Root, Depth::Limiter) | (Depth::Root, Depth::Reason)
    );
    deeper && same_part()
}

/// What findings are ranked by, the most important first.
#[derive(Debug)]
struct Key {
    /// It limits nothing here.
    aside: bool,
    /// What it is about took no time.
    held_nothing: bool,
    /// It only names what the path carries, as far as that was inferred.
    names_an_inferred_rate: bool,
    /// One mark speaks for it: it never outranks one with two.
    merely_possible: bool,
    /// Without it the rate grows by less than is worth a change.
    gains_nothing: bool,
    /// It only names what the path carries, as is known: all that takes something of it comes first.
    names_a_known_rate: bool,
    /// Share of the time that can be gained without it.
    avoidable: f64,
    /// What its rule says of its evidence.
    confidence: Confidence,
    /// Whether no host counted it: unless it is certain, what happens on the path was inferred.
    inferred: bool,
    /// The rate without it, bits per second; endless if nothing is known that would limit it.
    predicted: f64,
}

impl Key {
    fn of(view: &View, held: HeldShares, finding: &Finding) -> Self {
        let names_the_rate = rules::find(&finding.rule).is_some_and(only_names_the_rate);
        let avoidable = avoidable(view, held, finding);
        Self {
            aside: is_aside(&finding.rule),
            held_nothing: held.is_nothing(&finding.rule),
            names_an_inferred_rate: names_the_rate && finding.end == Place::Path,
            merely_possible: finding.confidence == Confidence::Possible,
            gains_nothing: avoidable < MIN_COSTLY_SHARE && !names_the_rate,
            names_a_known_rate: names_the_rate && finding.end != Place::Path,
            avoidable,
            confidence: finding.confidence,
            inferred: finding.end == Place::Path && finding.confidence < Confidence::Certain,
            predicted: finding.predicted_bits_per_s.value().map_or(f64::INFINITY, |rate| rate.0),
        }
    }

    fn order(&self, other: &Self) -> Ordering {
        let doubt = |key: &Self| {
            let worth = (key.aside, key.held_nothing, key.names_an_inferred_rate);
            (worth, key.merely_possible, key.gains_nothing, key.names_a_known_rate)
        };
        let cause = |key: &Self| (std::cmp::Reverse(key.confidence), key.inferred);
        doubt(self)
            .cmp(&doubt(other))
            .then(other.avoidable.total_cmp(&self.avoidable))
            .then(cause(self).cmp(&cause(other)))
            .then(other.predicted.total_cmp(&self.predicted))
    }
}

/// Share of the time that can be gained without a cause: what it held, but no more than the next limit allows. Of the path's
/// rate nothing can be gained; a reason for it is the answer for all the time that the path was full.
fn avoidable(view: &View, held: HeldShares, finding: &Finding) -> f64 {
    let counted = || finding.share_percent.value().map_or(0.0, |percent| percent / 100.0);
    let share = held.share(&finding.rule).unwrap_or_else(counted);
    let is_rate = rules::find(&finding.rule).is_some_and(|rule| rule.refines == [parts::PATH_RATE]);
    let predicted = finding.predicted_bits_per_s.value().map(|rate| rate.0);
    let goodput = view.goodput_or_zero();
    match predicted.filter(|rate| *rate > 0.0 && !is_rate) {
        Some(rate) => share.min((1.0 - goodput / rate).max(0.0)),
        None => share,
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
