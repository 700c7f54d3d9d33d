//! What was measured is not lost, however slow or short-lived the way is by which the far end reports.

use std::io::Read;
use std::process::Stdio;

use goodput_lab::{Lab, Scenario, Server};
use goodput_model::{Known, Record};
use libtest_mimic::Failed;

use crate::neighbours::Test;
use crate::stage::exe;

/// Every test of this file.
pub fn all() -> Vec<Test> {
    vec![
        Test::of_facts("slow_back::eight_flows_are_reported", eight_flows_are_reported),
        Test::of_facts("slow_back::a_lost_report_is_missing", a_lost_report_is_missing),
    ]
}

/// 100 kbit/s back, which acknowledgements fill.
fn scenario() -> Result<Scenario, Failed> {
    let text = "name = \"slow-back\"\ntitle = \"The way back carries next to nothing.\"\n\
        [link.path]\nrate = \"100mbit\"\ndelay = \"2ms\"\nback = { rate = \"100kbit\" }\n\
        [expect]\nlimit = \"ack-path\"\nend = \"path\"\n";
    Ok(Scenario::parse("slow-back", text)?)
}

fn record(stdout: &[u8], stderr: &[u8]) -> Result<Record, Failed> {
    let said = String::from_utf8_lossy(stderr);
    Ok(serde_json::from_slice(stdout).map_err(|error| format!("{error}: {said}"))?)
}

fn eight_flows_are_reported() -> Result<(), Failed> {
    let scenario = scenario()?;
    let lab = Lab::up(&scenario)?;
    let server = Server::start(&lab, &scenario, exe())?;
    let mut command = lab.near().command(exe())?;
    let arguments = ["test", server.target(), "--json", "--no-store", "-P", "8", "-t", "5"];
    let output = command.args(arguments).output()?;
    let record = record(&output.stdout, &output.stderr)?;
    server.stop()?;
    let Known::Value(far) = &record.ends.far else {
        return Err(format!("{:?}", record.ends.far).into());
    };
    let counted = far.samples.last().is_some_and(|last| last.received_bytes > 0);
    let direction = record.result.directions.first().ok_or("no direction")?;
    match (&direction.received_bytes, &record.incomplete) {
        (Known::Value(1..), None) if counted && !far.after.facts.is_empty() => Ok(()),
        other => Err(format!("{other:?}: {:?}", record.doubts).into()),
    }
}

/// The server dies while payload moves.
fn a_lost_report_is_missing() -> Result<(), Failed> {
    let scenario = scenario()?;
    let lab = Lab::up(&scenario)?;
    let server = Server::start(&lab, &scenario, exe())?;
    let mut command = lab.near().command(exe())?;
    let arguments = ["test", server.target(), "--json-stream", "--no-store", "-P", "2", "-t", "60"];
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let mut stdout = child.stdout.take().ok_or("stdout is piped")?;
    let mut seen = String::new();
    while seen.matches("\"event\":\"interval\"").count() < 2 {
        let mut some = [0; 4096];
        match stdout.read(&mut some)? {
            0 => return Err(format!("it ended: {seen}").into()),
            read => seen += &String::from_utf8_lossy(&some[..read]),
        }
    }
    let pid =
        rustix::process::Pid::from_raw(server.pid() as i32).ok_or("a process has a number")?;
    rustix::process::kill_process(pid, rustix::process::Signal::KILL)?;
    stdout.read_to_string(&mut seen)?;
    let output = child.wait_with_output()?;
    let last = seen.lines().last().unwrap_or_default();
    let line: serde_json::Value = serde_json::from_str(last)?;
    let record: Record = serde_json::from_value(line["record"].clone())?;
    let said = String::from_utf8_lossy(&output.stderr);
    let why = record.incomplete.as_deref().unwrap_or_default();
    let is_kept = record.result.goodput_bits_per_s.0 > 0.0 && !record.intervals.is_empty();
    if output.status.code() != Some(2) || !is_kept || !why.contains("cut short") {
        return Err(format!("{}: {why}: {said}", output.status).into());
    }
    // Dropped without a word to a server that is gone.
    drop(server);
    Ok(())
}
