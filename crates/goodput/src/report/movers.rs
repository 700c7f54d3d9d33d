//! What each end chose to send and receive by, where the plan left it the choice.

use goodput_model::{End, EndName, Known, Record, Role};

/// One phrase for each choice.
pub fn phrases(record: &Record) -> Vec<String> {
    let ends = [(EndName::Near, &record.ends.near), (EndName::Far, &record.ends.far)];
    ends.into_iter().flat_map(|(name, end)| of(name, end)).collect()
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
