//! The program, at a home of its own.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use goodput_lab::{Lab, Scenario, Server};
use goodput_model::Record;
use libtest_mimic::Failed;

/// The program under test.
pub fn exe() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_goodput"))
}

/// What it prints with these arguments; an error if it fails.
pub fn goodput(arguments: &[&str]) -> Result<String, Failed> {
    let mut command = Command::new(exe());
    let output = at_home(command.args(arguments))?;
    if !output.status.success() {
        return Err(format!("{arguments:?}: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The record of a test from the near to the far host of a lab.
pub fn measure(lab: &Lab, scenario: &Scenario, arguments: &[&str]) -> Result<Record, Failed> {
    record(lab, scenario, "test", arguments)
}

/// The record of a verb, from the near to the far host of a lab.
pub fn record(
    lab: &Lab,
    scenario: &Scenario,
    verb: &str,
    arguments: &[&str],
) -> Result<Record, Failed> {
    let server = Server::start(lab, scenario, exe())?;
    let mut command = lab.near().command(exe())?;
    command.args([verb, server.target(), "--json", "--no-store"]).args(arguments);
    let output = at_home(&mut command)?;
    let record = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("{error}: {}", String::from_utf8_lossy(&output.stderr)))?;
    server.stop()?;
    Ok(record)
}

fn at_home(command: &mut Command) -> Result<Output, Failed> {
    let home = tempfile::tempdir()?;
    command.env("XDG_DATA_HOME", home.path()).env("XDG_CONFIG_HOME", home.path());
    command.env("GOODPUT_STATE_DIR", home.path().join("state")).stdin(Stdio::null());
    // A phrase that a test looks for is in one line.
    command.env("COLUMNS", "1000");
    Ok(command.output()?)
}
