//! `cargo xtask test`: everything that CI runs, each step with its time, and one total at the end.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, IsTerminal, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::thread;

use anyhow::{Context, Result};
use goodput_testing::Outcome;

use crate::tally::{Steps, Tally};
use crate::transcript::Transcript;
use crate::{docs, kernel, layering, other_programs, package, peers, supply, tidy};
use goodput_tools::packages;
use goodput_tools::shell::{capture, cargo, command, root, run as run_command};

/// Options of `cargo xtask test`.
#[derive(clap::Args)]
pub struct Options {
    /// Only these steps, in the order in which all would run.
    #[arg(value_parser = STEPS.map(|(name, _)| name))]
    only: Vec<String>,
}

impl Options {
    /// One step.
    pub fn only(step: &str) -> Self {
        Self { only: vec![step.to_owned()] }
    }
}

type Step = fn() -> Result<Tally>;

/// Every step, quick steps first.
const STEPS: [(&str, Step); 15] = [
    ("packages", provide_packages),
    ("format", || one(&mut cargo(["fmt", "--all", "--check"]))),
    ("tidy", || Ok(Tally::of_problems(&tidy::problems()?))),
    ("layering", || Ok(Tally::of_problems(&layering::problems()?))),
    ("supply", supply::check),
    ("clippy", clippy),
    ("fuzz", fuzz_targets),
    ("rustdoc", rustdoc),
    // Includes the test targets, so that the tests below need no second build of anything.
    ("build", || one(&mut cargo(["build", "--workspace", "--all-targets"]))),
    ("tests", tests),
    ("kernel", kernel::check),
    ("peers", || Ok(Tally::of_problems(&peers::problems()?))),
    ("corpus", corpus),
    ("package", package::check),
    ("docs", || Ok(Tally::of_problems(&docs::problems()?))),
];

/// Runs the steps.
pub fn run(options: &Options) -> Result<()> {
    let mut steps = Steps::new();
    let wanted = |name: &str| options.only.is_empty() || options.only.iter().any(|o| o == name);
    for (name, work) in STEPS.into_iter().filter(|(name, _)| wanted(name)) {
        steps.step(name, work);
    }
    steps.finish()
}

fn provide_packages() -> Result<Tally> {
    let Some(needs) = packages::provide(packages::FOR_TESTS)? else { return Ok(Tally::PASSED) };
    println!("SKIPPED {needs}");
    Ok(if goodput_testing::everything_required() { Tally::failure(needs) } else { Tally::SKIPPED })
}

fn clippy() -> Result<Tally> {
    let mut clippy = cargo(["clippy", "--workspace", "--all-targets", "--"]);
    one(clippy.args(CLIPPY_ARGUMENTS))
}

const CLIPPY_ARGUMENTS: [&str; 2] = ["--deny", "warnings"];

/// The fuzz targets are outside the workspace, and would break unnoticed. The fuzzer's runtime
/// needs a C++ compiler; because nothing is linked here, any file may stand in for it. Libraries that the workspace
/// has built already are not built again.
fn fuzz_targets() -> Result<Tally> {
    let mut clippy = cargo(["clippy", "--manifest-path=fuzz/Cargo.toml"]);
    if std::env::var_os("CARGO_TARGET_DIR").is_none() {
        clippy.arg("--target-dir").arg(root().join("target"));
    }
    one(clippy.env("CUSTOM_LIBFUZZER_PATH", "/not/linked.a").args(["--", "--deny", "warnings"]))
}

/// Built with the whole workspace: alone, it would get other features of its dependencies, and so a second build.
fn corpus() -> Result<Tally> {
    let bin = ["build", "--quiet", "--workspace", "--bin", other_programs::CAMPAIGNS];
    run_command(&mut cargo(bin))?;
    let program = docs::target_directory()?.join("debug/goodput-campaigns");
    let mut program = command(program.to_str().context("the target directory is no text")?);
    one(program.args(["corpus", "--check"]))
}

fn one(command: &mut Command) -> Result<Tally> {
    run_command(with_colour(command)).map(|()| Tally::PASSED)
}

/// Links between doc comments. The program's own doc comments are left out: they are its help, for a terminal.
///
/// rustdoc reads what a check leaves of every crate. Checked by the same driver with the same arguments, these are the
/// files that the step `clippy` has left; otherwise cargo would check the workspace once more.
fn rustdoc() -> Result<Tally> {
    let sysroot = capture(command("rustc").args(["--print", "sysroot"]))?;
    let driver = Path::new(sysroot.trim()).join("bin/clippy-driver");
    let arguments = CLIPPY_ARGUMENTS.map(|word| format!("{word}__CLIPPY_HACKERY__")).concat();
    let options = ["doc", "--workspace", "--exclude=goodput", "--no-deps"];
    let mut doc = cargo(options);
    doc.env("RUSTC_WORKSPACE_WRAPPER", driver).env("CLIPPY_ARGS", arguments);
    one(doc.arg("--document-private-items").env("RUSTDOCFLAGS", "--deny warnings"))
}

/// Tests of a binary that run at once for each CPU; libtest takes the number from [`THREADS`]. Tests of programs and hosts
/// spend three quarters of their time waiting, for a far end, for paced payload or for a late end, so this number keeps
/// every CPU busy. Tests that only compute lose nothing. `lab` and `peers` choose for themselves.
const TESTS_PER_CPU: usize = 4;
/// The user's own choice has priority.
const THREADS: &str = "RUST_TEST_THREADS";

/// Unit, conformance, end-to-end and documentation tests of every crate.
fn tests() -> Result<Tally> {
    let left = tempfile::NamedTempFile::new().context("can't make a file for skips")?;
    let mut command = cargo(["test", "--workspace", "--no-fail-fast"]);
    command.env(goodput_testing::FILE, left.path());
    if std::env::var_os(THREADS).is_none() {
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        command.env(THREADS, (TESTS_PER_CPU * cpus).to_string());
    }
    with_colour(&mut command).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().context("can't start cargo test")?;
    let stdout = child.stdout.take().context("cargo test has no stdout")?;
    let stderr = child.stderr.take().context("cargo test has no stderr")?;
    let transcript = transcribe(stdout, stderr)?;
    let succeeded = child.wait()?.success();
    let left = std::fs::read_to_string(left.path()).context("can't read what was skipped")?;
    let proved_nothing = proved_nothing(&left)?;
    for outcome in &proved_nothing {
        println!("{outcome}");
    }
    Ok(transcript.tally(succeeded, &proved_nothing))
}

/// Shows the output of test binaries, and reads it until both pipes end.
pub fn transcribe(
    stdout: impl Read + Send + 'static,
    stderr: impl Read + Send + 'static,
) -> Result<Transcript> {
    let (lines, received) = channel();
    let on_stderr = lines.clone();
    let readers = [
        thread::spawn(move || pass_lines(stdout, &lines)),
        thread::spawn(move || pass_lines(stderr, &on_stderr)),
    ];
    let mut transcript = Transcript::default();
    for line in received {
        transcript.read(&line);
        println!("{line}");
    }
    for reader in readers {
        reader.join().map_err(|_| anyhow::anyhow!("a reader of the tests' output died"))?;
    }
    Ok(transcript)
}

/// The tests that left a line because they proved nothing, each once.
fn proved_nothing(lines: &str) -> Result<BTreeSet<Outcome>> {
    let read = |line| Outcome::parse(line).with_context(|| format!("a test left `{line}`"));
    let mut tests = BTreeSet::new();
    let all: BTreeSet<_> = lines.lines().map(read).collect::<Result<_>>()?;
    Ok(all.into_iter().filter(|one| tests.insert((one.binary.clone(), one.test.clone()))).collect())
}

fn pass_lines(from: impl Read, to: &Sender<String>) {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    while from.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
        let text = String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned();
        if to.send(text).is_err() {
            return;
        }
        line.clear();
    }
}

/// Cargo sees a pipe, but a person sees a terminal; the user's own choice has priority.
fn with_colour(command: &mut Command) -> &mut Command {
    let chosen = std::env::var_os("CARGO_TERM_COLOR").is_some();
    if !chosen && std::io::stdout().is_terminal() {
        command.env("CARGO_TERM_COLOR", "always");
    }
    command
}
