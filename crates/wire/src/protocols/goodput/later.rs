//! Socket options of a plan that came after version 1 of the protocol began: a server of before would
//! ignore them, so the client asks for an answer.

use goodput_model::Plan;

/// The names of those that a plan has.
pub(super) fn options(plan: &Plan) -> impl Iterator<Item = &'static str> {
    given(plan).into_iter().filter(|(given, ..)| *given).map(|(_, name, _)| name)
}

/// Why a plan can't be measured with a server that sets only `theirs`, if so.
pub(super) fn lacking(plan: &Plan, theirs: &[String]) -> Option<String> {
    let known = |name: &str| theirs.iter().any(|their| their == name);
    let lacking = given(plan).into_iter().filter(|(given, name, _)| *given && !known(name));
    let lacking: Vec<_> = lacking.map(|(_, _, option)| option).collect();
    let options = lacking.join(", ");
    (!lacking.is_empty()).then(|| {
        format!("the far end's goodput is older and does not know {options}: update it, or leave that out")
    })
}

/// Whether a plan has each of them, its name, and its option of the command line.
fn given(plan: &Plan) -> [(bool, &'static str, &'static str); 4] {
    let socket = &plan.socket;
    [
        (socket.quickack.is_some(), "quickack", "--quickack"),
        (socket.notsent_lowat_bytes.is_some(), "notsent_lowat_bytes", "--notsent-lowat"),
        (socket.busy_poll_us.is_some(), "busy_poll_us", "--busy-poll"),
        (socket.priority.is_some(), "priority", "--priority"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_those_of_the_plan() {
        let mut plan = Plan::standard();
        plan.socket.quickack = Some(false);
        plan.socket.notsent_lowat_bytes = Some(goodput_model::Bytes(1));
        (plan.socket.busy_poll_us, plan.socket.priority) = (Some(0), Some(0));
        let json = serde_json::to_value(&plan).unwrap();
        let names: Vec<_> = options(&plan).collect();
        assert_eq!(names.len(), given(&plan).len());
        for name in &names {
            assert!(json["socket"].get(name).is_some(), "{name}");
        }
        assert_eq!(
            lacking(&plan, &names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()),
            None
        );
        let why = lacking(&plan, &["priority".into()]).unwrap();
        assert!(
            why.contains("older") && why.contains("--quickack, --notsent-lowat, --busy-poll:"),
            "{why}"
        );
        assert_eq!(lacking(&Plan::standard(), &[]), None);
    }
}
