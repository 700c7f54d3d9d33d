//! A service and a timer of systemd that repeat `goodput shaping`.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process;

use anyhow::{Context, Result, bail};
use clap::{Arg, Command, CommandFactory};
use goodput_engine::ClassRequest;
use goodput_shaping::ClassAsked;

use crate::args::{
    Cli, CredentialArgs, DEFAULT_TOLERANCE_PERCENT, LocalAddress, OutputArgs, ProofArgs,
    RouterAddress, RouterArgs, ScheduleArgs, ShaperArgs, ShapingArgs, TrafficArgs,
};
use crate::data_dirs::chosen_file;
use crate::exit::Exit;
use crate::screen;

/// The option that asks for them.
const OPTION: &str = "--show-timer";

/// Prints both units. They run the present command line without the option, with the same variables, and in the same
/// directory if that matters.
pub fn show(args: &ShapingArgs, state: Option<&Path>, calendar: &str) -> Result<Exit> {
    understood(calendar)?;
    let (target, rate) = (&args.target, args.shaper.rate);
    let words = command(std::env::args_os().skip(1))?;
    let program = std::env::current_exe().context("the path of goodput is unknown")?;
    let program = program_word(program.to_str().context("the path of goodput is not UTF-8")?)?;
    let name = unit(&parts(args));
    let purpose = format!("Test whether the shaper towards {} gives {rate}", specifiers(target));
    let exec = [vec![program], words].concat().join(" ");
    let mut context = environment(|name| std::env::var_os(name))?;
    if names_a_relative_path(args, state) {
        let directory = std::env::current_dir().context("the current directory is unknown")?;
        context +=
            &format!("WorkingDirectory={}\n", specifiers(plain_text(directory.as_os_str())?));
    }
    screen::line(format_args!(
        "# /etc/systemd/system/{name}.service\n\
         # The results: XDG_DATA_HOME=/var/lib goodput history\n\
         [Unit]\nDescription={purpose}\nWants=network-online.target\nAfter=network-online.target\n\n\
         [Service]\nType=oneshot\nStateDirectory=goodput\nEnvironment=XDG_DATA_HOME=%S\n{context}ExecStart={exec}\n"
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

/// Asks systemd whether it understands a time. A host without systemd prints units for others, and nobody knows.
fn understood(calendar: &str) -> Result<()> {
    let asked =
        process::Command::new("systemd-analyze").args(["calendar", "--", calendar]).output();
    match asked {
        Ok(answer) if !answer.status.success() => {
            let why = String::from_utf8_lossy(&answer.stderr).trim().to_owned();
            bail!("--show-timer={calendar}: systemd does not take this time: {why}")
        }
        _ => Ok(()),
    }
}

/// A line for each variable that stands for an option of this command and is set.
fn environment(value: impl Fn(&OsStr) -> Option<OsString>) -> Result<String> {
    let whole = Cli::command();
    let own = whole.find_subcommand("shaping").into_iter().flat_map(Command::get_arguments);
    let names = whole.get_arguments().chain(own).filter_map(Arg::get_env);
    let mut lines = String::new();
    for (name, value) in names.filter_map(|name| Some((name, value(name)?))) {
        let assignment = format!("{}={}", plain_text(name)?, plain_text(&value)?);
        lines += &format!("Environment={}\n", quoted(&specifiers(&assignment)));
    }
    Ok(lines)
}

/// Whether an option or its variable names a file that is sought from the current directory.
fn names_a_relative_path(args: &ShapingArgs, state: Option<&Path>) -> bool {
    let CredentialArgs { token_file, key, password_file, rsa_public_key, .. } = &args.credentials;
    let OutputArgs { record, .. } = &args.output;
    let router = &args.router;
    let own = [token_file, key, password_file, rsa_public_key];
    let others =
        [record, &router.router_token_file, &router.access.ssh_config, &args.traffic.times];
    let files = own.into_iter().chain(others);
    let captures = args.capture.pcap.iter().map(|capture| &capture.path);
    let files = files.flatten().chain(captures).map(PathBuf::as_path);
    files.chain(state).chain(chosen_file()).any(Path::is_relative)
}

/// The words of the command line without the option, as systemd takes them.
fn command(words: impl Iterator<Item = OsString>) -> Result<Vec<String>> {
    let mut kept = Vec::new();
    for typed in words {
        let text = plain_text(&typed)?;
        if text != OPTION && !text.starts_with("--show-timer=") {
            kept.push(word(text));
        }
    }
    Ok(kept)
}

/// Text that a unit file can hold.
fn plain_text(typed: &OsStr) -> Result<&str> {
    let Some(text) = typed.to_str() else { bail!("{} is not UTF-8", typed.display()) };
    if text.contains(char::is_control) {
        bail!("{text:?} has a control character, which a unit file can't hold");
    }
    Ok(text)
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
    quoted(&specifiers(text).replace('$', "$$"))
}

/// A word in quotes, if it needs them (systemd.syntax(7), "Quoting").
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,%@+[]$".contains(c);
    match !text.is_empty() && text.chars().all(plain) {
        true => text.to_owned(),
        false => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}

/// Text in which `%` stands for itself (systemd.unit(5), "Specifiers").
fn specifiers(text: &str) -> String {
    text.replace('%', "%%")
}

/// Whatever makes a test another one, so that it has units of its own. What is left as it is by default has no part, nor have
/// credentials, files and the output.
fn parts(args: &ShapingArgs) -> Vec<Option<String>> {
    let ShapingArgs {
        target,
        shaper: ShaperArgs { rate, tolerance, max_burst, classes },
        traffic: TrafficArgs { reverse, ipv4, ipv6, bind, congestion, dscp, times: _ },
        router: RouterArgs { router, router_token_file: _, access: _ },
        proof: ProofArgs { prove, max_time: _, seed: _ },
        schedule: ScheduleArgs { show_timer: _ },
        capture: _,
        credentials: _,
        output: _,
    } = args;
    let is_on = |on: &bool, word: &str| on.then(|| word.to_owned());
    let tolerance = (*tolerance != DEFAULT_TOLERANCE_PERCENT).then_some(tolerance);
    let class = |class: &ClassRequest| {
        let ClassAsked { name, rate, ceil } = &class.asked;
        let ceil = ceil.map(|ceil| format!("-up-to-{ceil}")).unwrap_or_default();
        Some(format!("{name}-{rate}{ceil}"))
    };
    let one_each = [
        Some(target.clone()),
        Some(rate.to_string()),
        is_on(reverse, "reverse"),
        dscp.map(|dscp| format!("dscp{dscp}")),
        is_on(ipv4, "ipv4"),
        is_on(ipv6, "ipv6"),
        bind.as_ref().map(from),
        congestion.clone(),
        router.as_ref().map(by),
        tolerance.map(|percent| format!("within-{percent}")),
        max_burst.map(|burst| format!("burst-{}", burst.0)),
        is_on(prove, "prove"),
    ];
    one_each.into_iter().chain(classes.iter().map(class)).collect()
}

fn from(LocalAddress { ip, device }: &LocalAddress) -> String {
    let device = device.as_ref().map(|device| format!("-{device}"));
    format!("from-{ip}{}", device.unwrap_or_default())
}

fn by(router: &RouterAddress) -> String {
    match router {
        RouterAddress::Ssh(address) => format!("by-{address}"),
        RouterAddress::Goodput(server) => format!("by-{server}"),
    }
}

/// Longest name of a unit with its suffix, bytes (`UNIT_NAME_MAX`, systemd.unit(5)); longer ones are no file name, either.
const MAX_UNIT_NAME_BYTES: usize = 255;
/// The longer suffix of the two units.
const SUFFIX: &str = ".service";

/// A name for the units of a test: of its target, and of whatever else makes it another test. One that is too long is cut, and
/// ends with a digest of the whole.
fn unit(parts: &[Option<String>]) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || ".-".contains(c) { c } else { '-' };
    let words = parts.iter().flatten().map(|part| {
        let word: String = part.chars().map(plain).collect();
        word.trim_matches(['-', '.']).to_owned()
    });
    let words: Vec<_> = words.collect();
    let name = format!("goodput-shaping-{}", words.join("-"));
    let most = MAX_UNIT_NAME_BYTES - SUFFIX.len();
    if name.len() <= most {
        return name;
    }
    let digest = format!("-{:016x}", fnv1a(name.as_bytes()));
    // Only ASCII is left in it.
    format!("{}{digest}", name[..most - digest.len()].trim_end_matches(['-', '.']))
}

/// FNV-1a of 64 bits (Fowler, Noll and Vo), which stays the same whatever the version of goodput.
fn fnv1a(bytes: &[u8]) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    bytes.iter().fold(OFFSET, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Command as Verb;

    #[test]
    fn the_command_line_is_kept_without_the_option_and_quoted() {
        let typed = ["shaping", "nas", "--show-timer=weekly", "--tolerance", "1%", "a b$\"\\"];
        let kept = command(typed.into_iter().map(OsString::from)).unwrap();
        assert_eq!(kept, ["shaping", "nas", "--tolerance", "1%%", r#""a b$$\"\\""#]);
        assert!(command([OsString::from("a\nb")].into_iter()).is_err());
    }

    #[test]
    fn variables_that_stand_for_options_are_kept() {
        let set = |name: &OsStr| match name.to_str()? {
            "GOODPUT_KEY_FILE" => Some("my 100% key$".into()),
            "GOODPUT_STATE_DIR" => Some("/var/lib/state".into()),
            _ => None,
        };
        let lines = environment(set).unwrap();
        let expected = [
            "Environment=GOODPUT_STATE_DIR=/var/lib/state",
            r#"Environment="GOODPUT_KEY_FILE=my 100%% key$""#,
        ];
        assert_eq!(lines.lines().collect::<Vec<_>>(), expected);
        assert_eq!(environment(|_| None).unwrap(), "");
        assert!(environment(|_| Some("a\nb".into())).is_err());
    }

    #[test]
    fn every_other_test_has_another_unit() {
        let name = |more: &str| {
            let words = format!("goodput shaping nas --rate 20mbit {more}");
            let cli = Cli::from_words(words.split_whitespace().map(OsString::from)).unwrap();
            let Verb::Shaping(args) = cli.command else { panic!("another verb") };
            unit(&parts(&args))
        };
        let usual = "goodput-shaping-nas-20-Mbit-s";
        for same in ["", "--tolerance 2%", "--show-timer=weekly", "--json", "--token-file t"] {
            assert_eq!(name(same), usual, "{same}");
        }
        let others = [
            "-R",
            "-4",
            "-6",
            "--dscp ef",
            "--bind 192.0.2.1",
            "--bind 192.0.2.1%eth0",
            "--congestion bbr",
            "--router r",
            "--router ssh://r",
            "--tolerance 1%",
            "--max-burst 9KB",
            "--prove",
            "--class ef=5mbit --class be=15mbit",
            "--class ef=5mbit..9mbit --class be=15mbit",
            "--class ef=6mbit --class be=14mbit",
        ];
        let mut names: Vec<_> = others.iter().map(|more| name(more)).collect();
        names.push(usual.into());
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count, "{names:?}");
        assert_eq!(
            name("--bind 192.0.2.1%eth0 -R"),
            format!("{usual}-reverse-from-192.0.2.1-eth0")
        );
    }

    #[test]
    fn a_long_name_is_cut_and_stays_one_of_its_own() {
        let named = |last: &str| {
            let classes = (1..30).map(|port| Some(format!("source-port:{port}-1 Mbit/s")));
            unit(&classes.chain([Some(last.to_owned())]).collect::<Vec<_>>())
        };
        let (one, other) = (named("prove"), named("reverse"));
        for name in [&one, &other] {
            assert!(format!("{name}.service").len() <= 255, "{name}");
            assert!(name.starts_with("goodput-shaping-source-port-1-1-Mbit-s-"), "{name}");
        }
        assert_ne!(one, other);
        assert_eq!(one, named("prove"));
        let whole = unit(&[Some("n".repeat(231))]);
        assert_eq!(whole.len() + SUFFIX.len(), 255, "as long as it may be");
        assert!(whole.ends_with("nnn"));
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
    }

    #[test]
    fn a_unit_has_a_plain_name() {
        assert_eq!(
            unit(&[Some("goodput://[fe80::1%eth0]:7487".into()), Some("20 Mbit/s".into()), None]),
            "goodput-shaping-goodput----fe80--1-eth0--7487-20-Mbit-s"
        );
    }
}
