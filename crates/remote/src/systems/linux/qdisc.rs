//! `qdisc.kind` by tc(8), where what is there now comes back exactly: the kernel's own choice does.

use super::row::{At, Row};
use crate::command::{Command, Condition};
use crate::error::RemoteError;

/// The kind of a device's root queueing discipline.
pub(super) struct RootKind;

/// The kernel's own choice, which has the handle 0 (net/sched/sch_api.c `tc_fill_qdisc`).
const DEFAULT: &str = "default";

/// Kinds that work without a parameter.
const KINDS: [&str; 8] = ["fq_codel", "fq", "codel", "cake", "pie", "sfq", "pfifo", "pfifo_fast"];

fn show(at: &At<'_>) -> Command {
    Command::new("tc", ["qdisc", "show", "dev", at.scope()])
}

/// Kind and handle of the root, and whether anything below it was made by someone.
fn root(at: &mut At<'_>) -> Result<(String, String, bool), RemoteError> {
    let command = show(at);
    let printed = at.shell.output(&command)?;
    let mut root = None;
    let mut others = false;
    for line in printed.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["qdisc", kind, handle, "root", ..] if root.is_none() => {
                root = Some((kind.to_owned(), handle.to_owned()));
            }
            ["qdisc", "ingress" | "clsact", ..] => {}
            ["qdisc", _, handle, "parent", ..] => others |= handle != "0:",
            _ => return Err(at.misread(&command, line, "a line like \"qdisc fq 8001: root\"")),
        }
    }
    let (kind, handle) = root.ok_or_else(|| at.misread(&command, &printed, "a root"))?;
    Ok((kind, handle, others))
}

impl Row for RootKind {
    fn read(&self, at: &mut At<'_>) -> Result<String, RemoteError> {
        let (kind, handle, _) = root(at)?;
        Ok(if handle == "0:" { DEFAULT.into() } else { kind })
    }

    fn normalise(&self, at: &mut At<'_>, value: &str) -> Result<String, RemoteError> {
        let (kind, handle, others) = root(at)?;
        if value != DEFAULT && !KINDS.contains(&value) {
            let why = format!("{value:?} is not default or one of {}", KINDS.join(", "));
            return Err(at.refused(&why));
        }
        let ours = KINDS.contains(&kind.as_str()) || handle == "0:";
        match others || !ours {
            true => Err(at.refused(&format!("the {kind} there now would not come back exactly"))),
            false => Ok(value.into()),
        }
    }

    fn write(&self, at: &mut At<'_>, value: &str) -> Result<Vec<Command>, RemoteError> {
        let device = at.scope();
        Ok(vec![match value {
            DEFAULT => Command::new("tc", ["qdisc", "del", "dev", device, "root"]),
            kind => Command::new("tc", ["qdisc", "replace", "dev", device, "root", kind]),
        }])
    }

    fn holds(&self, at: &mut At<'_>, value: &str) -> Result<Condition, RemoteError> {
        let line = match value {
            DEFAULT => "qdisc [^ ]* 0: root.*".into(),
            kind => format!("qdisc {} [0-9a-f]*: root.*", Condition::literal(kind)),
        };
        Ok(Condition::line(show(at), line))
    }

    fn comes_back(&self, at: &mut At<'_>) -> Result<(), RemoteError> {
        let (kind, handle, _) = root(at)?;
        match handle == "0:" {
            true => Ok(()),
            false => Err(at.refused(&format!(
                "someone made the {kind} there now, and its parameters might not come back exactly"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::Scripted;

    #[test]
    fn only_the_kernels_own_choice_is_replaced() {
        let setting = "qdisc.kind@eth0".parse().unwrap();
        let at = |printed: &str, act: &dyn Fn(&mut At<'_>) -> Result<String, RemoteError>| {
            let mut shell = Scripted::default().prints("tc qdisc show dev eth0", printed);
            act(&mut At { shell: &mut shell, setting: &setting })
        };
        let read = |printed: &str| at(printed, &|at| RootKind.read(at));
        let back =
            |printed: &str| at(printed, &|at| RootKind.comes_back(at).map(|()| String::new()));
        assert_eq!(read("qdisc fq_codel 0: root refcnt 2 limit 10240p\n").unwrap(), "default");
        assert!(back("qdisc fq_codel 0: root refcnt 2 limit 10240p\n").is_ok());
        assert_eq!(read("qdisc tbf 8001: root refcnt 2 rate 1Mbit\n").unwrap(), "tbf");
        assert!(back("qdisc tbf 8001: root refcnt 2 rate 1Mbit\n").is_err());
        assert!(read("Cannot open netlink socket\n").is_err() && read("").is_err());
    }
}
