//! What other hosts show of a test, if their servers permit it: packets that the far host captures, and the queueing
//! discipline of a router.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use goodput_lab::{Host, Lab, Scenario};
use goodput_model::Family;
use goodput_testing::wait_for;
use libtest_mimic::Failed;
use serde_json::Value;
use tempfile::TempDir;

use crate::disturbed::{Judgement, judged};
use crate::neighbours::{Needs, Test};
use crate::stage::exe;

/// Every test of this file.
pub fn all() -> Vec<Test> {
    vec![
        Test::of_facts("shaping_elsewhere::the_far_host_captures", the_far_host_captures),
        Test::of_facts(
            "shaping_elsewhere::a_far_host_that_captures_nothing_is_measured_with",
            a_far_host_that_captures_nothing_is_measured_with,
        ),
        Test::of_facts(
            "shaping_elsewhere::a_client_that_dies_leaves_no_capture",
            a_client_that_dies_leaves_no_capture,
        ),
        Test::of_facts("shaping_elsewhere::a_router_is_asked", a_router_is_asked),
        judged(
            "shaping_elsewhere::another_program_is_judged_by_tcp",
            Needs::of_rate(20e6),
            another_program_is_judged_by_tcp,
        ),
    ]
}

const TOKEN: &str = "0f1e2d3c4b5a69788796a5b4c3d2e1f0";
const PATH: &str = "name = \"path\"\ntitle = \"A path of two hosts.\"\n[link.path]\n";
const ROUTER: &str = "name = \"router\"\ntitle = \"A router shapes.\"\n[link.near-router]\n[link.router-far]\n\
    [[fault]]\nkind = \"tbf\"\nhost = \"router\"\nrate = \"20mbit\"\nburst = \"20000\"\nlimit = \"100k\"\n";

/// Hosts, and a folder for what the test makes.
struct Hosts {
    lab: Lab,
    folder: TempDir,
}

/// A server in its usual sandbox, which knows a token. It ends with this.
struct Server {
    process: Child,
    target: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Hosts {
    fn up(scenario: &str) -> Result<Self, Failed> {
        let scenario: Scenario = scenario.parse()?;
        let (lab, folder) = (Lab::up(&scenario)?, tempfile::tempdir()?);
        let token = folder.path().join("token");
        std::fs::write(&token, TOKEN)?;
        std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o600))?;
        Ok(Self { lab, folder })
    }

    fn file(&self, name: &str) -> String {
        self.folder.path().join(name).to_string_lossy().into_owned()
    }

    /// A server at a host, with these options. `before`: a program that starts it.
    fn serve(&self, host: &Host, before: &[&str], more: &[&str]) -> Result<Server, Failed> {
        let program = exe().to_string_lossy();
        let words: Vec<&str> = before.iter().copied().chain([&*program]).collect();
        let mut command = host.command(words[0])?;
        command.args(&words[1..]).args(["serve", "--port", "0", "--token-file"]);
        command.arg(self.file("token")).args(more);
        self.begin(host, command)
    }

    fn serve_without_token(&self, host: &Host) -> Result<Server, Failed> {
        let mut command = host.command(exe())?;
        command.args(["serve", "--port", "0"]);
        self.begin(host, command)
    }

    fn begin(&self, host: &Host, mut command: Command) -> Result<Server, Failed> {
        command.env("GOODPUT_STATE_DIR", self.file("server"));
        let mut process = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        if let Some(stdout) = process.stdout.take() {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        let port = line.trim().rsplit_once(':').map(|(_, port)| port.to_owned());
        let port = port.unwrap_or_default();
        let server = Server { process, target: format!("{}:{port}", host.address(Family::V4)) };
        match port.parse::<u16>() {
            Ok(_) => Ok(server),
            Err(_) => Err(format!("the server says {line:?}").into()),
        }
    }

    fn goodput(&self, words: &[&str]) -> Result<Command, Failed> {
        let mut command = self.lab.near().command(exe())?;
        command
            .env("GOODPUT_STATE_DIR", self.file("state"))
            .env("XDG_CONFIG_HOME", self.file("own"));
        command.args(words).args(["--no-store", "--json"]).stdin(Stdio::null());
        Ok(command)
    }
}

fn record(output: &Output) -> Result<Value, Failed> {
    let said = || String::from_utf8_lossy(&output.stderr).into_owned();
    Ok(serde_json::from_slice(&output.stdout).map_err(|_| said())?)
}

fn holds(is_so: bool, otherwise: impl std::fmt::Display) -> Result<(), Failed> {
    if is_so { Ok(()) } else { Err(otherwise.to_string().into()) }
}

/// It has the packets of the flow, and of nothing else that passes between both hosts.
fn the_far_host_captures() -> Result<(), Failed> {
    let hosts = Hosts::up(PATH)?;
    let server = hosts.serve(hosts.lab.far(), &[], &["--allow-capture"])?;
    let (near, far, token) = (hosts.file("near"), hosts.file("far"), hosts.file("token"));
    let far_file = format!("far:{far}");
    let words = ["test", &server.target, "-n", "1M", "--token-file", &token];
    let captures = ["--pcap", &near, "--pcap", &far_file];
    let output = hosts.goodput(&[&words[..], &captures].concat())?.output()?;
    let record = record(&output)?;
    let capture = &record["far_capture"];
    let sent = |one: &Value| one["sender"] == "near" && one["transport"] == "tcp";
    let payload = capture["payload"].as_array();
    holds(payload.is_some_and(|all| all.iter().any(sent)), capture)?;
    holds(capture["device"] == hosts.lab.far().device() && capture["file"] == *far, capture)?;
    holds(record["capture"]["file"] == *near, &record["capture"])?;
    if !Path::new("/usr/bin/tcpdump").exists() {
        goodput_testing::skip("tcpdump");
        return Ok(());
    }
    let read = Command::new("tcpdump").args(["-n", "-r", &far]).output()?;
    let read = String::from_utf8_lossy(&read.stdout).into_owned();
    holds(capture["packets"] == read.lines().count(), capture)?;
    let port = &record["connections"][0]["local"];
    let port = port.as_str().and_then(|local| local.rsplit_once(':')).map(|(_, port)| port);
    let port = format!(".{}", port.unwrap_or_default());
    let is_own =
        |line: &str| line.contains(&format!("{port} ")) || line.contains(&format!("{port}:"));
    holds(read.lines().all(is_own), &read)?;
    // The first packet of the flow passed before the server knew its port.
    holds(read.lines().next().is_some_and(|line| line.contains("Flags [S]")), &read)
}

/// What starts the server, its options, what the client shows, and the reason.
type Case<'a> = (&'a [&'a str], &'a [&'a str], &'a [&'a str], &'a str);

/// The test goes on, says why, and leaves no empty file.
fn a_far_host_that_captures_nothing_is_measured_with() -> Result<(), Failed> {
    let hosts = Hosts::up(PATH)?;
    let (token, file) = (hosts.file("token"), hosts.file("far"));
    let known = ["--token-file", token.as_str()];
    let without = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--"];
    let permits = ["--allow-capture"];
    let cases: [Case<'_>; 4] = [
        (&[], &[], &known, "does not permit it"),
        (&[], &permits, &[], "only for clients with a token or a key"),
        (&[], &["--allow-capture", "--private"], &known, "--private"),
        (&without, &permits, &known, "that takes CAP_NET_RAW"),
    ];
    for (before, options, shown, words) in cases {
        let server = hosts.serve(hosts.lab.far(), before, options)?;
        let capture = format!("far:{file}");
        let own = ["test", &server.target, "-n", "100K", "--pcap", &capture];
        let output = hosts.goodput(&[&own[..], shown].concat())?.output()?;
        let record = record(&output)?;
        let why = record["far_capture"]["missing"].as_str();
        holds(why.is_some_and(|why| why.contains(words)), &record["far_capture"])?;
        holds(record["doubts"].to_string().contains(words), &record["doubts"])?;
        holds(record["result"]["goodput_bits_per_s"].as_f64() > Some(0.0), &record["result"])?;
        holds(output.status.code() != Some(3), format!("{:?}", output.status))?;
        holds(!Path::new(&file).exists(), "an empty file is left")?;
    }
    Ok(())
}

/// Packet sockets in the namespace of a process (the file has a line of titles).
fn packet_sockets(pid: u32) -> usize {
    let listed = std::fs::read_to_string(format!("/proc/{pid}/net/packet")).unwrap_or_default();
    listed.lines().count().saturating_sub(1)
}

fn a_client_that_dies_leaves_no_capture() -> Result<(), Failed> {
    let hosts = Hosts::up(PATH)?;
    let server = hosts.serve(hosts.lab.far(), &[], &["--allow-capture"])?;
    let pid = server.process.id();
    let (token, capture) = (hosts.file("token"), format!("far:{}", hosts.file("far")));
    let words = ["test", &server.target, "-t", "50", "--token-file", &token, "--pcap", &capture];
    let mut client = hosts.goodput(&words)?.stdout(Stdio::null()).spawn()?;
    wait_for("the capture to begin", || packet_sockets(pid) == 1);
    client.kill()?;
    client.wait()?;
    wait_for("the capture to end", || packet_sockets(pid) == 0);
    Ok(())
}

/// The shaper of the router explains, if its server permits that; otherwise nothing is measured.
fn a_router_is_asked() -> Result<(), Failed> {
    let hosts = Hosts::up(ROUTER)?;
    let router = hosts.lab.host("router").ok_or("no router")?;
    let far = hosts.serve(hosts.lab.far(), &[], &[])?;
    let without = hosts.serve_without_token(hosts.lab.far())?;
    let token = hosts.file("token");
    for (permits, file) in [(true, "--router-token-file"), (false, "--token-file")] {
        let options: &[&str] = if permits { &["--allow-qdiscs"] } else { &[] };
        let asked = hosts.serve(router, &[], options)?;
        let target = if permits { &without.target } else { &far.target };
        let words = ["shaping", target, "--rate", "20mbit", "--router", &asked.target];
        let output = hosts.goodput(&[&words[..], &[file, &token]].concat())?.output()?;
        if permits {
            let shaper = &record(&output)?["shaping"]["shaper"];
            let is_right = shaper["router"] == *asked.target && shaper["kind"] == "tbf";
            holds(is_right && shaper["rate_bits_per_s"] == 2e7, shaper)?;
        } else {
            let said = String::from_utf8_lossy(&output.stderr);
            let is_refused = output.status.code() == Some(3) && output.stdout.is_empty();
            holds(is_refused && said.contains("--allow-qdiscs"), said)?;
        }
    }
    Ok(())
}

/// A shaper of this host towards a server that reports no datagrams: TCP alone passes, and fails.
fn another_program_is_judged_by_tcp() -> Result<Judgement, Failed> {
    let shaped = format!(
        "{PATH}[[fault]]\nkind = \"tbf\"\nhost = \"near\"\nrate = \"20mbit\"\nburst = \"100000\"\nlimit = \"150k\"\n"
    );
    let hosts = Hosts::up(&shaped)?;
    let server = hosts.serve_without_token(hosts.lab.far())?;
    let target = format!("iperf3://{}", server.target);
    for (rate, code) in [("20mbit", 0), ("40mbit", 1)] {
        let words = ["shaping", &target, "--rate", rate, "--tolerance", "10%"];
        let output = hosts.goodput(&words)?.output()?;
        let test = &record(&output)?["shaping"];
        let says = test["reasons"].to_string().contains("judged by TCP alone");
        holds(says, test)?;
        if output.status.code() != Some(code) {
            return Ok(Judgement::Open(format!("{rate}: {:?}: {test}", output.status)));
        }
    }
    Ok(Judgement::Right)
}
