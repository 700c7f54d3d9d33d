//! A service and a timer of systemd that repeat `goodput shaping`.

use std::ffi::OsString;

use anyhow::{Context, Result, bail};
use goodput_model::Direction;

use crate::args::ShapingArgs;
use crate::exit::Exit;
use crate::screen;

/// The option that asks for them.
const OPTION: &str = "--show-timer";

/// Prints both units. They run the present command line without the option.
pub fn show(args: &ShapingArgs, calendar: &str) -> Result<Exit> {
    let (target, rate) = (&args.target, args.shaper.rate);
    let words = command(std::env::args_os().skip(1))?;
    let program = std::env::current_exe().context("the path of goodput is not known")?;
    let program = program_word(program.to_str().context("the path of goodput is not UTF-8")?)?;
    let plan = args.traffic.plan();
    let dscp = plan.socket.dscp.map(|dscp| format!("dscp{dscp}"));
    let reverse = (plan.direction == Direction::Reverse).then(|| "reverse".to_owned());
    let name = unit(&[Some(target.clone()), Some(rate.to_string()), reverse, dscp]);
    let purpose = format!("Test whether the shaper towards {} gives {rate}", specifiers(target));
    let exec = [vec![program], words].concat().join(" ");
    screen::line(format_args!(
        "# /etc/systemd/system/{name}.service\n\
         # The results: XDG_DATA_HOME=/var/lib goodput history\n\
         [Unit]\nDescription={purpose}\nWants=network-online.target\nAfter=network-online.target\n\n\
         [Service]\nType=oneshot\nStateDirectory=goodput\nEnvironment=XDG_DATA_HOME=%S\nExecStart={exec}\n"
    ))?;
    screen::line(format_args!(
        "# /etc/systemd/system/{name}.timer\n\
         # To begin: systemctl daemon-reload && systemctl enable --now {name}.timer\n\
         [Unit]\nDescription={purpose}\n\n\
         [Timer]\nOnCalendar={calendar}\nRandomizedDelaySec=5min\nPersistent=true\n\n\
         [Install]\nWantedBy=timers.target"
    ))?;
    Ok(Exit::Fine)
}

/// The words of the command line without the option, as systemd takes them.
fn command(words: impl Iterator<Item = OsString>) -> Result<Vec<String>> {
    let mut kept = Vec::new();
    for typed in words {
        let Some(text) = typed.to_str() else { bail!("{} is not UTF-8", typed.display()) };
        if text.contains(char::is_control) {
            bail!("{text:?} has a control character, which a unit file can't hold");
        }
        if text != OPTION && !text.starts_with("--show-timer=") {
            kept.push(word(text));
        }
    }
    Ok(kept)
}

/// The first word of `ExecStart=`, in which systemd replaces no variable (systemd.service(5), "Command lines").
fn program_word(path: &str) -> Result<String> {
    if path.contains(char::is_control) || path.ends_with(" (deleted)") {
        bail!(
            "the program {path:?} can't stand in a unit: it was replaced since it began, or has an odd name"
        );
    }
    Ok(word(path).replace("$$", "$"))
}

/// One word of `ExecStart=` (systemd.service(5), "Command lines").
fn word(text: &str) -> String {
    let escaped = specifiers(text).replace('$', "$$");
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,%@+[]$".contains(c);
    match !escaped.is_empty() && escaped.chars().all(plain) {
        true => escaped,
        false => format!("\"{}\"", escaped.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}

/// Text in which `%` stands for itself (systemd.unit(5), "Specifiers").
fn specifiers(text: &str) -> String {
    text.replace('%', "%%")
}

/// A name for the units of a test: of its target, and of whatever else makes it another test.
fn unit(parts: &[Option<String>]) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || ".-".contains(c) { c } else { '-' };
    let words = parts.iter().flatten().map(|part| {
        let word: String = part.chars().map(plain).collect();
        word.trim_matches(['-', '.']).to_owned()
    });
    let words: Vec<_> = words.collect();
    format!("goodput-shaping-{}", words.join("-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_kept_without_the_option_and_quoted() {
        let typed = ["shaping", "nas", "--show-timer=weekly", "--tolerance", "1%", "a b$\"\\"];
        let kept = command(typed.into_iter().map(OsString::from)).unwrap();
        assert_eq!(kept, ["shaping", "nas", "--tolerance", "1%%", r#""a b$$\"\\""#]);
        assert!(command([OsString::from("a\nb")].into_iter()).is_err());
    }

    #[test]
    fn a_unit_has_a_plain_name() {
        assert_eq!(
            unit(&[Some("goodput://[fe80::1%eth0]:7487".into()), Some("20 Mbit/s".into()), None]),
            "goodput-shaping-goodput----fe80--1-eth0--7487-20-Mbit-s"
        );
    }
}
