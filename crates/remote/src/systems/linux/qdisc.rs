//! `qdisc.kind` through tc(8), if the present discipline can come back exactly: the kernel's own choice can.

use goodput_settings::rules::{QUEUE_KINDS, check_queue_kind};
use goodput_settings::value;

use super::row::{At, Row};
use crate::command::{Command, Condition};
use crate::error::RemoteError;

/// The kind of a device's root queueing discipline.
pub(super) struct RootKind;

/// The kernel's own choice, which has the handle 0 (net/sched/sch_api.c `tc_fill_qdisc`).
const DEFAULT: &str = "default";

fn show(at: &At<'_>) -> Command {
    Command::new("tc", ["qdisc", "show", "dev", at.scope()])
}

/// Kind and handle of the root, and whether someone configured anything below it.
pub(super) fn root(at: &mut At<'_>) -> Result<(String, String, bool), RemoteError> {
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

/// Tries a kind at the loopback device of a temporary network namespace there (unshare(1), util-linux). The kernel loads
/// its module for that, as it would for the change.
const TRY: &str = "tc qdisc replace dev lo root \"$1\"";

/// What tc(8) prints if the kernel does not know a kind (net/sched/sch_api.c `__tc_modify_qdisc`; ENOENT before that
/// had words).
const UNKNOWN: [&str; 2] = ["qdisc kind is unknown", "No such file or directory"];

/// Refuses a kind that the kernel there lacks. A host that can't try it is left to refuse it by itself.
fn check_kernel(at: &mut At<'_>, kind: &str) -> Result<(), RemoteError> {
    let tried = at.shell.run(&Command::new("unshare", ["--net", "sh", "-c", TRY, "sh", kind]))?;
    if tried.status == 0 || !UNKNOWN.iter().any(|words| tried.stderr.contains(words)) {
        return Ok(());
    }
    let host = at.shell.host();
    let why =
        format!("the kernel of {host} has no discipline {kind}, and no module sch_{kind} for it");
    Err(value::bad(at.setting, kind, why).into())
}

/// How to have the kernel's own choice again.
fn way_out(at: &At<'_>) -> String {
    format!(
        "without it, the kernel chooses again: run `tc qdisc del dev {} root` there",
        at.scope()
    )
}

impl Row for RootKind {
    fn read(&self, at: &mut At<'_>) -> Result<String, RemoteError> {
        let (kind, handle, _) = root(at)?;
        Ok(if handle == "0:" { DEFAULT.into() } else { kind })
    }

    fn normalise(&self, at: &mut At<'_>, value: &str) -> Result<String, RemoteError> {
        let (kind, handle, others) = root(at)?;
        check_queue_kind(at.setting, value)?;
        let ours = QUEUE_KINDS.contains(&kind.as_str()) || handle == "0:";
        if others || !ours {
            let why = format!("the {kind} there now would not come back exactly; {}", way_out(at));
            return Err(at.refused(&why));
        }
        if value != DEFAULT && value != kind {
            check_kernel(at, value)?;
        }
        Ok(value.into())
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
                "the {kind} there now is not the kernel's own choice, and its parameters might not come back exactly; {}",
                way_out(at)
            ))),
        }
    }
}

/// The discipline that the kernel attached by its own choice, if any: `net.core.default_qdisc` named it at that
/// time (`attach_default_qdiscs`, net/sched/sch_generic.c).
pub(super) struct Attached;

/// Its name. It changes only along with `qdisc.kind`.
pub(super) const ATTACHED: &str = "qdisc.attached";

/// Stands for a root that someone configured, before its kind and handle: another one is someone else's.
const CHOSEN: &str = "chosen";

/// Prints the kinds that the kernel attached, the root's first; or which root someone configured.
const KINDS_ATTACHED: &str = "s=$(tc qdisc show dev \"$1\") || exit; case $s in *' 0: root'*) ;; \
    *) echo chosen $(printf '%s\\n' \"$s\" | sed -n 's/^qdisc \\([^ ]* [0-9a-f]*:\\) root.*/\\1/p'); exit;; esac; \
    printf '%s\\n' \"$s\" | sed -n -e 's/^qdisc \\([^ ]*\\) 0: root.*/0 \\1/p' \
    -e 's/^qdisc \\([^ ]*\\) 0: parent.*/1 \\1/p' | sort -u | { k=; while read -r n w; do k=\"$k $w\"; done; echo ${k# }; }";

/// Makes the kernel choose again.
const CHOOSE: &str = "tc qdisc replace dev \"$1\" root pfifo && tc qdisc del dev \"$1\" root";

fn kinds_attached(at: &At<'_>) -> Command {
    let purpose = format!("list the disciplines of {}", at.scope());
    Command::script(purpose, KINDS_ATTACHED, [at.scope()])
}

impl Row for Attached {
    fn read(&self, at: &mut At<'_>) -> Result<String, RemoteError> {
        let command = kinds_attached(at);
        let printed = at.shell.output(&command)?;
        match printed.trim() {
            "" => Err(at.misread(&command, "", "a root")),
            kinds => Ok(kinds.into()),
        }
    }

    fn normalise(&self, at: &mut At<'_>, _value: &str) -> Result<String, RemoteError> {
        Err(at.refused("the kernel chooses it"))
    }

    fn write(&self, at: &mut At<'_>, value: &str) -> Result<Vec<Command>, RemoteError> {
        Ok(match value {
            chosen if chosen.starts_with(CHOSEN) => Vec::new(),
            _ => {
                let purpose = format!("let the kernel choose the discipline of {}", at.scope());
                vec![Command::script(purpose, CHOOSE, [at.scope()])]
            }
        })
    }

    fn holds(&self, at: &mut At<'_>, value: &str) -> Result<Condition, RemoteError> {
        let command = kinds_attached(at);
        Ok(Condition::line(command, Condition::literal(value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::Scripted;

    #[test]
    fn the_kinds_that_the_kernel_attached_are_distinguished() {
        let kinds = |printed: &str| {
            let script =
                format!("tc() {{ printf '%s' \"$PRINTED\"; }}; set -- eth0; {KINDS_ATTACHED}");
            let mut sh = std::process::Command::new("sh");
            let output = sh.args(["-c", &script]).env("PRINTED", printed).output().unwrap();
            String::from_utf8(output.stdout).unwrap().trim().to_owned()
        };
        assert_eq!(kinds("qdisc fq_codel 0: root refcnt 2 limit 10240p\n"), "fq_codel");
        let many =
            "qdisc mq 0: root \nqdisc fq 0: parent :2 limit 1p\nqdisc fq 0: parent :1 limit 1p\n";
        assert_eq!(kinds(many), "mq fq");
        assert_eq!(kinds("qdisc fq 8001: root refcnt 2\n"), "chosen fq 8001:");
    }

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

    #[test]
    fn a_kind_that_the_kernel_lacks_is_refused_before_anything_is_changed() {
        let setting = "qdisc.kind@eth0".parse().unwrap();
        let tried = |kind: &str, stderr: &str| {
            let attempt = Command::new("unshare", ["--net", "sh", "-c", TRY, "sh", kind]).typed();
            let mut shell = Scripted::default()
                .prints("tc qdisc show dev eth0", "qdisc pfifo_fast 0: root refcnt 2\n")
                .fails(&attempt, 2, stderr);
            RootKind.normalise(&mut At { shell: &mut shell, setting: &setting }, kind)
        };
        let unknown = "Error: Specified qdisc kind is unknown.\n";
        let said = tried("cake", unknown).unwrap_err().to_string();
        assert!(said.contains("has no discipline cake"), "{said}");
        let elsewhere = tried("cake", "unshare: unshare failed: Operation not permitted\n");
        assert_eq!(elsewhere.unwrap(), "cake", "it can't be tried");
        assert_eq!(tried("default", unknown).unwrap(), "default");
    }
}
