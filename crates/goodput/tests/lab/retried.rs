//! A comparison whose server dies goes on with the next one: the run that failed is discarded, with its
//! reason, and made again.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use goodput_lab::{Lab, Scenario};
use goodput_model::{Family, Known, Record, Trial as Run};
use libtest_mimic::Failed;

use crate::neighbours::Test;
use crate::stage::exe;

/// Every test of this file.
pub fn all() -> Vec<Test> {
    vec![Test::of_facts("retried::a_server_that_is_started_again", a_server_that_is_started_again)]
}

/// The hosts of a lab have all ports for themselves.
const PORT: &str = "7000";

const LINK: &str = "name = \"plain\"\ntitle = \"A link.\"\n[link.path]\n";

/// A server, which listens.
fn serve(lab: &Lab, host: &str) -> Result<Child, Failed> {
    let mut command = lab.far().command(exe())?;
    command.args(["serve", "--no-sandbox", "--bind", host, "--port", PORT]);
    let mut server = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    if let Some(stdout) = server.stdout.take() {
        BufReader::new(stdout).read_line(&mut line)?;
    }
    if line.contains("listening on") { Ok(server) } else { Err(format!("it said {line:?}").into()) }
}

fn a_server_that_is_started_again() -> Result<(), Failed> {
    let lab = Lab::up(&Scenario::parse("plain", LINK)?)?;
    let host = lab.far().address(Family::V4).to_string();
    let mut server = serve(&lab, &host)?;
    let mut command = lab.near().command(exe())?;
    let target = format!("{host}:{PORT}");
    command.args(["compare", &target, "chunk=64K,128K", "--no-store", "--json-stream"]);
    command.args(["-t", "1", "--max-time", "20"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut compare = command.spawn()?;
    let stdout = compare.stdout.take().ok_or("stdout is piped")?;
    let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
    let first = lines.find(|line| line.contains("\"event\":\"trial-ended\""));
    server.kill()?;
    server.wait()?;
    let mut server = serve(&lab, &host)?;
    let last = lines.last().or(first).unwrap_or_default();
    let ended = compare.wait_with_output()?;
    server.kill()?;
    server.wait()?;
    let said = String::from_utf8_lossy(&ended.stderr);
    let line: serde_json::Value =
        serde_json::from_str(&last).map_err(|why| format!("{why}: {last:?}: {said}"))?;
    let record: Record = serde_json::from_value(line["record"].clone())?;
    // Whether it comes to a conclusion is the machine's business.
    if record.incomplete.is_some() || !matches!(ended.status.code(), Some(0 | 4)) {
        return Err(format!("{}: {:?}: {said}", ended.status, record.incomplete).into());
    }
    let runs = record.comparison.ok_or("no comparison")?.trials;
    is_made_again(&runs).map_err(Failed::from)
}

/// Whether the first run that failed says why, and was followed by one that did not fail.
fn is_made_again(runs: &[Run]) -> Result<(), String> {
    let failed = |run: &Run| run.discarded.as_ref().is_some_and(|why| why.starts_with("failed: "));
    let all = || format!("{:?}", runs.iter().map(|run| &run.discarded).collect::<Vec<_>>());
    let at = runs.iter().position(failed).ok_or_else(|| format!("none failed: {}", all()))?;
    let again = runs[at..].iter().find(|run| !failed(run)).ok_or_else(all)?;
    let same = (again.block, again.arm) == (runs[at].block, runs[at].arm);
    let counted = again.goodput_bits_per_s.value().is_some();
    let reason = matches!(runs[at].goodput_bits_per_s, Known::Missing(_));
    if same && counted && reason { Ok(()) } else { Err(all()) }
}
