//! The server of a lab: goodput answering in far, until it is dropped.

use std::path::Path;
use std::time::Duration;

use goodput_model::Family;

use super::process::Process;
use crate::error::LabError;
use crate::lab::Lab;
use crate::scenario::Scenario;

/// How long the server may take until it listens.
const LISTEN_WITHIN: Duration = Duration::from_secs(20);

/// How long the server may take to stop after SIGTERM.
const STOP_WITHIN: Duration = Duration::from_secs(10);

/// What the server says on its first line once clients can connect.
const LISTENING: &str = "listening on";

/// A running `goodput serve` in far. Dropping it kills it; it also goes when the thread that
/// started it ends.
#[derive(Debug)]
pub struct Server {
    process: Process,
    target: String,
}

impl Server {
    /// Starts the server of `goodput` (the path of the binary) with the scenario's arguments, and
    /// waits until it listens.
    pub fn start(lab: &Lab, scenario: &Scenario, goodput: &Path) -> Result<Self, LabError> {
        let target = lab.far().address(Family::V4).to_string();
        let mut command = super::command(lab.far(), goodput)?;
        command.args(["serve", "--bind", &target]).args(&scenario.run.server);
        let mut process = Process::start(command, "goodput serve in far")?;
        process.wait_for_line(LISTENING, LISTEN_WITHIN)?;
        Ok(Self { process, target })
    }

    /// What a client in near gives as its target.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// Its process number.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// What it wrote to stderr so far.
    pub fn stderr(&self) -> String {
        self.process.stderr()
    }

    /// Asks it to stop, and waits for that.
    pub fn stop(self) -> Result<(), LabError> {
        self.process.stop(STOP_WITHIN)
    }
}
