//! `goodput demo`: the whole loop on this machine, through the commands that a user would type.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use goodput_lab::{Lab, Scenario, Server};
use goodput_model::{Change, Judgement, Record};

use crate::exit::Exit;
use crate::report::style;
use crate::screen;

/// A token bucket far too small for its rate, on the sending host.
const SCENARIO: &str = "burst-too-small/mild/near";
/// Longest time of the proof, seconds, to keep the whole demo under a minute.
const PROOF_SECONDS: &str = "40";

/// Plants a fault, finds it, proves the fix, restores everything, and shows that it is restored.
pub fn run() -> Result<Exit> {
    goodput_lab::privilege::enter()?;
    let scenario = Scenario::load(SCENARIO)?;
    let exe = env::current_exe().context("can't find the program that runs")?;
    step("two hosts and a link", &scenario.title)?;
    let lab = Lab::up(&scenario)?;
    let server = Server::start(&lab, &scenario, &exe)?;
    let directory = tempfile::tempdir().context("can't make a temporary directory")?;
    let demo = Demo { lab: &lab, target: server.target(), exe: &exe, directory: directory.path() };

    let record = demo.test()?;
    ensure!(
        record.verdict.limit == "shaper-burst",
        "the demo expected the verdict shaper-burst, but the measurement says {}",
        record.verdict.limit
    );
    let change = proposed(&record)?;
    let before = demo.setting(&change)?;
    let proof = demo.compare(&change)?;
    let after = demo.setting(&change)?;

    ensure!(before == after, "{} was {before} and is {after} now", change.setting);
    step("everything as it was", &format!("{} is {after}, as before", change.setting))?;
    conclude(&proof, &change)
}

struct Demo<'a> {
    lab: &'a Lab,
    target: &'a str,
    exe: &'a Path,
    directory: &'a Path,
}

impl Demo<'_> {
    fn test(&self) -> Result<Record> {
        self.goodput("measure and explain", &["test", self.target, "-t", "3"])
    }

    fn compare(&self, change: &Change) -> Result<Record> {
        let argument = change.as_argument();
        let arguments = ["compare", self.target, &argument, "--max-time", PROOF_SECONDS];
        self.goodput("prove the change", &arguments)
    }

    /// Runs one command as a user at the near host would, and shows its output; returns its record.
    fn goodput(&self, title: &str, arguments: &[&str]) -> Result<Record> {
        step(title, &format!("goodput {}", arguments.join(" ")))?;
        let file: PathBuf = self.directory.join("record.json");
        let status = self
            .command()?
            .args(arguments)
            .args(["--no-store", "--record"])
            .arg(&file)
            .status()
            .with_context(|| format!("can't run {}", self.exe.display()))?;
        let json = fs::read_to_string(&file)
            .with_context(|| format!("goodput {} left no record: {status}", arguments.join(" ")))?;
        Record::from_json(&json).context("can't read the record back")
    }

    /// The value of the changed setting as a user at the near host would see it.
    fn setting(&self, change: &Change) -> Result<String> {
        let setting = change.setting.to_string();
        let output = self.command()?.args(["settings", "get", &setting]).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8_lossy(&output.stdout).trim().into())
    }

    fn command(&self) -> Result<Command> {
        let mut command = self.lab.near().command(self.exe)?;
        command.env("GOODPUT_STATE_DIR", self.directory);
        Ok(command)
    }
}

fn step(title: &str, text: &str) -> io::Result<()> {
    screen::line(format_args!("\n{}  {text}", style::strong(format!("== {title}"))))
}

fn proposed(record: &Record) -> Result<Change> {
    let finding = record.findings.iter().find(|f| f.rule == record.verdict.limit);
    match finding.and_then(|finding| finding.changes.first()) {
        Some(change) => Ok(change.clone()),
        None => bail!("the verdict {} came without a change to try", record.verdict.limit),
    }
}

fn conclude(proof: &Record, change: &Change) -> Result<Exit> {
    let arm = proof.comparison.as_ref().and_then(|comparison| comparison.arms.get(1));
    let Some(effect) = arm.and_then(|arm| arm.goodput.as_ref()) else {
        bail!("the comparison was inconclusive");
    };
    if effect.judgement != Judgement::Better {
        step("not proven", &format!("{} made no clear difference this time", change.setting))?;
        return Ok(Exit::Inconclusive);
    }
    step(
        "proven",
        &format!(
            "{} → {} gives {:.0} ({}). Until the next boot:\n  goodput settings set {}={}",
            change.setting,
            change.to,
            effect.difference(),
            effect.interval(0),
            change.setting,
            change.to
        ),
    )?;
    Ok(Exit::Fine)
}
