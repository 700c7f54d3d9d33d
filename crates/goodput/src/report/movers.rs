//! The movers that each end chose, if the plan left the choice.

use goodput_model::{End, EndName, Known, Record, Role};

/// One phrase for each choice.
pub fn phrases(record: &Record) -> Vec<String> {
    let ends = [(EndName::Near, &record.ends.near), (EndName::Far, &record.ends.far)];
    let chosen = ends.into_iter().flat_map(|(name, end)| of(name, end));
    chosen.chain(unreported(record)).collect()
}

/// Choices left to a far end that is goodput and does not report them.
fn unreported(record: &Record) -> Vec<String> {
    // Other programs get a mover from the user, and choose none.
    let chooses = record.ends.far.value().is_none() && record.far_totals.is_none();
    let plan = &record.plan;
    let left = |sender: &EndName| {
        let (does, mover) = match sender {
            EndName::Far => ("sent", &plan.mover),
            EndName::Near => ("received", plan.receive_mover.as_ref().unwrap_or(&plan.mover)),
        };
        (chooses && mover == goodput_mover::AUTO)
            .then(|| format!("the far end does not report how it {does}"))
    };
    plan.direction.senders().iter().filter_map(left).collect()
}

fn of(name: EndName, end: &Known<End>) -> Vec<String> {
    let movers = end.value().map_or(&[][..], |end| &end.movers);
    let phrase = |choice: &goodput_model::MoverChoice| {
        let does = match choice.role {
            Role::Sender => "sent",
            Role::Receiver => "received",
        };
        format!("{name} {does} by {}: {}", choice.mover, choice.why)
    };
    movers.iter().map(phrase).collect()
}
