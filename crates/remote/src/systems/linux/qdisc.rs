//! `qdisc.kind` through tc(8), if the present discipline can come back exactly: the kernel's own choice can.

use goodput_settings::value;

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

/// Kind and handle of the root, and whether someone configured anything below it.
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
            let why = format!("it must be default or one of {}", KINDS.join(", "));
            return Err(value::bad(at.setting, value, why).into());
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

/// The discipline that the kernel attached by its own choice, if any: `net.core.default_qdisc` named it at that
/// time (`attach_default_qdiscs`, net/sched/sch_generic.c).
pub(super) struct Attached;

/// Its name. It changes only along with `qdisc.kind`.
pub(super) const ATTACHED: &str = "qdisc.attached";

/// Stands for a root that someone configured.
const CHOSEN: &str = "chosen";

/// Prints the kinds that the kernel attached, the root's first.
const KINDS_ATTACHED: &str = "s=$(tc qdisc show dev \"$1\") || exit; case $s in *' 0: root'*) ;; *) echo chosen; exit;; esac; \
    printf '%s\\n' \"$s\" | sed -n -e 's/^qdisc \\([^ ]*\\) 0: root.*/0 \\1/p' \
    -e 's/^qdisc \\([^ ]*\\) 0: parent.*/1 \\1/p' | sort -u | { k=; while read -r n w; do k=\"$k $w\"; done; echo ${k# }; }";

/// Makes the kernel choose again.
const CHOOSE: &str = "tc qdisc replace dev \"$1\" root pfifo && tc qdisc del dev \"$1\" root";

impl Row for Attached {
    fn read(&self, at: &mut At<'_>) -> Result<String, RemoteError> {
        let command = Command::new("sh", ["-c", KINDS_ATTACHED, "sh", at.scope()]);
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
            CHOSEN => Vec::new(),
            _ => vec![Command::new("sh", ["-c", CHOOSE, "sh", at.scope()])],
        })
    }

    fn holds(&self, at: &mut At<'_>, value: &str) -> Result<Condition, RemoteError> {
        let command = Command::new("sh", ["-c", KINDS_ATTACHED, "sh", at.scope()]);
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
        assert_eq!(kinds("qdisc fq 8001: root refcnt 2\n"), "chosen");
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
}
