//! Parts of a plan that are newer than version 1 of the protocol. An older server would ignore them, so the client
//! asks for an answer.

use goodput_model::{EndName, Plan};

use crate::check;

/// The names of the newer parts in a plan, for either end: older clients ask for all of them.
pub(super) fn options(plan: &Plan) -> impl Iterator<Item = &'static str> {
    parts(plan).into_iter().filter(|part| part.given).map(|part| part.name)
}

/// Why a plan can't be measured with a server that knows only `theirs`, if it can't.
pub(super) fn lacking(plan: &Plan, theirs: &[String]) -> Option<String> {
    let known = |name: &str| theirs.iter().any(|their| their == name);
    let lacking = parts(plan).into_iter().filter(|part| part.at_far_end && !known(part.name));
    let lacking: Vec<_> = lacking.map(|part| part.words).collect();
    let parts = lacking.join(", ");
    (!lacking.is_empty()).then(|| {
        format!(
            "the far end's goodput is older and does not know {parts}: update it, or leave that out"
        )
    })
}

/// A part of a plan that not every server knows.
struct Part {
    given: bool,
    /// Whether it is set and the far end has to do it.
    at_far_end: bool,
    /// Its name in the plan.
    name: &'static str,
    /// What the user asked for.
    words: &'static str,
}

fn parts(plan: &Plan) -> Vec<Part> {
    let options = check::far_options(plan).into_iter().filter_map(|option| {
        Some(Part {
            given: option.given,
            at_far_end: option.is_asked_of_far_end(plan),
            name: option.newer?,
            words: option.option,
        })
    });
    let alone = plan.storage.sink_alone;
    let sink = Part {
        given: alone,
        at_far_end: alone && plan.direction.senders().contains(&EndName::Near),
        name: "sink_alone",
        words: "how to write a sink alone (test files --sink)",
    };
    let arrivals = Part {
        given: plan.arrivals,
        at_far_end: plan.arrivals && plan.direction.senders().contains(&EndName::Near),
        name: "arrivals",
        words: "how to report when each datagram came (shaping)",
    };
    let towards = Part {
        given: plan.towards.is_some(),
        at_far_end: plan.towards.is_some(),
        name: "towards",
        words: "how to show the path towards another host (shaping --router)",
    };
    options.chain([sink, arrivals, towards]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::Direction;

    fn full(direction: Direction) -> Plan {
        let mut plan = Plan::standard();
        plan.direction = direction;
        plan.socket.quickack = Some(false);
        plan.socket.notsent_lowat_bytes = Some(goodput_model::Bytes(1));
        (plan.socket.busy_poll_us, plan.socket.priority) = (Some(0), Some(0));
        plan.storage.sink_alone = true;
        plan.arrivals = true;
        plan.towards = Some([10, 0, 0, 7].into());
        plan
    }

    #[test]
    fn the_names_are_those_of_the_plan() {
        let plan = full(Direction::Both);
        let json = serde_json::to_value(&plan).unwrap();
        let names: Vec<_> = options(&plan).collect();
        assert_eq!(names.len(), parts(&plan).len());
        for name in &names {
            let in_part = ["socket", "storage"].iter().any(|part| json[part].get(name).is_some());
            assert!(in_part || json.get(name).is_some(), "{name}");
        }
        assert_eq!(
            lacking(&plan, &names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()),
            None
        );
        let why = lacking(&plan, &["priority".into()]).unwrap();
        assert!(
            why.contains("older")
                && why.contains(
                    "--quickack, --notsent-lowat, --busy-poll, how to write a sink alone"
                ),
            "{why}"
        );
        assert_eq!(lacking(&Plan::standard(), &[]), None);
    }

    #[test]
    fn an_older_far_end_lacks_only_what_it_has_to_do() {
        let far_receives = lacking(&full(Direction::Send), &[]).unwrap();
        assert!(far_receives.contains("--quickack, --busy-poll, how to write"), "{far_receives}");
        let far_sends = Plan { towards: None, ..full(Direction::Reverse) };
        let far_sends = lacking(&far_sends, &[]).unwrap();
        assert!(far_sends.contains("know --notsent-lowat, --priority:"), "{far_sends}");
        let names: Vec<_> = options(&full(Direction::Send)).collect();
        assert_eq!(names.len(), 7, "a client of before asks for all of them: {names:?}");
    }
}
