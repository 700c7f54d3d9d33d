//! Where the far end of a task is.

use anyhow::{Result, bail};
use goodput_engine::Target;
use goodput_fleet::Task;
use goodput_wire::protocols::goodput::PROTOCOL;

/// The target of a task, and the port that the mesh file names, if it does. Without one, the far agent takes any that is
/// free.
pub(super) fn of(task: &Task) -> Result<(Target, Option<u16>)> {
    let target: Target = task.target.parse()?;
    if target.protocol.id != PROTOCOL.id {
        bail!("{} is not a goodput server; agents test with each other only", task.target);
    }
    let port = names_port(&target).then_some(target.port);
    Ok((target, port))
}

fn names_port(target: &Target) -> bool {
    let text = target.text.split_once("://").map_or(&*target.text, |(_, rest)| rest);
    let text = text.trim_end_matches('/');
    text != target.host && text != format!("[{}]", target.host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_named_or_not() {
        for (text, named) in [
            ("b.example", false),
            ("b.example:7487", true),
            ("goodput://b:9/", true),
            ("[fe80::1]:7487", true),
            ("[fe80::1]", false),
            ("goodput://fe80::7487", false),
            ("192.0.2.1", false),
        ] {
            assert_eq!(names_port(&text.parse().unwrap()), named, "{text}");
        }
    }
}
