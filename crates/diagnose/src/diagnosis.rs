//! Asks every rule and turns the answers into a verdict.

use std::collections::BTreeMap;

use goodput_model::{
    Account, Confidence, Evidence, Finding, Known, LimitAmount, Place, Undecided, Verdict,
    WitnessCount,
};

use crate::account::{Part, Seat, account};
use crate::ceiling::PathCeiling;
use crate::held_shares::HeldShares;
use crate::limit_amount::limit_amount;
use crate::loss::loss;
use crate::probability;
use crate::probes::doubt;
use crate::rank::{
    drop_what_a_kept_limit_explains, drop_what_has_a_reason, drop_what_held_nothing, rank,
};
use crate::rules;
use crate::view::View;
use crate::witness_counts;

/// What the rules say about one direction of one measurement.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnosis {
    /// The limit.
    pub verdict: Verdict,
    /// Every cause found, the most limiting first; those after the first contribute.
    pub findings: Vec<Finding>,
    /// Rules that could not decide, with what was missing.
    pub undecided: Vec<Undecided>,
    /// The reading of each rule's witness, by rule id, if it could be read. Each falls when its cause
    /// is removed.
    pub witnesses: BTreeMap<String, f64>,
    /// The events behind the witnesses that count some, by rule id.
    pub witness_counts: BTreeMap<String, WitnessCount>,
    /// How much the cause of the verdict lets through, if it has an amount.
    pub amount: Option<LimitAmount>,
    /// Goodput that the path could carry at best.
    pub ceiling: PathCeiling,
}

/// Asks every rule. Never fails: rules that can't decide are among `undecided`.
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
    doubt_what_was_inferred(&view, &mut findings);
    let held = HeldShares::of(&view);
    drop_what_a_kept_limit_explains(&view, &mut findings);
    drop_what_held_nothing(held, &mut findings);
    drop_what_has_a_reason(held, &mut findings);
    rank(&view, held, &mut findings);
    probability::assign(&view, held, &mut findings);
    doubt(&mut findings, &undecided, held);
    let verdict = verdict(&view, &findings, &undecided);
    let witnesses = witnesses(&view);
    Diagnosis {
        witness_counts: witness_counts::of(&view, &witnesses),
        witnesses,
        amount: limit_amount(&view, &verdict.limit),
        verdict,
        ceiling: PathCeiling::of(&view),
        findings,
        undecided,
    }
}

/// If a program's own waiting is only inferred from its socket, nothing based on it is
/// certain.
fn doubt_what_was_inferred(view: &View, findings: &mut [Finding]) {
    let is_at_a_host = |(_, seat): &Part| *seat != Seat::Path;
    let stands_on_it = |finding: &Finding| {
        rules::find(&finding.rule).is_some_and(|rule| rule.refines.iter().any(is_at_a_host))
    };
    if view.sides().iter().any(|side| side.is_watched()) {
        for finding in findings.iter_mut().filter(|finding| stands_on_it(finding)) {
            finding.confidence = finding.confidence.min(Confidence::Likely);
        }
    }
}

fn witnesses(view: &View) -> BTreeMap<String, f64> {
    let read = rules::ALL.iter().filter_map(|rule| Some((rule.id, (rule.witness)(view).ok()?)));
    read.filter(|(_, value)| value.is_finite()).map(|(id, value)| (id.into(), value)).collect()
}

fn verdict(view: &View, findings: &[Finding], undecided: &[Undecided]) -> Verdict {
    let (account, sender) = (account(view), view.sender.name);
    let held = HeldShares::of(view);
    match findings.first().filter(|finding| held.may_limit(&finding.rule)) {
        Some(first) => Verdict {
            limit: first.rule.clone(),
            end: first.end,
            share_percent: first.share_percent.clone(),
            share_between_percent: first.share_between_percent,
            summary: first.summary.clone(),
            split: None,
            account: account.cloned().into(),
            loss: loss(view).cloned().into(),
            sender,
        },
        None => Verdict {
            limit: Verdict::NO_LIMIT.into(),
            end: Place::Path,
            share_percent: Known::missing("no rule found a limit"),
            share_between_percent: None,
            summary: nothing_found(
                account.as_ref().ok().copied(),
                findings.is_empty(),
                undecided.len(),
            ),
            split: None,
            account: account.cloned().into(),
            loss: loss(view).cloned().into(),
            sender,
        },
    }
}

/// The summary if no finding limits: where the time went, and how many rules could not decide.
fn nothing_found(account: Option<&Account>, nothing_at_all: bool, undecided: usize) -> String {
    let found = if nothing_at_all { "nothing found" } else { "nothing found that took time" };
    let time = match account.and_then(largest_part) {
        Some(part) => format!("{found}; {part}"),
        None => found.into(),
    };
    match undecided {
        0 => time,
        1 => format!("{time}; 1 rule could not decide"),
        n => format!("{time}; {n} rules could not decide"),
    }
}

fn largest_part(account: &Account) -> Option<String> {
    let part = account.parts.first()?;
    let share = account.share_text(part);
    Some(format!("{} took {share} of the time", part.limiter.at(part.end)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Case;
    use goodput_model::EndName;

    fn limit(case: Case) -> String {
        diagnose(&case.evidence()).verdict.limit
    }

    #[test]
    fn each_cause_is_named() {
        for (case, expected) in [
            (Case::healthy(), "none"),
            (Case::healthy().goodput(938e6), "line-rate"),
            (Case::healthy().tbf(1e8, 125_000).goodput(95.6e6), "shaper-rate"),
            (Case::receive_window(), "receive-window"),
            (Case::send_buffer(), "send-buffer"),
            (Case::sender_application(), "sender-application"),
            (Case::throttled_receiver(), "cpu-quota"),
            (Case::path_rate(), "path-rate"),
            (Case::path_loss(), "path-loss"),
            (Case::shaper_burst(), "shaper-burst"),
        ] {
            assert_eq!(limit(case), expected);
        }
    }

    #[test]
    fn on_crowded_cpus_the_end_that_waits_less_is_named() {
        let crowded = || {
            let case = Case::healthy().without_links().goodput(30e9).shares(0.9, 0.1, 0.0);
            case.cpu(EndName::Near, 0.3, 0.97).cpu(EndName::Far, 0.3, 0.97)
        };
        assert_eq!(limit(crowded().writer(0.02, 0.0, 0.93).reader(0.2, 0.0, 0.75)), "sender-cpu");
        assert_eq!(
            limit(crowded().writer(0.3, 0.0, 0.6).reader(0.01, 0.0, 0.95).queued(8_000_000)),
            "receiver-cpu"
        );
    }

    #[test]
    fn nothing_found_says_where_the_time_went() {
        let summary = diagnose(&Case::healthy().evidence()).verdict.summary;
        assert!(summary.contains("100 %") && summary.contains("path"), "{summary}");
        let summary = diagnose(&Case::empty().evidence()).verdict.summary;
        assert!(summary.contains(&format!("{} rules", rules::ALL.len())), "{summary}");
    }

    #[test]
    fn a_silent_peer_leaves_the_other_rules_working() {
        let diagnosis = diagnose(&Case::send_buffer().without_far().evidence());
        assert_eq!(diagnosis.verdict.limit, "send-buffer");
        assert!(diagnosis.undecided.iter().any(|u| u.rule == "receiver-cpu"));
    }

    #[test]
    fn of_another_program_the_near_end_alone_names_the_cause_and_is_not_certain() {
        for (case, expected) in [
            (Case::send_buffer(), "send-buffer"),
            (Case::sender_application().send_queue(0.05), "sender-application"),
            (Case::healthy().writer(0.0, 0.0, 0.97).send_queue(0.1), "sender-cpu"),
            (Case::path_loss(), "path-loss"),
            (Case::path_rate(), "path-rate"),
            (Case::receive_window(), "receive-window"),
        ] {
            let diagnosis = diagnose(&case.without_far().watched().evidence());
            assert_eq!(diagnosis.verdict.limit, expected, "{:?}", diagnosis.undecided);
            let sure = diagnosis.findings.iter().map(|f| f.confidence).max();
            assert!(sure < Some(Confidence::Certain), "{sure:?}");
        }
    }

    /// Either end may begin to count late, by as long as any effect lasts.
    #[test]
    fn a_late_start_of_either_end_does_not_change_the_verdict() {
        let acknowledged_late = || {
            let case = Case::path_rate().without_links().goodput(33.3e6).waits(0.001, 0.027);
            case.tcp(|tcp, _| (tcp.rtt_us, tcp.min_rtt_us) = (Some(70_000), Some(42_000)))
        };
        let slow = || Case::path_rate().waits(0.02, 0.0);
        let lossy = || Case::path_loss().wobble(0.0);
        type Make = fn() -> Case;
        let cases: [(Make, &str); 5] = [
            (acknowledged_late, "ack-path"),
            (slow, "path-rate"),
            (lossy, "path-loss"),
            (Case::receive_window, "receive-window"),
            (Case::sender_application, "sender-application"),
        ];
        for (make, expected) in cases {
            let verdict = diagnose(&make().evidence()).verdict;
            assert_eq!(verdict.limit, expected);
            for end in [EndName::Near, EndName::Far] {
                let late = diagnose(&make().began_late(end, 0.1).evidence()).verdict;
                assert_eq!((&late.limit, late.end), (&verdict.limit, verdict.end), "{end}");
            }
        }
    }

    #[test]
    fn the_reverse_direction_swaps_the_ends() {
        let mut evidence = Case::receive_window().evidence();
        std::mem::swap(&mut evidence.near, &mut evidence.far);
        evidence.sender_end = EndName::Far;
        // The exchanges were the other end's.
        evidence.clocks = goodput_model::Clocks::not_compared();
        let diagnosis = diagnose(&evidence);
        assert_eq!(
            (diagnosis.verdict.limit.as_str(), diagnosis.verdict.end),
            ("receive-window", Place::Near)
        );
        assert_eq!(diagnosis.findings[0].changes[0].setting.end, EndName::Near);
    }

    #[test]
    fn a_removed_cause_moves_its_witness() {
        let read = |case: Case, id: &str| diagnose(&case.evidence()).witnesses[id];
        let small = read(Case::shaper_burst(), "shaper-burst");
        let large = read(Case::shaper_burst().overlimits(0.02), "shaper-burst");
        assert!(small > 90.0 && large < 5.0, "{small} {large}");
        assert!(read(Case::receive_window(), "receive-window") > 90.0);
        assert_eq!(read(Case::healthy(), "receive-window"), 0.0);
    }
}
