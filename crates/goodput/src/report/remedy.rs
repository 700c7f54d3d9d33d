//! What to do about a finding: a command to paste.

use std::fmt::Display;

use goodput_diagnose::probes::names_rival;
use goodput_diagnose::remedy::{Again, WHY};
use goodput_model::{Change, EndName, Finding, Kind, Plan, Record, SettingRef};
use goodput_settings::Setting;

use super::labelled::{line, lines};
use super::{permanent, style};
use crate::args::{MeasureArgs, Words};
use goodput_model::shell;

/// A finding's remedies, and how to make the change permanent.
pub(super) fn all(out: &mut String, finding: &Finding) {
    add(out, finding, usize::MAX, None);
}

/// The first remedy alone.
pub(super) fn first(out: &mut String, finding: &Finding) {
    lines(out, "  to try", remedies(finding, None).into_iter().take(1));
}

/// All of them after a test: the best remedy alone unless `every` is wanted, and what else the cause could be.
pub(super) fn of_test(out: &mut String, record: &Record, finding: &Finding, every: bool) {
    let count = if every { usize::MAX } else { 1 };
    // Another program's transfer can't be repeated.
    add(out, finding, count, Some(record).filter(|record| record.kind != Kind::Attach));
}

/// What to do by hand about a finding of a test.
pub(super) fn by_hand(record: &Record, finding: &Finding) -> Vec<String> {
    remedies(finding, Some(record))
}

fn add(out: &mut String, finding: &Finding, count: usize, test: Option<&Record>) {
    lines(out, "  to try", remedies(finding, test).into_iter().take(count));
    lines(out, "  for good", permanent::lines(&finding.permanent));
    let rivals = finding.advice.iter().filter(|advice| names_rival(advice));
    rivals.for_each(|rival| line(out, "  or else", rival));
}

/// The changes, then the advice that is not about another cause. Of a `test`, with its own words where it is to be
/// repeated.
fn remedies(finding: &Finding, test: Option<&Record>) -> Vec<String> {
    let changed = |change: &Change| {
        test.and_then(|test| repeated(test, change)).unwrap_or_else(|| self::change(change))
    };
    let advice = finding.advice.iter().filter(|advice| !names_rival(advice));
    finding.changes.iter().map(changed).chain(advice.map(|advice| advised(test, advice))).collect()
}

/// Advice as it is, or its command and why.
fn advised(test: Option<&Record>, advice: &str) -> String {
    let Some((command, why)) = advice.split_once(WHY) else { return advice.into() };
    let (again, test) = match (Again::of(command), test) {
        (None, _) => return pasted(command, why),
        (Some(_), None) => return format!("{command}: {why}"),
        (Some(again), Some(test)) => (again, test),
    };
    let words = words(test, &test.plan);
    let words = match again {
        Again::With(option) => words.with(option),
        Again::Without(option) => words.without(option),
    };
    pasted(tested(test, &words), why)
}

fn pasted(command: impl Display, why: &str) -> String {
    format!("{}{WHY}{why}", style::strong(command))
}

/// The command that makes a change at the end that has the setting, with its reason. An option of a measurement is
/// described.
pub(super) fn change(change: &Change) -> String {
    let Change { setting, to, why, .. } = change;
    if is_option(setting) {
        return change.to_string();
    }
    let near = SettingRef { end: EndName::Near, ..setting.clone() };
    let assignment = shell::word(&format!("{near}={to}"));
    let place = if setting.end == EndName::Far { "on the far host: " } else { "" };
    pasted(format!("goodput settings set {assignment}"), &format!("{place}{why}"))
}

/// The same test with another option. `None` if the change is not an option.
fn repeated(test: &Record, change: &Change) -> Option<String> {
    if !is_option(&change.setting) {
        return None;
    }
    let mut plan = test.plan.clone();
    goodput_settings::apply_to_plan(&change.setting, &change.to, &mut plan).ok()?;
    Some(pasted(tested(test, &words(test, &plan)), &change.why))
}

fn words(test: &Record, plan: &Plan) -> Words {
    MeasureArgs::words(plan, test.fetches.is_some())
}

fn tested(test: &Record, words: &Words) -> String {
    format!("goodput test {}{words}", shell::word(&test.target))
}

fn is_option(setting: &SettingRef) -> bool {
    goodput_settings::find_for(setting).is_ok_and(Setting::is_plan)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(change: Change, every: bool) -> String {
        let mut record: Record =
            serde_json::from_str(include_str!("example/record.json")).expect("a record");
        let mut finding = record.findings.swap_remove(0);
        finding.changes.insert(0, change);
        finding.advice = vec!["could also be policer".into()];
        let mut out = String::new();
        of_test(&mut out, &record, &finding, every);
        anstream::adapter::strip_str(&out).to_string()
    }

    fn to(setting: &str, to: &str) -> Change {
        let setting = setting.parse().expect("a setting");
        Change { setting, from: None, to: to.into(), why: "less work".into() }
    }

    #[test]
    fn the_first_remedy_is_a_command_and_a_rival_is_none() {
        let option = shown(to("mover", "sendfile"), false);
        assert!(
            option.contains("to try    goodput test nas --mover sendfile   # less work"),
            "{option}"
        );
        assert!(option.contains("\n  or else   could also be policer\n"), "{option}");
        let [one, every] = [false, true].map(|every| shown(to("mover", "sendfile"), every));
        assert!(
            !one.contains("goodput settings set qdisc")
                && every.contains("goodput settings set qdisc")
        );
    }

    #[test]
    fn advice_to_repeat_the_test_is_the_whole_command() {
        let mut record: Record =
            serde_json::from_str(include_str!("example/record.json")).expect("a record");
        record.plan.rate_bits_per_s = Some(goodput_model::BitRate(2e7));
        let shown = |again: Again<'_>| {
            let text = advised(Some(&record), &format!("{again}{WHY}it holds the sender"));
            anstream::adapter::strip_str(&text).to_string()
        };
        assert_eq!(shown(Again::Without("--rate")), "goodput test nas   # it holds the sender");
        let faster = "goodput test nas --rate 97mbit   # it holds the sender";
        assert_eq!(shown(Again::With("--rate 97mbit")), faster);
        assert_eq!(advised(None, "use another cable"), "use another cable");
        let unknown =
            advised(None, &format!("{}{WHY}it holds the sender", Again::Without("--rate")));
        assert_eq!(unknown, "the same test without --rate: it holds the sender");
    }

    #[test]
    fn a_setting_of_the_far_host_is_changed_there() {
        let text = shown(to("far:sysctl.net.ipv4.tcp_sack", "1"), false);
        let command =
            "goodput settings set sysctl.net.ipv4.tcp_sack=1   # on the far host: less work";
        assert!(text.contains(command), "{text}");
    }
}
