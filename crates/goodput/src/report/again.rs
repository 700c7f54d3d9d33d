//! The options that repeat a measurement, for a command to copy.

use goodput_model::{Cache, Direction, Plan, Source, Transport};

use crate::shell;

/// The options that define what `plan` measures: direction, transport, flows, and the payload's source; each with a
/// space before it. Empty for the standard plan, and for a plain fetch of a `file`.
pub fn options(plan: &Plan, file: bool) -> String {
    let mut options = Vec::new();
    match plan.direction {
        Direction::Send if file => options.push("--write".to_string()),
        Direction::Send => {}
        Direction::Reverse if file => {}
        Direction::Reverse => options.push("-R".to_string()),
        Direction::Both => options.push("--both".into()),
    }
    if plan.transport == Transport::Udp {
        options.push("-u".into());
    }
    if plan.flows > 1 {
        options.push(format!("-P {}", plan.flows));
    }
    match &plan.storage.source {
        Some(Source::File { name, cache }) => {
            let cold = if *cache == Cache::Cold { " --cold" } else { "" };
            options.push(format!("--source {}{cold}", shell::word(name)));
        }
        Some(Source::Memory(size)) => options.push(format!("--size {}", size.0)),
        Some(Source::Input) | None => {}
    }
    if plan.storage.header_bytes > 0 {
        options.push(format!("--header {}", plan.storage.header_bytes));
    }
    if plan.storage.header_more {
        options.push("--more".into());
    }
    if plan.socket.cork {
        options.push("--cork".into());
    }
    options.iter().map(|option| format!(" {option}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::Storage;

    #[test]
    fn what_was_measured_is_measured_again() {
        assert_eq!(options(&Plan::standard(), false), "");
        assert_eq!(options(&Plan::standard(), true), " --write");
        let fetch = Plan { direction: Direction::Reverse, ..Plan::standard() };
        assert_eq!(options(&fetch, true), "");
        let source = Source::File { name: "it's big".into(), cache: Cache::Cold };
        let storage = Storage {
            source: Some(source),
            header_bytes: 512,
            header_more: true,
            ..Storage::default()
        };
        let direction = Direction::Reverse;
        let plan = Plan { direction, flows: 4, storage, ..Plan::standard() };
        assert_eq!(
            options(&plan, false),
            r" -R -P 4 --source 'it'\''s big' --cold --header 512 --more"
        );
    }
}
