//! The report of tuning: what was tried, what it gained, and what is proven.

use goodput_model::{
    ArmResult, Change, Comparison, EndName, Known, Missing, Purpose, Record, SettingRef, Tuning,
    TuningOutcome, TuningStep,
};
use goodput_settings::Setting;

use super::by_hand::{Host, at_its_end, at_the_far_end, setting_command};
use super::labelled::{line, lines};
use super::table::Table;
use super::{compare, mechanism, permanent, reached, style};
use goodput_model::shell;

/// How sure all that is proven is (docs/decisions/tuning.md).
const CERTAINTY: &str = "a change that does not help is called proven in at most 5 % of runs, however often it is compared with the start";

/// The whole report.
pub fn text(record: &Record) -> String {
    text_with(record, &|end| address(record, end))
}

/// The same for changes at hosts that `host` names by the end for which they stand. The record of a mere plan doesn't.
pub fn text_with(record: &Record, host: Host<'_>) -> String {
    text_with_keeping(record, host, &|out, open| keep(out, open, host))
}

/// The same for hosts that are gone.
pub fn text_of_lab(record: &Record) -> String {
    let host = |end| address(record, end);
    let keep = |out: &mut String, open: &[Change]| {
        let (of_application, of_host): (Vec<_>, Vec<_>) =
            open.iter().partition(|change| is_plan(&change.setting));
        lines(out, "to keep", of_application.into_iter().map(|change| keeping(change, &host)));
        let tune = "on a real host: goodput tune HOST --keep".to_owned();
        lines(out, "to keep", of_host.first().map(|_| tune));
    };
    text_with_keeping(record, &host, &keep)
}

/// How to save proven changes that aren't saved yet.
type Keep<'a> = &'a dyn Fn(&mut String, &[Change]);

fn text_with_keeping(record: &Record, host: Host<'_>, keep: Keep<'_>) -> String {
    let Some(tuning) = &record.tuning else { return String::new() };
    let mut out = String::from("\n");
    line(&mut out, "start", &reached::start(record, tuning.purpose));
    if let Some(comparison) = &record.comparison {
        whole(&mut out, tuning, comparison);
    }
    out += &tried(tuning);
    lines(&mut out, "not tried", not_tried(tuning));
    at_the_far_end(&mut out, refused(tuning), host);
    if tuning.is_plan_only() {
        let is_planned = |step: &&TuningStep| step.outcome == TuningOutcome::Planned;
        let planned = tuning.steps.iter().filter(is_planned);
        lines(&mut out, "undo", planned.filter_map(|step| undo(&step.change, host)));
    }
    match &tuning.proven[..] {
        // That nothing was tried stands below.
        [] if tuning.is_plan_only() => {}
        [] => line(&mut out, "proven", tuning.nothing()),
        proven => {
            lines(&mut out, "proven", proven.iter().map(assignment));
            line(&mut out, "certainty", CERTAINTY);
            match &tuning.kept_in[..] {
                // Either all are saved or none: only the combination is proven.
                [] => keep(&mut out, proven),
                files => kept(&mut out, proven, files, host),
            }
        }
    }
    lines(&mut out, "to try", reached::by_hand(record, tuning.purpose));
    line(&mut out, "stopped", &tuning.stopped);
    out + &compare::notes(record)
}

/// A row for each change; of a mere plan, without the results.
fn tried(tuning: &Tuning) -> String {
    if tuning.steps.is_empty() {
        return String::new();
    }
    let results = if tuning.is_plan_only() { 0 } else { 2 };
    let headings = ["change", "from", "proposed by", judged(tuning.purpose), "outcome"];
    let mut table = Table::new(&headings[..3 + results]);
    for step in &tuning.steps {
        let from = step.change.from.as_deref().unwrap_or(match is_plan(&step.change.setting) {
            true => "default",
            false => "unknown",
        });
        let (change, effect, outcome) = (assignment(&step.change), effect(step), outcome(step));
        let cells = [change.as_str(), from, &step.rule, &effect, &outcome];
        table.row(&cells[..3 + results]);
    }
    table.text()
}

/// What the first response of the comparisons is.
fn judged(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Throughput | Purpose::Balanced => "goodput",
        Purpose::Latency => "round trip under load",
        Purpose::Cpu => "CPU time per byte",
    }
}

/// The arm with the change.
fn changed(step: &TuningStep) -> Option<&ArmResult> {
    step.comparison.value()?.arms.get(1)
}

fn effect(step: &TuningStep) -> String {
    step.gained().unwrap_or_else(|| "–".into())
}

/// What the change makes worse, if its runs have shown that.
fn worse(step: &TuningStep) -> Option<String> {
    changed(step)?.responses.iter().find_map(|result| {
        let effect = result.against.as_ref().filter(|effect| effect.judgement.is_worse())?;
        let (name, burden) = (result.response.noun(), result.response.burden());
        Some(format!("not kept: {name} gets worse ({})", effect.difference_of(burden)))
    })
}

/// The result of one change, while others are still to be tried.
pub fn ended(step: &TuningStep) -> String {
    let result = why_not(step).map_or_else(|| outcome(step), ToString::to_string);
    format!("{}: {result}", assignment(&step.change))
}

/// Why a change was not tried, if so.
fn why_not(step: &TuningStep) -> Option<&Missing> {
    match &step.comparison {
        Known::Missing(why) => Some(why),
        Known::Value(_) => None,
    }
}

/// Each reason why changes were not tried, with these changes. The reason why nothing more is tried stands elsewhere.
fn not_tried(tuning: &Tuning) -> Vec<String> {
    let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
    for step in &tuning.steps {
        let Some(why) = why_not(step).filter(|why| why.missing != tuning.stopped) else { continue };
        // The change itself names its setting.
        let (why, named) = (why.to_string(), format!("{}: ", step.change.setting));
        let why = why.strip_prefix(&named).unwrap_or(&why);
        match reasons.iter_mut().find(|(known, _)| known == why) {
            Some((_, changes)) => changes.push(assignment(&step.change)),
            None => reasons.push((why.to_owned(), vec![assignment(&step.change)])),
        }
    }
    reasons.iter().map(|(why, changes)| format!("{}: {why}", changes.join(", "))).collect()
}

/// The changes that were refused, with their values.
fn refused(tuning: &Tuning) -> impl Iterator<Item = (&SettingRef, &str)> {
    let refused = tuning.steps.iter().filter(|step| step.outcome == TuningOutcome::NotPermitted);
    refused.map(|step| (&step.change.setting, step.change.to.as_str()))
}

fn assignment(Change { setting, to, .. }: &Change) -> String {
    format!("{setting}={to}")
}

fn outcome(step: &TuningStep) -> String {
    match step.outcome {
        TuningOutcome::Kept => style::good("kept"),
        TuningOutcome::NotBetter => worse(step).unwrap_or_else(|| step.outcome.to_string()),
        outcome => outcome.to_string(),
    }
}

/// What all that is kept reaches, against the start, and why.
fn whole(out: &mut String, tuning: &Tuning, comparison: &Comparison) {
    lines(out, "together", reached::together(tuning.purpose, comparison));
    let [base, arm, ..] = &comparison.arms[..] else { return };
    for (label, text) in mechanism::lines(base, arm) {
        line(out, label, &text);
    }
}

/// The commands that keep the proven changes, without colours; none if they are kept already.
pub fn to_keep(record: &Record) -> Vec<String> {
    let Some(tuning) = &record.tuning else { return Vec::new() };
    let open = tuning.proven.iter().filter(|_| tuning.kept_in.is_empty());
    let host = |end| address(record, end);
    open.map(|change| anstream::adapter::strip_str(&keeping(change, &host)).to_string()).collect()
}

fn address(record: &Record, end: EndName) -> Option<String> {
    let host = record.changed_hosts.iter().find(|host| host.end == end);
    host.map(|host| host.address.clone())
}

/// Where the proven changes are saved, and how to remove that.
fn kept(out: &mut String, proven: &[Change], files: &[String], host: Host<'_>) {
    let text = format!("now; after a reboot, these files keep it: {}", files.join(", "));
    line(out, "kept", &text);
    lines(out, "undo", undo_kept(proven, files, host));
}

/// The commands that save the proven changes.
fn keep(out: &mut String, open: &[Change], host: Host<'_>) {
    lines(out, "to keep", open.iter().map(|change| keeping(change, host)));
    let of_application = open.iter().filter(|change| is_plan(&change.setting));
    let of_application = of_application.map(|change| (&change.setting, change.to.as_str()));
    let forms = goodput_settings::to_keep(of_application, |_| None);
    lines(out, "for good", permanent::lines(&forms));
}

/// The commands that remove the files of each host, and that restore the old values now.
fn undo_kept(proven: &[Change], kept_in: &[String], host: Host<'_>) -> Vec<String> {
    let kept_at = |file: &String| Some(file.strip_prefix("ssh://")?.split_once(": ")?.0.to_owned());
    let mut hosts: Vec<Option<String>> = kept_in.iter().map(kept_at).collect();
    hosts.dedup();
    let removes = |host: Option<String>| {
        let on = host.map(|host| format!(" --on {}", shell::word(&format!("ssh://{host}"))));
        let on = on.unwrap_or_default();
        let command = style::strong(format!("goodput settings undo --saved{on}"));
        format!("{command}  # removes what was saved; the values stay until a reboot")
    };
    let restores = proven.iter().filter_map(|change| undo(change, host));
    hosts.into_iter().map(removes).chain(restores).collect()
}

fn is_plan(setting: &SettingRef) -> bool {
    goodput_settings::find_for(setting).is_ok_and(Setting::is_plan)
}

/// The command that makes a change and keeps it after a reboot.
fn keeping(Change { setting, to, .. }: &Change, host: Host<'_>) -> String {
    if is_plan(setting) {
        return format!("in the application: {setting}={to}");
    }
    let host = host(setting.end);
    let command = goodput_settings::command_to_keep(setting, to, host.as_deref());
    at_its_end(setting, host.as_deref(), &command)
}

/// The command that restores a setting's old value until the next boot; `None` if the change lasts only for the
/// measurement, or if the old value is unknown.
fn undo(Change { setting, from, .. }: &Change, host: Host<'_>) -> Option<String> {
    let from = from.as_deref().filter(|_| !is_plan(setting))?;
    Some(setting_command(setting, from, host))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(setting: &str, from: Option<&str>, to: &str) -> Change {
        let (setting, from) = (setting.parse().unwrap(), from.map(Into::into));
        Change { setting, from, to: to.into(), why: "because".into() }
    }

    fn step(change: Change, outcome: TuningOutcome, why: &str) -> TuningStep {
        let comparison = Known::missing(why.to_owned());
        TuningStep { change, rule: "send-buffer".into(), outcome, comparison }
    }

    fn report(
        steps: Vec<TuningStep>,
        proven: Vec<Change>,
        kept_in: &[&str],
        stopped: &str,
    ) -> String {
        let kept_in = kept_in.iter().map(ToString::to_string).collect();
        report_of(Tuning { steps, proven, kept_in, ..tuning(stopped) })
    }

    /// Without a step.
    fn tuning(stopped: &str) -> Tuning {
        Tuning {
            purpose: Purpose::Throughput,
            min_gain_percent: 3.0,
            steps: Vec::new(),
            proven: Vec::new(),
            kept_in: Vec::new(),
            to_keep: Vec::new(),
            run_length: None,
            plan_only: Some(false),
            stopped: stopped.into(),
        }
    }

    fn report_of(tuning: Tuning) -> String {
        let record = include_str!("example/record.json");
        let mut record: Record = serde_json::from_str(record).unwrap();
        record.tuning = Some(tuning);
        anstream::adapter::strip_str(&text(&record)).to_string()
    }

    fn wmem() -> Change {
        change("sysctl.net.ipv4.tcp_wmem", Some("4096 16384 65536"), "4096 16384 4194304")
    }

    #[test]
    fn a_plan_says_each_thing_once() {
        const WHY: &str = "this is only a plan";
        let planned = [wmem(), change("socket.sndbuf", None, "4M")];
        let steps = planned.map(|change| step(change, TuningOutcome::Planned, WHY)).to_vec();
        let said = report_of(Tuning { plan_only: Some(true), steps, ..tuning(WHY) });
        assert_eq!(said.matches(WHY).count(), 1, "{said}");
        assert_eq!(said.matches("tcp_wmem=4096 16384 4194304").count(), 1, "{said}");
        assert_eq!(said.matches("settings set").count(), 1, "{said}");
        for absent in ["outcome", "not tried", "proven"] {
            assert!(!said.contains(absent), "{absent} in {said}");
        }
    }

    #[test]
    fn a_reason_does_not_name_the_setting_again() {
        let why = "sysctl.net.ipv4.tcp_wmem: not permitted to change it; it needs root";
        let said =
            report(vec![step(wmem(), TuningOutcome::NotPermitted, why)], Vec::new(), &[], "x");
        let line =
            "not tried   sysctl.net.ipv4.tcp_wmem=4096 16384 4194304: not permitted to change it";
        assert!(said.contains(line), "{said}");
    }

    #[test]
    fn what_was_cut_short_before_a_change_was_made_has_nothing_to_undo() {
        let steps = || {
            let chunk = change("chunk", None, "1M");
            let refused = step(chunk, TuningOutcome::NotPermitted, "missing CAP_NET_ADMIN");
            vec![refused, step(wmem(), TuningOutcome::Planned, "it was interrupted")]
        };
        let said = report(steps(), Vec::new(), &[], "it was interrupted");
        assert!(!said.contains("undo"), "{said}");
        for fact in ["outcome", "not tried", "nothing: no change was tried"] {
            assert!(said.contains(fact), "{fact} in {said}");
        }
        let plan = report_of(Tuning { plan_only: Some(true), steps: steps(), ..tuning("a plan") });
        assert!(plan.contains("undo") && !plan.contains("outcome"), "{plan}");
    }

    #[test]
    fn what_was_not_tried_for_one_reason_stands_on_one_line() {
        let steps = vec![
            step(wmem(), TuningOutcome::NotPermitted, "missing CAP_NET_ADMIN"),
            step(change("chunk", None, "1M"), TuningOutcome::Planned, "the time was over"),
            step(
                change("mover", None, "splice"),
                TuningOutcome::NotPermitted,
                "missing CAP_NET_ADMIN",
            ),
        ];
        let said = report(steps, Vec::new(), &[], "the time was over");
        assert_eq!(said.matches("missing CAP_NET_ADMIN").count(), 1, "{said}");
        assert_eq!(said.matches("the time was over").count(), 1, "{said}");
        assert!(said.contains("4194304, mover=splice: missing"), "{said}");
    }

    #[test]
    fn what_the_far_end_refuses_can_be_set_there_by_hand() {
        let far = change("far:sysctl.net.ipv4.tcp_rmem", None, "4096 131072 8388608");
        let refused = [far, wmem()].map(|change| {
            step(change, TuningOutcome::NotPermitted, "settings of this host are for its keys")
        });
        let said = report(refused.to_vec(), Vec::new(), &[], "nothing is left to try");
        let command = "by hand     at the far end: goodput settings set 'sysctl.net.ipv4.tcp_rmem=4096 131072 8388608'";
        assert!(said.contains(command), "{said}");
        assert_eq!(said.matches("settings set").count(), 1, "root here is another matter: {said}");
    }

    #[test]
    fn the_commands_that_keep_a_change_have_no_colours() {
        let tuning = |kept_in: &[&str]| Tuning {
            proven: vec![wmem(), change("chunk", None, "1M")],
            kept_in: kept_in.iter().map(ToString::to_string).collect(),
            ..tuning("nothing is left to try")
        };
        let record = |kept_in: &[&str]| {
            let record = include_str!("example/record.json");
            let mut record: Record = serde_json::from_str(record).unwrap();
            record.tuning = Some(tuning(kept_in));
            record
        };
        let set = "goodput settings set --save 'sysctl.net.ipv4.tcp_wmem=4096 16384 4194304'";
        assert_eq!(to_keep(&record(&[])), [set, "in the application: chunk=1M"]);
        assert!(to_keep(&record(&["/etc/sysctl.d/90-goodput.conf"])).is_empty());
        let by_ssh = goodput_model::ChangedHost {
            end: EndName::Near,
            address: "ssh://root@a".into(),
            system: "Linux".into(),
        };
        let there = Record { changed_hosts: vec![by_ssh], ..record(&[]) };
        assert_eq!(to_keep(&there)[0], format!("{set} --on ssh://root@a"));
        let lab = text_of_lab(&record(&[]));
        assert!(!lab.contains("settings set --save"), "its hosts are gone: {lab}");
        for line in ["in the application: chunk=1M", "on a real host: goodput tune HOST --keep"] {
            assert!(lab.contains(line), "{lab}");
        }
    }

    #[test]
    fn what_is_kept_has_its_file_and_the_commands_that_undo_it() {
        let file = "/etc/sysctl.d/90-goodput.conf";
        let said = report(Vec::new(), vec![wmem()], &[file], "nothing is left to try");
        let restores = "goodput settings set 'sysctl.net.ipv4.tcp_wmem=4096 16384 65536'";
        for fact in [file, "goodput settings undo --saved  #", restores] {
            assert!(said.contains(fact), "{fact} in {said}");
        }
        let there = report(
            Vec::new(),
            vec![wmem()],
            &["ssh://root@b: /etc/sysctl.conf"],
            "nothing is left to try",
        );
        assert!(there.contains("undo --saved --on ssh://root@b  #"), "{there}");
        assert_eq!(there.matches(restores).count(), 1, "{there}");
    }
}
