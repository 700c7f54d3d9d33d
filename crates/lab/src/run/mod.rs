//! Running a scenario: the lab up, goodput in both hosts, and the result compared with the expectations.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use goodput_model::{Family, Record};

mod change;
mod judge;
mod process;

pub use change::{compare, tune};
pub use judge::Expectation;

use crate::error::LabError;
use crate::faults::PlantTime;
use crate::host::Host;
use crate::host_name::HostName;
use crate::lab::Lab;
use crate::scenario::Scenario;
use process::{Finished, Process};

/// How long the server may take until it listens.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(300);

/// How long the client may take in all, by default.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(600);

/// How long the server may take to stop after SIGTERM.
const STOP_TIMEOUT: Duration = Duration::from_secs(300);

/// Default length of a test, seconds: enough for a verdict.
const TEST_S: f64 = 4.0;

/// The server's first line once clients can connect.
const LISTENING: &str = "listening on";

/// A client that ended without a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    /// Its exit code; `None` if a signal ended it.
    pub exit_code: Option<i32>,
    /// What it wrote to stderr.
    pub stderr: String,
}

/// The outcome of a scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct Observed {
    /// The client's record, or how it failed.
    pub record: Result<Record, Failed>,
    /// Each expectation against the record; empty without one.
    pub judged: Vec<Expectation>,
}

impl Observed {
    /// Whether there is a record and it meets every expectation.
    pub fn is_as_expected(&self) -> bool {
        self.record.is_ok() && self.judged.iter().all(|expectation| expectation.ok)
    }
}

/// Brings `scenario` up, runs the server of `goodput` (the path of the binary) in far and the client in near, with
/// `client_args` after the scenario's own, and takes everything down. No process is left, however it ends. Call
/// [`crate::privilege::enter`] first.
pub fn run(
    scenario: &Scenario,
    goodput: &Path,
    client_args: &[String],
) -> Result<Observed, LabError> {
    let mut lab = Lab::up(scenario)?;
    let server = Server::start(&lab, scenario, goodput)?;
    let far = server.pid();
    lab.plant(scenario, PlantTime::ProcessRuns, |host| (host == HostName::Far).then_some(far))?;
    let client = start_client(&lab, scenario, goodput, client_args)?;
    let near = client.pid();
    lab.plant(scenario, PlantTime::ProcessRuns, |host| (host == HostName::Near).then_some(near))?;
    let within = scenario.run.within.map_or(CLIENT_TIMEOUT, |time| time.0);
    let finished = client.finish(within).map_err(|error| beside(error, &server.process))?;
    server.stop()?;
    Ok(observe(scenario, finished))
}

/// `goodput serve` in the far host of a lab. Dropping it kills it.
#[derive(Debug)]
pub struct Server {
    process: Process,
    target: String,
}

impl Server {
    /// Starts it with the scenario's own arguments and waits until it listens.
    pub fn start(lab: &Lab, scenario: &Scenario, goodput: &Path) -> Result<Self, LabError> {
        let mut command = command(lab.far(), goodput)?;
        pin(&mut command, scenario);
        // The far host of a lab answers only its near host, and is to see everything that it can.
        command.args(["serve", "--no-sandbox", "--bind"]);
        command.arg(target(lab, scenario)).args(&scenario.run.server);
        command.args(scenario.run.private.then_some("--private"));
        let mut process = Process::start(command, "goodput serve in far")?;
        process.wait_for_line(LISTENING, LISTEN_TIMEOUT)?;
        Ok(Self { process, target: target(lab, scenario) })
    }

    /// Number of its process.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// The target that a client in the near host names.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// Asks it to stop, and waits until it has.
    pub fn stop(self) -> Result<(), LabError> {
        self.process.stop(STOP_TIMEOUT)
    }
}

fn start_client(
    lab: &Lab,
    scenario: &Scenario,
    goodput: &Path,
    client_args: &[String],
) -> Result<Process, LabError> {
    let verb = scenario.run.verb.as_str();
    let mut command = command(lab.near(), goodput)?;
    let seconds = scenario.run.seconds.unwrap_or(TEST_S).to_string();
    pin(&mut command, scenario);
    command.arg(verb).arg(target(lab, scenario)).args(["--json", "--no-store"]);
    command.args(length(scenario, &seconds)).args(&scenario.run.client).args(client_args);
    Process::start(command, &format!("goodput {verb} in near"))
}

/// The option for this length, unless a transfer of a fixed number of bytes ends on its own.
fn length<'a>(scenario: &Scenario, seconds: &'a str) -> Vec<&'a str> {
    let by_bytes = scenario.run.client.iter().any(|argument| argument == "--bytes");
    if by_bytes { Vec::new() } else { vec!["--time", seconds] }
}

fn pin(command: &mut Command, scenario: &Scenario) {
    if let Some(cpus) = scenario.run.cpus {
        process::pin(command, cpus);
    }
}

fn target(lab: &Lab, scenario: &Scenario) -> String {
    let family = if scenario.run.ipv6 { Family::V6 } else { Family::V4 };
    lab.far().address(family).to_string()
}

fn command(host: &Host, goodput: &Path) -> Result<Command, LabError> {
    host.command(goodput).map_err(|source| LabError::Io {
        what: "prepare",
        object: goodput.display().to_string(),
        source,
    })
}

/// Adds the server's messages to a client's error.
fn beside(error: LabError, server: &Process) -> LabError {
    match error {
        LabError::Process { what, problem, output } => {
            let said = process::quoted("the server said", &server.stderr());
            LabError::Process { what, problem, output: format!("{output}{said}") }
        }
        other => other,
    }
}

/// A record counts whatever the exit code: a problem found is not a failure here.
fn observe(scenario: &Scenario, finished: Finished) -> Observed {
    match Record::from_json(&finished.stdout) {
        Ok(record) => {
            let judged = judge::judge(&scenario.expect, &record);
            Observed { record: Ok(record), judged }
        }
        Err(error) => {
            let mut stderr = finished.stderr;
            if finished.exit_code == Some(0) {
                stderr.push_str(&format!("its output is not a record: {error}\n"));
            }
            let failed = Failed { exit_code: finished.exit_code, stderr };
            Observed { record: Err(failed), judged: Vec::new() }
        }
    }
}

#[cfg(test)]
mod tests;
