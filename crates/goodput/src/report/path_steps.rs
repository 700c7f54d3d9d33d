//! Where payload was lost: its path from application to application, a line for each step.

use std::collections::BTreeSet;

use goodput_model::{Step, StepName, StepUnit};

use super::labelled;
use super::table::Table;

/// The part of the path to show.
pub fn lines(steps: &[Step], every_step: bool) -> Vec<String> {
    match nothing_lost(&[steps]) {
        Some(text) if !every_step => vec![text],
        _ => table(steps),
    }
}

/// One line, if no counter shows a loss on any of these paths; counters that could not be read prove nothing.
pub fn nothing_lost(paths: &[&[Step]]) -> Option<String> {
    let mut steps = paths.iter().flat_map(|steps| steps.iter());
    if steps.any(|step| step.dropped.value().is_some_and(|count| *count > 0)) {
        return None;
    }
    let unseen_of = |steps: &&[Step]| {
        let unseen =
            steps.iter().filter(|step| drops(step, steps) && step.dropped.value().is_none());
        unseen.map(Step::label).collect::<Vec<_>>()
    };
    let unseen: BTreeSet<_> = paths.iter().flat_map(unseen_of).collect();
    Some(match unseen.is_empty() {
        true => "nothing, according to every counter on the path".into(),
        false => {
            let unseen = unseen.into_iter().collect::<Vec<_>>().join(", ");
            format!("nothing that was counted; unknown: {unseen}")
        }
    })
}

/// Whether a step can drop anything. Programs can't. The sender's socket, at the end where the path begins, waits
/// instead, unless a firewall rule drops what it sends.
fn drops(step: &Step, steps: &[Step]) -> bool {
    let at_sender = steps.first().is_some_and(|first| first.place == step.place);
    match step.name {
        StepName::Application => false,
        StepName::Socket => !at_sender || step.dropped.value().is_some(),
        _ => true,
    }
}

fn table(steps: &[Step]) -> Vec<String> {
    let mut table = Table::new(&["", "in", "out", "lost", "unit", "counted by"]);
    for (at, step) in steps.iter().enumerate() {
        let dropped = match drops(step, steps) {
            true => step.unit.amount(&step.dropped),
            false => String::new(),
        };
        // The payload begins at the first step and ends at the last one.
        let entered = if at == 0 { String::new() } else { step.unit.amount(&step.entered) };
        let is_last = at + 1 == steps.len();
        let left = if is_last { String::new() } else { step.unit.amount(&step.left) };
        let lost = step.dropped.value();
        let by = if lost.is_some() { counter(step) } else { "" };
        let cells = [&step.label(), &entered, &left, &dropped, &step.unit.to_string(), by];
        match lost.is_some_and(|count| *count > 0) {
            true => table.bad_row(&cells),
            false => table.row(&cells),
        }
    }
    table.beside(labelled::WIDTH_CHARS).lines().map(Into::into).collect()
}

/// The source of the number of lost packets.
fn counter(step: &Step) -> &'static str {
    match (step.name, step.unit) {
        (StepName::Application, ..) => "",
        (StepName::Socket, StepUnit::Segments) => "ss -m: d, less duplicates",
        (StepName::Socket, ..) => "ss -m: d",
        (StepName::Qdisc, ..) => "tc -s qdisc",
        (StepName::Device, ..) => "ip -s -s link",
        (StepName::Path, StepUnit::Datagrams) => "sequence numbers",
        (StepName::Path, ..) => "retransmits",
        (StepName::Backlog, ..) => "softnet_stat",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::{Known, Place};

    fn made(name: StepName, unit: StepUnit, left: Known<u64>, dropped: Known<u64>) -> Step {
        Step { place: Place::Near, name, unit, entered: Known::missing("-"), left, dropped }
    }

    fn plain(steps: &[Step], every_step: bool) -> String {
        anstream::adapter::strip_str(&lines(steps, every_step).join("\n")).to_string()
    }

    #[test]
    fn a_loss_shows_every_step_with_its_unit_and_counter() {
        let unseen = || Known::missing("not seen");
        let steps = [
            made(StepName::Application, StepUnit::Bytes, Known::Value(1_200_000_000), unseen()),
            made(StepName::Qdisc, StepUnit::Packets, unseen(), unseen()),
            made(StepName::Device, StepUnit::Packets, Known::Value(829_000), Known::Value(3)),
        ];
        let text = plain(&steps, false);
        let row = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(row("near app"), "1.20 GB payload", "{text}");
        assert_eq!(row("near qdisc"), "? ? ? packets", "{text}");
        assert!(row("near device").starts_with("? 3 packets"), "{text}");
    }

    #[test]
    fn without_a_loss_one_line_says_what_is_unknown() {
        let steps = |dropped| {
            let unseen = || Known::missing("not seen");
            [
                made(StepName::Application, StepUnit::Bytes, Known::Value(5), unseen()),
                made(StepName::Socket, StepUnit::Segments, Known::Value(5), unseen()),
                made(StepName::Qdisc, StepUnit::Packets, Known::Value(5), dropped),
            ]
        };
        assert_eq!(
            plain(&steps(Known::Value(0)), false),
            "nothing, according to every counter on the path"
        );
        let unseen = plain(&steps(Known::missing("no qdisc")), false);
        assert_eq!(unseen, "nothing that was counted; unknown: near qdisc");
        assert!(plain(&steps(Known::Value(0)), true).lines().count() > 2, "-v shows all");
    }
}
