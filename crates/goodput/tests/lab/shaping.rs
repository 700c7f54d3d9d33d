//! The oldest question of `goodput shaping`, end to end: told 100 Mbit/s, gives 0.14; without segmentation offload less than
//! 100; with a sufficient bucket all of it. And what `--prove` says where nothing can be compared.

use std::path::Path;
use std::process::Output;

use goodput_lab::{Host, Lab, Scenario, Server};
use libtest_mimic::Failed;
use serde_json::Value;

use crate::disturbed::{self, Judgement};
use crate::neighbours::{Needs, Test};
use crate::stage::exe;

/// What the shaper is told, bits per second.
const TOLD: f64 = 100e6;

/// Every test of this file.
pub fn all() -> Vec<Test> {
    vec![
        disturbed::judged("shaping::the_old_page", Needs::All, the_old_page),
        disturbed::judged("shaping::the_bucket_is_proven", Needs::All, the_bucket_is_proven),
        Test::of_facts("shaping::a_schedule_and_its_history", a_schedule_and_its_history),
        Test::of_facts(
            "shaping::without_privileges_nothing_is_proven",
            without_privileges_nothing_is_proven,
        ),
    ]
}

/// Hosts of a scenario of the how-tos, with a server at the far one.
struct Hosts {
    lab: Lab,
    server: Server,
    directory: tempfile::TempDir,
}

impl Hosts {
    fn up(file: &str) -> Result<Self, Failed> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/howto");
        let path = folder.join(file).to_string_lossy().into_owned();
        let scenario = Scenario::load(&path)?;
        let lab = Lab::up(&scenario)?;
        let server = Server::start(&lab, &scenario, exe())?;
        Ok(Self { lab, server, directory: tempfile::tempdir()? })
    }

    fn on(&self, host: &Host, words: &[&str]) -> Result<Output, Failed> {
        let mut command = host.command(exe())?;
        command.env("GOODPUT_STATE_DIR", self.directory.path().join("state"));
        command.env("XDG_DATA_HOME", self.directory.path());
        Ok(command.args(words).output()?)
    }

    /// The record of `goodput shaping`, with these options.
    fn shaping(&self, more: &[&str]) -> Result<(Value, Option<i32>), Failed> {
        let base = ["shaping", self.server.target(), "--rate", "100mbit", "--json"];
        let output = self.on(self.lab.near(), &[&base[..], more].concat())?;
        let said = || String::from_utf8_lossy(&output.stderr).into_owned();
        let record = serde_json::from_slice(&output.stdout).map_err(|_| said())?;
        Ok((record, output.status.code()))
    }

    fn set(&self, host: &Host, assignment: &str) -> Result<(), Failed> {
        let output = self.on(host, &["settings", "set", assignment])?;
        let said = || String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() { Ok(()) } else { Err(said().into()) }
    }
}

fn causes(record: &Value) -> Vec<&str> {
    let causes = record["shaping"]["causes"].as_array();
    causes.into_iter().flatten().filter_map(|cause| cause["id"].as_str()).collect()
}

/// The rate that TCP gets, in what the shaper counts.
fn tcp(record: &Value) -> f64 {
    record["shaping"]["tcp_bits_per_s"]["value"].as_f64().unwrap_or(0.0)
}

/// TSO meets a check of lengths in a router that shapes with a bucket of one packet; then single packets meet the
/// bucket; then the bucket is the computed one.
fn the_old_page() -> Result<Judgement, Failed> {
    let hosts = Hosts::up("shaped-router.toml")?;
    let (collapsed, _) = hosts.shaping(&["--no-store"])?;
    let found = causes(&collapsed);
    let limit = &collapsed["verdict"]["limit"];
    let evidence = collapsed["findings"][0]["evidence"].to_string();
    let named = found.contains(&"tcp-limit") && limit == "tso-oversize";
    if !named || !found.contains(&"elsewhere") || !evidence.contains("a burst each") {
        return Ok(Judgement::Open(format!("{limit} {found:?} {evidence}")));
    }
    hosts.set(hosts.lab.near(), "offload.tso@to-router=off")?;
    let (single, _) = hosts.shaping(&["--no-store"])?;
    // Whether single packets lose much to a bucket of one packet depends on how fast this machine's timers are.
    if tcp(&single) < 10.0 * tcp(&collapsed) {
        return Ok(Judgement::Open(format!("{} of {}", tcp(&single), tcp(&collapsed))));
    }
    let enough = &single["shaping"]["enough_bucket"]["bytes"];
    let router = hosts.lab.host("router").ok_or("it has a router")?;
    hosts.set(router, &format!("qdisc.tbf.burst@{}={enough}", router.device()))?;
    let (whole, _) = hosts.shaping(&["--no-store"])?;
    hosts.server.stop()?;
    Ok(match tcp(&whole) >= 0.95 * TOLD {
        true => Judgement::Right,
        false => Judgement::Open(whole["shaping"].to_string()),
    })
}

/// The bucket makes the difference, offload does not, and all is as it was.
fn the_bucket_is_proven() -> Result<Judgement, Failed> {
    let hosts = Hosts::up("bucket.toml")?;
    let (record, _) = hosts.shaping(&["--no-store", "--prove", "--max-time", "90s"])?;
    let (proof, settings) = (&record["shaping"]["proof"], &record["comparison"]["settings"]);
    let named: Vec<_> = settings.as_array().into_iter().flatten().map(|s| &s["name"]).collect();
    if !record["shaping"]["not_proven"].is_null() {
        return Ok(Judgement::Open(record["shaping"]["not_proven"].to_string()));
    }
    if named != ["offload.tso", "qdisc.tbf.burst"] {
        return Err(format!("{named:?}: {}", record["shaping"]["not_proven"]).into());
    }
    let burst = hosts.on(hosts.lab.near(), &["settings", "get", "qdisc.tbf.burst@to-far"])?;
    if burst.stdout.trim_ascii() != b"1600" {
        return Err("the bucket was not put back".into());
    }
    hosts.server.stop()?;
    // Of the combinations, only the ones with the larger bucket may give the rate.
    Ok(match proof["gives"].as_u64() {
        Some(arm) => {
            let values = record["comparison"]["arms"][arm as usize]["values"].to_string();
            let commands = proof["commands"].to_string();
            let right = !values.contains("1600") && commands.contains("tc qdisc change dev to-far");
            if right { Judgement::Right } else { Judgement::Open(proof.to_string()) }
        }
        None => Judgement::Open(proof.to_string()),
    })
}

/// A user without capabilities gets the test, the reason, and exit code 3.
fn without_privileges_nothing_is_proven() -> Result<(), Failed> {
    let hosts = Hosts::up("bucket.toml")?;
    let mut command = hosts.lab.near().command("setpriv")?;
    command.args(["--bounding-set=-all", "--inh-caps=-all", "--"]).arg(exe());
    command.env("GOODPUT_STATE_DIR", hosts.directory.path());
    command.args(["shaping", hosts.server.target(), "--rate", "100mbit"]);
    let output = command.args(["--prove", "--no-store", "--json"]).output()?;
    hosts.server.stop()?;
    let said = || String::from_utf8_lossy(&output.stderr).into_owned();
    let record: Value = serde_json::from_slice(&output.stdout).map_err(|_| said())?;
    let not = &record["shaping"]["not_proven"];
    let is_refused = not["not_permitted"] == true && record["shaping"]["proof"].is_null();
    match output.status.code() {
        Some(3) if is_refused && record["shaping"]["confirmation"].is_string() => Ok(()),
        code => Err(format!("{code:?}: {not}").into()),
    }
}

/// The units repeat the command, and the history knows the last test.
fn a_schedule_and_its_history() -> Result<(), Failed> {
    let hosts = Hosts::up("bucket.toml")?;
    let timer = hosts.on(
        hosts.lab.near(),
        &["shaping", "nas", "--rate", "100mbit", "--show-timer=*-*-* 14:05:00"],
    )?;
    let units = String::from_utf8_lossy(&timer.stdout).into_owned();
    let file = "# /etc/systemd/system/goodput-shaping-nas-100-Mbit-s.timer";
    for line in [file, "OnCalendar=*-*-* 14:05:00"] {
        if !units.lines().any(|one| one == line) {
            return Err(format!("no {line} in {units}").into());
        }
    }
    let exec = units.lines().find(|line| line.starts_with("ExecStart="));
    if exec.is_none_or(|line| !line.ends_with(" shaping nas --rate 100mbit")) {
        return Err(units.into());
    }
    let (first, _) = hosts.shaping(&[])?;
    let (second, _) = hosts.shaping(&[])?;
    hosts.server.stop()?;
    let since = |record: &Value| record["shaping"]["since"]["started"].clone();
    if since(&first).is_null() && since(&second) == first["started"] {
        return Ok(());
    }
    Err(format!("{} {} {}", since(&first), since(&second), first["started"]).into())
}
