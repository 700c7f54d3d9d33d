//! The report of one measurement: number, ceiling, verdict, evidence, remedy, proof. In this order.

use goodput_diagnose::of_sockets;
use goodput_model::{
    BitRate, Change, Direction, DirectionResult, EndName, Finding, Kind, Known, Place, Record,
    Seconds, Transport, Verdict,
};

use super::labelled::{line, lines, undecided};
use super::{
    account, bar, captured, datagrams, fetches, host_limits, latency, losses, mounts, movers,
    mptcp, path_steps, peer, placement, remedy, storage, style, thinned,
};
use crate::args::MeasureArgs;
use goodput_model::shell;

/// What to show beyond the usual.
#[derive(Debug, Clone, Copy, Default)]
pub struct Detail {
    /// Rules that could not decide.
    pub undecided: bool,
    /// Details for experts: every step of the path, even if nothing was lost.
    pub verbose: bool,
    /// The reason for an incomplete result is printed elsewhere, as an error.
    pub failure_is_reported: bool,
}

/// The whole report.
pub fn text(record: &Record, detail: Detail) -> String {
    let mut out = String::new();
    number(&mut out, record);
    peer::lines(record).iter().for_each(|text| line(&mut out, "peer", text));
    if record.result.directions.len() > 1 {
        record.result.directions.iter().for_each(|d| direction(&mut out, d));
    }
    fetches::lines(record).iter().for_each(|(label, text)| line(&mut out, label, text));
    mounts::lines(record).iter().for_each(|(label, text)| line(&mut out, label, text));
    costs(&mut out, record);
    datagrams(&mut out, record, detail.verbose);
    round_trips(&mut out, record);
    movers::phrases(record).iter().for_each(|text| line(&mut out, "mover", text));
    mptcp::phrase(record).iter().for_each(|text| line(&mut out, "mptcp", text));
    placement::phrases(record).iter().for_each(|text| line(&mut out, "ran on", text));
    files(&mut out, record);
    verdict(&mut out, record, &record.verdict, detail.verbose);
    if let Some(reverse) = &record.verdict_reverse {
        verdict(&mut out, record, reverse, detail.verbose);
    }
    if detail.verbose {
        accounts(&mut out, record);
    }
    contributing(&mut out, record);
    probes(&mut out, record);
    lost(&mut out, record, detail.verbose);
    let near = record.capture.iter().map(|own| captured::lines(own, EndName::Near));
    let far = record.far_capture.iter().filter_map(Known::value);
    let far = far.map(|own| captured::lines(own, EndName::Far));
    near.chain(far).for_each(|shown| lines(&mut out, "capture", shown));
    if let Some(limits) = &record.host_limits {
        let goodput = record.result.goodput_bits_per_s;
        let shown = host_limits::lines(limits, goodput, detail.verbose);
        shown.into_iter().for_each(|(label, texts)| lines(&mut out, label, texts));
    }
    record.thinned.iter().for_each(|thinned| line(&mut out, "detail", &thinned::phrase(thinned)));
    doubts(&mut out, record, detail.failure_is_reported);
    if detail.undecided {
        undecided(&mut out, &record.undecided);
    }
    out
}

fn round_trips(out: &mut String, record: &Record) {
    if let Some(latency) = &record.latency {
        latency::lines(latency).iter().for_each(|(label, text)| line(out, label, text));
    }
}

fn files(out: &mut String, record: &Record) {
    for storage in record.result.directions.iter().filter_map(|d| d.storage.as_ref()) {
        storage::lines(storage).iter().for_each(|(label, text)| line(out, label, text));
    }
}

fn number(out: &mut String, record: &Record) {
    let result = &record.result;
    let precision = match &result.precision_percent {
        Known::Value(percent) => format!("±{percent:.1} %"),
        // The reason is in the record; usually the run was too short.
        Known::Missing(_) => "precision unknown".into(),
    };
    // Each of two directions has its own, which stands with it.
    let of_all = (result.directions.len() < 2).then_some(&result.ceiling_bits_per_s);
    let ceiling = of_ceiling(result.goodput_bits_per_s, of_all);
    let goodput = style::strong(result.goodput_bits_per_s);
    let counted = match (record.kind, record.plan.direction) {
        // For another program's transfer, only this end's kernel counters are known.
        (Kind::Attach, Direction::Send) => "acknowledged",
        (_, Direction::Send) => peer::counted(record),
        _ => "received",
    };
    let part = if record.incomplete.is_some() { ", incomplete" } else { "" };
    let duration = Seconds(result.duration_s);
    let text = format!("{goodput}   {counted}, {duration}{part}, {precision}{ceiling}");
    line(out, "goodput", &text);
    if let (Some(_), Known::Missing(why)) = (&record.fetches, &result.ceiling_bits_per_s) {
        line(out, "ceiling", &format!("unknown: {}", why.missing));
    }
}

/// `   95 % of the 95.6 Mbit/s this path could carry`; nothing if that is not known.
fn of_ceiling(goodput: BitRate, ceiling: Option<&Known<BitRate>>) -> String {
    match ceiling.and_then(Known::value) {
        Some(ceiling) if ceiling.0 > 0.0 => {
            let percent = goodput.0 / ceiling.0 * 100.0;
            format!("   {percent:.0} % of the {ceiling} this path could carry")
        }
        _ => String::new(),
    }
}

/// The direction in which `sender` sends.
fn direction_name(sender: EndName) -> &'static str {
    match sender {
        EndName::Near => "near → far",
        EndName::Far => "far → near",
    }
}

fn direction(out: &mut String, direction: &DirectionResult) {
    let label = direction_name(direction.sender);
    let goodput = direction.goodput_bits_per_s;
    let ceiling = of_ceiling(goodput, direction.ceiling_bits_per_s.as_ref());
    let text = format!("{goodput}   {}", transfer(direction));
    line(out, label, &format!("{}{ceiling}", text.trim_end()));
}

fn costs(out: &mut String, record: &Record) {
    let result = &record.result;
    let cpu = |percent: &Known<f64>| match percent {
        Known::Value(percent) => format!("{percent:.0} %"),
        Known::Missing(_) => "unknown".into(),
    };
    let mut text =
        format!("near {}   far {}", cpu(&result.near.cpu_percent), cpu(&result.far.cpu_percent));
    if let [only] = &result.directions[..] {
        text = format!("{text}      {}", transfer(only)).trim_end().into();
    }
    line(out, "cpu", &text);
}

/// What happened to the datagrams of each direction, which a single direction needs no name for.
fn datagrams(out: &mut String, record: &Record, with_pace: bool) {
    let directions = &record.result.directions;
    for direction in directions.iter().filter(|_| record.plan.transport == Transport::Udp) {
        let name = match directions.len() {
            1 => String::new(),
            _ => format!("{}   ", direction_name(direction.sender)),
        };
        for (label, text) in datagrams::lines(&record.plan, direction, with_pace) {
            line(out, label, &format!("{name}{text}"));
        }
    }
}

/// Round-trip time and retransmits, as far as they are known.
fn transfer(direction: &DirectionResult) -> String {
    let mut parts = Vec::new();
    if let (Known::Value(rtt), Known::Value(min)) = (&direction.rtt_us, &direction.min_rtt_us) {
        parts.push(format!("rtt {} (smallest {})", Seconds::of_us(*rtt), Seconds::of_us(*min)));
    }
    if let Known::Value(retransmits) = &direction.retransmits {
        parts.push(format!("retransmits {retransmits}"));
    }
    parts.join("   ")
}

fn verdict(out: &mut String, record: &Record, verdict: &Verdict, verbose: bool) {
    let limit = match verdict.limit.as_str() {
        Verdict::NO_LIMIT if record.incomplete.is_some() => verdict.summary.clone(),
        Verdict::NO_LIMIT => style::good(&verdict.summary),
        _ => style::bad(&verdict.summary),
    };
    let host = match verdict.end {
        Place::Near => "near host",
        Place::Far => "far host",
        Place::Path => "on the path",
    };
    // A single direction needs no name; with two, each verdict names its direction.
    let name =
        record.verdict_reverse.as_ref().map(|_| format!("   {}", direction_name(verdict.sender)));
    let name = name.unwrap_or_default();
    if verdict.limit == Verdict::NO_LIMIT {
        line(out, "limit", &format!("{limit}{name}"));
    } else {
        line(out, "limited by", &format!("{limit}      {host}{name}"));
    }
    let finding = record.findings.iter().find(|f| f.rule == verdict.limit && f.end == verdict.end);
    if let Some(finding) = finding.filter(|finding| finding.probability.value().is_some()) {
        line(out, "  sure", &finding.sureness());
    }
    if let Known::Value(account) = &verdict.account {
        line(out, "  time", &bar::bar(account));
    }
    if let Some(finding) = finding {
        explain(out, record, finding, verbose);
    }
}

fn explain(out: &mut String, record: &Record, finding: &Finding, verbose: bool) {
    let evidence = finding.evidence.iter().map(|seen| format!("{}: {}", seen.end, seen.text));
    lines(out, "  evidence", evidence);
    match &finding.predicted_bits_per_s {
        Known::Value(predicted) => {
            line(out, "  then", &format!("about {predicted}, the next known limit"));
        }
        Known::Missing(why) if verbose => line(out, "  then", &format!("unknown: {why}")),
        Known::Missing(_) => {}
    }
    // Both directions may have the same remedy.
    let remedy = remedy(record, finding, verbose);
    if !out.contains(&remedy) {
        out.push_str(&remedy);
    }
}

/// What to change, and the comparison that proves it.
fn remedy(record: &Record, finding: &Finding, verbose: bool) -> String {
    let mut out = String::new();
    remedy::of_test(&mut out, record, finding, verbose);
    // A proof needs goodput at the other end, but watching another program's transfer doesn't show
    // whether it runs there.
    if let Some(change) = proof(&finding.changes)
        && record.kind != Kind::Attach
    {
        let (target, change) = (shell::word(&record.target), shell::word(&change.as_argument()));
        let command = format!(
            "goodput compare {target} {change}{}",
            MeasureArgs::words(&record.plan, record.fetches.is_some())
        );
        line(&mut out, "  prove it", &style::strong(command));
    }
    out
}

/// The change to prove: the best one, or what does the same for the sockets of the measurement, which needs no privilege.
fn proof(changes: &[Change]) -> Option<&Change> {
    let best = changes.first()?;
    let same = of_sockets(best);
    Some(same.and_then(|same| changes.iter().find(|one| one.is_same_step(&same))).unwrap_or(best))
}

fn accounts(out: &mut String, record: &Record) {
    let verdicts = std::iter::once(&record.verdict).chain(&record.verdict_reverse);
    for verdict in verdicts {
        if let Some(text) = verdict.account.value().and_then(account::timeline) {
            line(out, "timeline", &text);
        }
        let lost = verdict.loss.value().map(losses::lines).unwrap_or_default();
        lost.iter().for_each(|(label, text)| line(out, label, text));
    }
}

/// The other findings; one that both ends have is reported once.
fn contributing(out: &mut String, record: &Record) {
    let shown = |finding: &Finding| {
        let main = |v: &Verdict| finding.rule == v.limit && finding.end == v.end;
        main(&record.verdict) || record.verdict_reverse.as_ref().is_some_and(main)
    };
    let mut causes: Vec<(&Finding, Vec<Place>)> = Vec::new();
    for other in record.findings.iter().filter(|f| !shown(f)) {
        let is_same = |first: &Finding| first.rule == other.rule && first.summary == other.summary;
        match causes.iter_mut().find(|(first, _)| is_same(first)) {
            Some((_, places)) if places.contains(&other.end) => {}
            Some((_, places)) => places.push(other.end),
            None => causes.push((other, vec![other.end])),
        }
    }
    lines(out, "also", causes.iter().map(|(cause, places)| also(cause, places)));
}

fn also(cause: &Finding, places: &[Place]) -> String {
    let places: Vec<_> = places.iter().map(ToString::to_string).collect();
    format!("{} ({}, {})", cause.summary, places.join(" and "), cause.rule)
}

fn lost(out: &mut String, record: &Record, every_step: bool) {
    let directions = record.result.directions.iter().filter(|d| !d.path_steps.is_empty());
    let steps: Vec<_> = directions.clone().map(|d| &d.path_steps[..]).collect();
    if let (false, false, Some(text)) =
        (every_step, steps.is_empty(), path_steps::nothing_lost(&steps))
    {
        return line(out, "lost", &text);
    }
    for direction in directions {
        let (label, table) = ("lost", path_steps::lines(&direction.path_steps, every_step));
        match record.result.directions.len() {
            1 => lines(out, label, table),
            _ => {
                let sender = format!("of what the {} host sent:", direction.sender);
                lines(out, label, [sender].into_iter().chain(table));
            }
        }
    }
}

fn probes(out: &mut String, record: &Record) {
    for run in &record.probes {
        let answer = match &run.answer {
            Known::Value(rule) => style::strong(rule).to_string(),
            Known::Missing(why) => format!("no answer: {why}"),
        };
        line(out, "probe", &format!("{}   {answer}", run.text));
    }
}

fn doubts(out: &mut String, record: &Record, but_failure: bool) {
    let is_failure = |doubt: &&String| record.incomplete.as_ref() == Some(doubt);
    for doubt in record.doubts.iter().filter(|doubt| !(but_failure && is_failure(doubt))) {
        line(out, "note", doubt);
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples;
    use super::*;

    #[test]
    fn a_failure_is_in_the_report_unless_it_is_reported_elsewhere_and_the_number_says_that_it_is_part()
     {
        let mut record: Record =
            serde_json::from_str(include_str!("example/record.json")).expect("a record");
        record.incomplete = Some("cut short after 1.2 s: it is gone".into());
        record.doubts = ["a doubt".into()].into_iter().chain(record.incomplete.clone()).collect();
        for failure_is_reported in [false, true] {
            let text = text(&record, Detail { failure_is_reported, ..Detail::default() });
            assert_eq!(
                text.matches("cut short").count(),
                usize::from(!failure_is_reported),
                "{text}"
            );
            assert!(text.contains("a doubt") && text.contains("s, incomplete, "), "{text}");
        }
    }

    #[test]
    fn two_verdicts_with_one_remedy_show_it_once() {
        let mut record: Record =
            serde_json::from_str(include_str!("example/record.json")).expect("a record");
        record.verdict_reverse = Some(record.verdict.clone());
        let text = text(&record, Detail::default());
        for (label, times) in [("limited by", 2), ("to try", 1), ("prove it", 1)] {
            assert_eq!(text.matches(label).count(), times, "{label}: {text}");
        }
    }

    #[test]
    fn a_verdict_without_a_probability_shows_none() {
        let mut record: Record =
            serde_json::from_str(include_str!("example/record.json")).expect("a record");
        let sure = |record: &Record| text(record, Detail::default()).contains("  sure ");
        record.findings[0].probability = Known::Value(0.9);
        assert!(sure(&record));
        record.findings[0].probability = Known::missing("an older version");
        assert!(!sure(&record));
    }

    #[test]
    fn the_readme_shows_a_report_as_it_is_printed() {
        let record: Record =
            serde_json::from_str(include_str!("example/record.json")).expect("a record");
        let report = text(&record, Detail::default());
        examples::assert_shown("README.md", "goodput test nas", &report);
    }
}
