//! What `goodput shaping` says when nothing can be compared, its schedule and its history. The how-to on shapers, which
//! `howtos.rs` types, is the test of what it measures and proves.

use std::path::Path;
use std::process::Output;

use goodput_lab::{Host, Lab, Scenario, Server};
use libtest_mimic::Failed;
use serde_json::Value;

use crate::neighbours::Test;
use crate::stage::exe;

/// Every test of this file.
pub fn all() -> Vec<Test> {
    vec![
        Test::of_facts("shaping::a_schedule_and_its_history", a_schedule_and_its_history),
        Test::of_facts("shaping::a_capture_is_kept_and_read", a_capture_is_kept_and_read),
        Test::of_facts(
            "shaping::without_the_capability_nothing_begins",
            without_the_capability_nothing_begins,
        ),
        Test::of_facts(
            "shaping::without_privileges_nothing_is_proven",
            without_privileges_nothing_is_proven,
        ),
        Test::of_facts(
            "shaping::what_the_device_can_not_do_is_not_compared",
            what_the_device_can_not_do_is_not_compared,
        ),
        Test::of_facts(
            "shaping::a_limit_in_its_own_firewall_is_named",
            a_limit_in_its_own_firewall_is_named,
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
        let base = ["shaping", self.server.target(), "--rate", "1gbit", "--json"];
        let output = self.on(self.lab.near(), &[&base[..], more].concat())?;
        let said = || String::from_utf8_lossy(&output.stderr).into_owned();
        let record = serde_json::from_slice(&output.stdout).map_err(|_| said())?;
        Ok((record, output.status.code()))
    }
}

/// The capture has the super-packets of TCP, which leave this host whole, and tcpdump reads as many packets.
fn a_capture_is_kept_and_read() -> Result<(), Failed> {
    let hosts = Hosts::up("shaped-router.toml")?;
    let file = hosts.directory.path().join("own.pcapng");
    let file = file.to_string_lossy();
    let (record, _) = hosts.shaping(&["--pcap", &file, "--no-store"])?;
    hosts.server.stop()?;
    let capture = &record["capture"];
    let tcp = capture["payload"]
        .as_array()
        .and_then(|all| all.iter().find(|one| one["transport"] == "tcp"));
    let largest = tcp.and_then(|tcp| tcp["largest_bytes"].as_u64());
    // On a busy machine the kernel drops packets; that it counts them is enough.
    if capture["failure"].is_string()
        || !capture["dropped"].is_u64()
        || largest.is_none_or(|bytes| bytes <= 1500)
    {
        return Err(format!("{capture}").into());
    }
    if !Path::new("/usr/bin/tcpdump").exists() {
        goodput_testing::skip("tcpdump");
        return Ok(());
    }
    let read = std::process::Command::new("tcpdump").args(["-n", "-r", &file]).output()?;
    let lines = String::from_utf8_lossy(&read.stdout).lines().count() as u64;
    match capture["packets"].as_u64() == Some(lines) {
        true => Ok(()),
        false => Err(format!("tcpdump reads {lines} of {}", capture["packets"]).into()),
    }
}

/// A capture that can't begin ends the test before any traffic, with what is missing.
fn without_the_capability_nothing_begins() -> Result<(), Failed> {
    let hosts = Hosts::up("bucket.toml")?;
    let mut command = hosts.lab.near().command("setpriv")?;
    command.args(["--bounding-set=-all", "--inh-caps=-all", "--"]).arg(exe());
    command.args(["test", hosts.server.target(), "--no-store", "--pcap", "/dev/null"]);
    let output = command.output()?;
    hosts.server.stop()?;
    let said = String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        Some(3) if said.contains("that takes CAP_NET_RAW") => Ok(()),
        code => Err(format!("{code:?}: {said}").into()),
    }
}

/// A user without capabilities gets the reason before any traffic, and exit code 3.
fn without_privileges_nothing_is_proven() -> Result<(), Failed> {
    let hosts = Hosts::up("bucket.toml")?;
    let mut command = hosts.lab.near().command("setpriv")?;
    command.args(["--bounding-set=-all", "--inh-caps=-all", "--"]).arg(exe());
    command.env("GOODPUT_STATE_DIR", hosts.directory.path());
    command.args(["shaping", hosts.server.target(), "--rate", "1gbit"]);
    let output = command.args(["--prove", "--no-store", "--json"]).output()?;
    hosts.server.stop()?;
    let said = String::from_utf8_lossy(&output.stderr);
    let is_refused = said.contains("--prove changes settings of the near host");
    match output.status.code() {
        Some(3) if is_refused && output.stdout.is_empty() => Ok(()),
        code => Err(format!("{code:?}: {said}").into()),
    }
}

/// `goodput test -u` through a rule of the sender that lets a third of the datagrams pass: it is no loss of the path.
fn a_limit_in_its_own_firewall_is_named() -> Result<(), Failed> {
    const RULES: &str = "table inet goodput_test { chain own { type filter hook output priority 0; \
        meta length > 1000 limit rate over 1000/second burst 20 packets drop; }; }";
    if !["/usr/sbin/nft", "/sbin/nft"].iter().any(|file| Path::new(file).exists()) {
        goodput_testing::skip("nft");
        return Ok(());
    }
    let hosts = Hosts::up("bucket.toml")?;
    let set = hosts.lab.near().command("nft")?.arg(RULES).output()?;
    if !set.status.success() {
        return Err(String::from_utf8_lossy(&set.stderr).into_owned().into());
    }
    let words =
        ["test", hosts.server.target(), "-u", "--rate", "40mbit", "--time", "2", "--no-store"];
    let output = hosts.on(hosts.lab.near(), &[&words[..], &["--json"]].concat())?;
    hosts.server.stop()?;
    let said = || String::from_utf8_lossy(&output.stderr).into_owned();
    let record: Value = serde_json::from_slice(&output.stdout).map_err(|_| said())?;
    let finding = &record["findings"][0];
    let text = finding["evidence"][0]["text"].as_str().unwrap_or_default();
    let is_named = record["verdict"]["limit"] == "own-firewall" && finding["end"] == "near";
    match is_named && text.contains("refused") {
        true => Ok(()),
        false => Err(format!("{}, {}", record["verdict"], record["findings"]).into()),
    }
}

/// Without scatter and gather there is no segmentation offload to switch on; the bucket is compared all the same.
fn what_the_device_can_not_do_is_not_compared() -> Result<(), Failed> {
    let hosts = Hosts::up("bucket.toml")?;
    hosts.on(hosts.lab.near(), &["settings", "set", "offload.sg@to-far=off"])?;
    let (record, _) = hosts.shaping(&["--prove", "--max-time", "10s", "--no-store"])?;
    hosts.server.stop()?;
    let shaping = &record["shaping"];
    let left_out = shaping["proof"]["left_out"].to_string();
    let arms = shaping["proof"]["arms"].as_array().map_or(0, Vec::len);
    match left_out.contains("not compared: offload.tso@to-far: set to") && arms == 2 {
        true => Ok(()),
        false => Err(format!("{}, {}", shaping["proof"], shaping["not_proven"]).into()),
    }
}

/// The units repeat the command, and the history knows the last test.
fn a_schedule_and_its_history() -> Result<(), Failed> {
    let hosts = Hosts::up("bucket.toml")?;
    let timer = hosts.on(
        hosts.lab.near(),
        &[
            ["shaping", "nas", "--rate", "1gbit", "--token-file", "token"].as_slice(),
            &["--show-timer=*-*-* 14:05:00"],
        ]
        .concat(),
    )?;
    let units = String::from_utf8_lossy(&timer.stdout).into_owned();
    let file = "# /etc/systemd/system/goodput-shaping-nas-1-Gbit-s.timer";
    // The file with the token is sought from here.
    let directory = format!("WorkingDirectory={}", std::env::current_dir()?.display());
    for line in [file, "OnCalendar=*-*-* 14:05:00", &directory] {
        if !units.lines().any(|one| one == line) {
            return Err(format!("no {line} in {units}").into());
        }
    }
    let exec = units.lines().find(|line| line.starts_with("ExecStart="));
    if exec.is_none_or(|line| !line.ends_with(" --rate 1gbit --token-file token")) {
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
