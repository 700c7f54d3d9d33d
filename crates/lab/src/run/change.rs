//! Verbs that change settings of a scenario's hosts: comparing a change, and tuning.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use goodput_model::Record;

use super::{
    CLIENT_TIMEOUT, Failed, Process, Server, beside, command, length, observe, pin, target,
};
use crate::error::LabError;
use crate::faults::PlantTime;
use crate::host_name::HostName;
use crate::lab::Lab;
use crate::scenario::Scenario;

/// The token that lets the near host change settings of the far one. The lab's hosts reach nobody else.
const TOKEN: &str = "5e0c7a91d3f2486bb8a4e61f09c27d35";

/// Length of a run, seconds: short, enough for an effect that is not small.
const RUN_S: &str = "1";

/// Brings `scenario` up and compares the values of `factor`, `SETTING=A,B`, in it for at most `max_time_s` seconds, with
/// short runs, enough for an effect that is not small. Returns the record of the comparison, or how it failed. Files are
/// kept in `folder`, including the journal of settings. Call [`crate::privilege::enter`] first.
///
/// # Errors
/// If the hosts can't be made, or the server does not come up.
pub fn compare(
    scenario: &Scenario,
    goodput: &Path,
    factor: &str,
    max_time_s: f64,
    folder: &Path,
) -> Result<Result<Record, Failed>, LabError> {
    let arguments = [vec![factor], length(scenario, RUN_S)].concat();
    change(scenario, goodput, "compare", &arguments, max_time_s, folder)
}

/// Brings `scenario` up and tunes its path for at most `max_time_s` seconds, with settings of both hosts. Returns the
/// record, or how it failed. Files are kept as in [`compare`]. Call [`crate::privilege::enter`] first.
///
/// # Errors
/// If the hosts can't be made, or the server does not come up.
pub fn tune(
    scenario: &Scenario,
    goodput: &Path,
    max_time_s: f64,
    folder: &Path,
) -> Result<Result<Record, Failed>, LabError> {
    change(scenario, goodput, "tune", &[], max_time_s, folder)
}

/// Runs a verb with its arguments for at most `max_time_s` seconds. The far host lets it change all settings there.
fn change(
    scenario: &Scenario,
    goodput: &Path,
    verb: &str,
    arguments: &[&str],
    max_time_s: f64,
    folder: &Path,
) -> Result<Result<Record, Failed>, LabError> {
    let token = token_file(folder)?;
    let mut scenario = scenario.clone();
    scenario.run.server.extend(token.clone());
    scenario.run.server.extend(["--allow-settings".to_owned(), "*".to_owned()]);
    let mut lab = Lab::up(&scenario)?;
    let server = Server::start(&lab, &scenario, goodput)?;
    let far = server.pid();
    lab.plant(&scenario, PlantTime::ProcessRuns, |host| (host == HostName::Far).then_some(far))?;
    let mut command = command(lab.near(), goodput)?;
    pin(&mut command, &scenario);
    command.arg(verb).arg(target(&lab, &scenario)).args(arguments);
    command.args(["--max-time", &max_time_s.to_string()]);
    command.args(["--json", "--no-store"]).args(token);
    command.args(&scenario.run.client).env("GOODPUT_STATE_DIR", folder.join("state"));
    let client = Process::start(command, &format!("goodput {verb} in near"))?;
    let near = client.pid();
    lab.plant(&scenario, PlantTime::ProcessRuns, |host| (host == HostName::Near).then_some(near))?;
    let within = CLIENT_TIMEOUT + Duration::from_secs_f64(max_time_s);
    let finished = client.finish(within).map_err(|why| beside(why, &server.process))?;
    server.stop()?;
    Ok(observe(&scenario, finished).record)
}

/// The option that names a file with the token, readable only by its owner.
fn token_file(folder: &Path) -> Result<[String; 2], LabError> {
    let path = folder.join("token");
    let options =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path);
    let written = options.and_then(|mut file| file.write_all(TOKEN.as_bytes()));
    let object = path.display().to_string();
    written.map_err(|source| LabError::Io { what: "write", object: object.clone(), source })?;
    Ok(["--token-file".into(), object])
}
