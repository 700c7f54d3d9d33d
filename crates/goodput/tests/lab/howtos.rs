//! The how-tos of `docs/howto`: each of their commands is typed into a shell, and what they show must appear. Numbers may
//! differ, words may not. What gets hardly anything of a rate on a page, a part of it, or nearly all, gets as much here.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use libtest_mimic::Failed;
use tempfile::TempDir;

use crate::disturbed::{self, Judgement};
use crate::neighbours::{Needs, Test};
use crate::stage::exe;

/// Stands for any lines, and at the end of a line for the rest of it.
const ANY: char = '…';
/// Printed after each command, before its exit code.
const MARK: &str = "== exit code ";
/// Exit codes of commands that measured something (README): a problem found, and no clear answer.
const MISSED: i32 = 1;
const INCONCLUSIVE: i32 = 4;

/// Rate of the cable on which most how-tos measure, in both directions, bits per second.
const CABLE_BITS_PER_S: f64 = 2.0 * 20e6;

/// A test for each how-to.
pub fn all() -> Vec<Test> {
    let cable = Needs::of_rate(CABLE_BITS_PER_S);
    let howto = |name, needs, file| disturbed::judged(name, needs, move || replay(file));
    vec![
        disturbed::judged("howto::raw_throughput", cable, replay_with_nginx),
        howto("howto::polling", cable, "polling.md"),
        howto("howto::sendfile", cable, "sendfile.md"),
        howto("howto::iperf", cable, "iperf.md"),
        howto("howto::shaper", Needs::All, "shaper.md"),
        disturbed::judged("howto::nfs_sizes", cable, replay_with_nfs),
        disturbed::judged("howto::mesh", cable, replay_with_nats),
        Test::of_facts("howto::a_line_that_is_missing_is_found", a_missing_line_is_found),
        Test::of_facts("howto::another_share_of_a_rate_is_found", another_share_is_found),
    ]
}

/// A command with the lines that the how-to shows of its output.
#[derive(Debug, PartialEq)]
struct Step {
    command: String,
    shown: Vec<String>,
}

impl Step {
    /// Whether it ended as it should: well, or with an answer about what it measured. Of other programs nothing is expected.
    fn ended_well(&self, exit_code: i32) -> bool {
        let answers = self.measures() && [MISSED, INCONCLUSIVE].contains(&exit_code);
        exit_code == 0 || answers || !self.command.starts_with("goodput ")
    }

    /// Whether the machine's other work may change what it prints.
    fn measures(&self) -> bool {
        ["test", "compare", "shaping", "as"].iter().any(|verb| {
            let rest = self.command.strip_prefix("goodput ");
            rest.and_then(|rest| rest.strip_prefix(verb)).is_some_and(|rest| rest.starts_with(' '))
        })
    }
}

/// The how-to that starts Debian's nats-server.
fn replay_with_nats() -> Result<Judgement, Failed> {
    if goodput_testing::servers::has("nats-server") {
        replay("mesh.md")
    } else {
        Ok(Judgement::Right)
    }
}

/// The how-to that starts nginx.
fn replay_with_nginx() -> Result<Judgement, Failed> {
    if Path::new("/usr/sbin/nginx").exists() {
        replay("raw-throughput.md")
    } else {
        goodput_testing::skip("nginx");
        Ok(Judgement::Right)
    }
}

/// The how-to that starts an NFS server, which takes root and its programs.
fn replay_with_nfs() -> Result<Judgement, Failed> {
    let there = |program: &str| Path::new(program).exists();
    if !there("/usr/bin/ganesha.nfsd") || !there("/usr/sbin/rpcbind") {
        goodput_testing::skip("nfs-ganesha, nfs-ganesha-vfs and rpcbind");
        return Ok(Judgement::Right);
    }
    if !rustix::process::geteuid().is_root() {
        goodput_testing::skip("root, to start an NFS server");
        return Ok(Judgement::Right);
    }
    replay("nfs-sizes.md")
}

fn replay(file: &str) -> Result<Judgement, Failed> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let steps = steps(&std::fs::read_to_string(top.join("docs/howto").join(file))?);
    if steps.is_empty() {
        return Err(format!("{file} has no commands").into());
    }
    let mut shell = Shell::open(&top)?;
    for step in steps {
        let (said, exit_code) = shell.type_in(&step.command)?;
        if !step.ended_well(exit_code) {
            let command = &step.command;
            let said = format!("{file}: {command}: exit code {exit_code}\n{}", said.join("\n"));
            return Ok(Judgement::Wrong(said));
        }
        if let Some(line) = missing(&step.shown, &said) {
            let said = format!("{file}: {}: no `{line}` in\n{}", step.command, said.join("\n"));
            // Others may slow the machine down during all runs, and each then lacks the same line.
            return Ok(match step.measures() {
                true => Judgement::Open(said),
                false => Judgement::Wrong(said),
            });
        }
    }
    Ok(Judgement::Right)
}

/// The commands of a page: lines that start with `$ ` in its blocks of `console`.
fn steps(page: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut is_console = false;
    for line in page.lines() {
        match line.strip_prefix("```") {
            Some(kind) => is_console = kind == "console",
            None if !is_console => {}
            None => match line.strip_prefix("$ ") {
                Some(command) => steps.push(Step { command: command.into(), shown: Vec::new() }),
                None => {
                    if let Some(step) = steps.last_mut() {
                        step.shown.push(line.into());
                    }
                }
            },
        }
    }
    steps
}

/// The first shown line that is not among those said, in this order.
fn missing<'a>(shown: &'a [String], said: &[String]) -> Option<&'a String> {
    let mut said = said.iter().map(|line| (words(line), Share::gotten(line)));
    shown.iter().filter(|line| line.trim() != ANY.to_string()).find(|line| {
        let (wanted, share) = (words(line.trim_end_matches(ANY)), Share::gotten(line));
        let is_whole = !line.ends_with(ANY);
        !said.any(|(one, gotten)| {
            let is_same = if is_whole { one == wanted } else { one.starts_with(&wanted) };
            is_same && (share.is_none() || gotten == share)
        })
    })
}

/// How much of a configured rate something gets. The steps of a page differ by this on any machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Share {
    /// Less than a tenth: it collapses.
    Hardly,
    /// From a tenth to less than 95 %.
    Part,
    /// At least 95 %.
    Nearly,
}

impl Share {
    /// That of a line like `TCP gets 443.2 Mbit/s, -55.7 %`.
    fn gotten(line: &str) -> Option<Self> {
        let (who, difference) = line.rsplit_once(", ")?;
        let percent: f64 = difference.strip_suffix(" %")?.parse().ok()?;
        let is_gotten = who.split_whitespace().any(|word| ["get", "gets"].contains(&word));
        is_gotten.then_some(match 100.0 + percent {
            ..10.0 => Self::Hardly,
            10.0..95.0 => Self::Part,
            _ => Self::Nearly,
        })
    }
}

/// A line without its numbers, their signs and their prefixes.
fn words(line: &str) -> Vec<String> {
    let words = line.split_whitespace().filter(|word| !word.contains(['█', '▓', '▒', '░']));
    words.map(|word| unit(&without_numbers(word)).to_owned()).collect()
}

/// `35.8k` and `+7` become `#`.
fn without_numbers(word: &str) -> String {
    let mut masked = String::new();
    let mut letters = word.chars().peekable();
    while let Some(letter) = letters.next() {
        if !letter.is_ascii_digit() {
            masked.push(letter);
            continue;
        }
        while letters.next_if(|next| next.is_ascii_digit() || ".,".contains(*next)).is_some() {}
        letters.next_if(|next| "kMG".contains(*next));
        while masked.ends_with(['+', '-', '±', '−']) {
            masked.pop();
        }
        masked.push('#');
    }
    masked
}

/// The unit without its prefix, which belongs to the number.
fn unit(word: &str) -> &str {
    const UNITS: [(&str, &[&str]); 4] = [
        ("bit/s", &["bit/s", "kbit/s", "Mbit/s", "Gbit/s"]),
        ("B", &["B", "kB", "MB", "GB"]),
        ("Bytes", &["Bytes", "KBytes", "MBytes"]),
        ("s", &["s", "ms", "µs"]),
    ];
    let bare = word.trim_end_matches([',', ')']);
    UNITS.iter().find(|(_, all)| all.contains(&bare)).map_or(word, |(unit, _)| unit)
}

/// A shell that reads what is typed, with goodput in its `PATH` and directories of its own.
struct Shell {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    _own: TempDir,
}

impl Shell {
    fn open(top: &Path) -> Result<Self, Failed> {
        let own = tempfile::tempdir()?;
        let others = std::env::var_os("PATH").unwrap_or_default();
        let folder = exe().parent().map(Path::to_path_buf);
        let path = std::env::join_paths(folder.into_iter().chain(std::env::split_paths(&others)))?;
        let mut command = Command::new("bash");
        command.current_dir(top).env("PATH", path).env("GOODPUT_STATE_DIR", own.path());
        command.env("XDG_CONFIG_HOME", own.path()).env("XDG_DATA_HOME", own.path());
        // A line of a page is one line.
        command.env("COLUMNS", "1000");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().ok_or("stdout is piped")?);
        let mut shell = Self { child, input, output, _own: own };
        shell.type_in("exec 2>&1")?;
        Ok(shell)
    }

    /// Types a command, and returns what it printed and its exit code. A command that opens another shell gets the
    /// following ones, and seems to end well.
    fn type_in(&mut self, command: &str) -> Result<(Vec<String>, i32), Failed> {
        let input = self.input.as_mut().ok_or("the shell is closed")?;
        write!(input, "{command}\nprintf '\\n%s%d\\n' '{MARK}' $?\n")?;
        let mut said = Vec::new();
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line)? == 0 {
                return Err(format!("the shell ended in {command}: {}", said.join("\n")).into());
            }
            match line.trim_end().strip_prefix(MARK) {
                Some(code) => return Ok((said, code.parse()?)),
                None => said.push(line.trim_end().to_owned()),
            }
        }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // A shell ends with its input, and the hosts that it opened end with their shell.
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

fn check(holds: bool, what: &str) -> Result<(), Failed> {
    if holds { Ok(()) } else { Err(what.into()) }
}

fn a_missing_line_is_found() -> Result<(), Failed> {
    let page = "text\n```console\n$ one\na  12 Mbit/s\n…\nlimited by  …\n```\n$ no command\n```text\n$ none\n```\n";
    let steps = steps(page);
    check(steps.len() == 1 && steps[0].command == "one", "one command is in a console")?;
    let said = |lines: &[&str]| lines.iter().map(ToString::to_string).collect::<Vec<_>>();
    let shown = &steps[0].shown;
    let missing = |lines: &[&str]| missing(shown, &said(lines)).cloned();
    check(missing(&["x", "a 1.3 Gbit/s", "limited by x"]).is_none(), "numbers may differ")?;
    check(missing(&["a 1 B", "limited by x"]).is_some(), "a unit may not")?;
    check(missing(&["limited by x", "a 1 bit/s"]).is_some(), "nor the order")?;
    check(words("-0.4 % (99 % interval ±1.2k)") == words("+10 % (95 % interval 7)"), "signs may")
}

fn another_share_is_found() -> Result<(), Failed> {
    let gets = |percent: &str| format!("TCP gets 1 Mbit/s, {percent} %");
    let shares = ["-99.9", "-47.2", "+0.3"].map(gets);
    for shown in &shares {
        let others: Vec<_> = shares.iter().filter(|other| *other != shown).cloned().collect();
        let found = missing(std::slice::from_ref(shown), &others).is_some();
        check(found, "another share of the rate is another line")?;
    }
    let near = ["-91.0", "-20.0", "-4.9"].map(gets);
    check(missing(&shares, &near).is_none(), "the same share may be another number")
}
