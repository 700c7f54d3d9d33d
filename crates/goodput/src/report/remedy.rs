//! What to do about a finding: a command to paste.

use goodput_diagnose::probes::names_rival;
use goodput_model::{Change, EndName, Finding, Kind, Record, SettingRef};
use goodput_settings::Setting;

use super::labelled::{line, lines};
use super::{permanent, style};
use crate::args::MeasureArgs;
use crate::shell;

/// A finding's remedies, and how to make the change permanent.
pub(super) fn all(out: &mut String, finding: &Finding) {
    add(out, finding, usize::MAX, change);
}

/// The first remedy alone.
pub(super) fn first(out: &mut String, finding: &Finding) {
    lines(out, "  to try", remedies(finding, change).into_iter().take(1));
}

/// All of them after a test: the best remedy alone unless `every` is wanted, and what else the cause could be.
pub(super) fn of_test(out: &mut String, record: &Record, finding: &Finding, every: bool) {
    let count = if every { usize::MAX } else { 1 };
    add(out, finding, count, |change| {
        repeated(record, change).unwrap_or_else(|| self::change(change))
    });
}

fn add(out: &mut String, finding: &Finding, count: usize, command: impl Fn(&Change) -> String) {
    lines(out, "  to try", remedies(finding, command).into_iter().take(count));
    lines(out, "  for good", permanent::lines(&finding.permanent));
    let rivals = finding.advice.iter().filter(|advice| names_rival(advice));
    rivals.for_each(|rival| line(out, "  or else", rival));
}

/// The changes, then the advice that is not about another cause.
fn remedies(finding: &Finding, command: impl Fn(&Change) -> String) -> Vec<String> {
    let advice = finding.advice.iter().filter(|advice| !names_rival(advice)).cloned();
    finding.changes.iter().map(command).chain(advice).collect()
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
    format!("{}   # {place}{why}", style::strong(format!("goodput settings set {assignment}")))
}

/// The same test with another option. `None` if the change is not an option, or the transfer is another program's.
fn repeated(record: &Record, change: &Change) -> Option<String> {
    if record.kind == Kind::Attach || !is_option(&change.setting) {
        return None;
    }
    let mut plan = record.plan.clone();
    goodput_settings::apply_to_plan(&change.setting, &change.to, &mut plan).ok()?;
    let target = shell::word(&record.target);
    let words = MeasureArgs::words(&plan, record.fetches.is_some());
    let command = style::strong(format!("goodput test {target}{words}"));
    Some(format!("{command}   # {}", change.why))
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
    fn a_setting_of_the_far_host_is_changed_there() {
        let text = shown(to("far:sysctl.net.ipv4.tcp_sack", "1"), false);
        let command =
            "goodput settings set sysctl.net.ipv4.tcp_sack=1   # on the far host: less work";
        assert!(text.contains(command), "{text}");
    }
}
