//! Where it was lost: the payload's way from application to application on one line.

use goodput_model::{Bytes, Known, Step, StepName, StepUnit};

use super::style;

/// `app 1.2 GB → socket 829k → qdisc 829k −3 → …`; `?` where a step could not be seen.
pub fn line(way: &[Step]) -> String {
    way.iter().map(step).collect::<Vec<_>>().join(" → ")
}

fn step(step: &Step) -> String {
    let passed = step.left.value().or(step.entered.value());
    let passed = match (step.name, passed) {
        (StepName::Path, _) => None,
        (_, Some(count)) => Some(amount(*count, step.unit)),
        (_, None) => Some("?".into()),
    };
    let dropped = match (&step.dropped, step.name) {
        (Known::Value(0), StepName::Path) => Some("−0".into()),
        (Known::Value(0), _) => None,
        (Known::Value(count), _) => Some(style::bad(format!("−{}", count_of(*count))).to_string()),
        (Known::Missing(_), StepName::Path) => Some("?".into()),
        (Known::Missing(_), _) => None,
    };
    let parts = [Some(name(step.name).to_string()), passed, dropped];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn name(name: StepName) -> &'static str {
    match name {
        StepName::Application => "app",
        StepName::Socket => "socket",
        StepName::Qdisc => "qdisc",
        StepName::Device => "device",
        StepName::Path => "path",
        StepName::Backlog => "backlog",
    }
}

fn amount(count: u64, unit: StepUnit) -> String {
    match unit {
        StepUnit::Bytes => Bytes(count).to_string(),
        _ => count_of(count),
    }
}

/// A count of packets in three digits or four: 829, 12.3k, 4.1M.
fn count_of(count: u64) -> String {
    match count as f64 {
        n if n >= 1e8 => format!("{:.0}M", n / 1e6),
        n if n >= 1e6 => format!("{:.1}M", n / 1e6),
        n if n >= 1e5 => format!("{:.0}k", n / 1e3),
        n if n >= 1e4 => format!("{:.1}k", n / 1e3),
        _ => count.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::Place;

    fn made(name: StepName, unit: StepUnit, left: Known<u64>, dropped: Known<u64>) -> Step {
        Step { place: Place::Near, name, unit, entered: Known::missing("-"), left, dropped }
    }

    #[test]
    fn what_is_unseen_is_a_question_mark_and_drops_stand_out() {
        let unseen = || Known::missing("not seen");
        let way = [
            made(StepName::Application, StepUnit::Bytes, Known::Value(1_200_000_000), unseen()),
            made(StepName::Qdisc, StepUnit::Packets, unseen(), unseen()),
            made(StepName::Device, StepUnit::Packets, Known::Value(829_000), Known::Value(3)),
            made(StepName::Path, StepUnit::Segments, Known::Value(5), Known::Value(0)),
        ];
        let plain = anstream::adapter::strip_str(&line(&way)).to_string();
        assert_eq!(plain, "app 1.20 GB → qdisc ? → device 829k −3 → path −0");
    }

    #[test]
    fn counts_are_short() {
        assert_eq!(
            [829, 12_300, 829_400, 4_100_000].map(count_of),
            ["829", "12.3k", "829k", "4.1M"]
        );
    }
}
