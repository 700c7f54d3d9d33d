//! A far end that goodput starts by SSH, through a real SSH server on loopback.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use goodput_testing::{Sshd, skip, wait_for};
use serde_json::Value;

use crate::common::{HALF_A_SECOND, Home, stderr, stdout, unused_ports};

/// A host by SSH that has some programs.
pub struct Host {
    pub sshd: Sshd,
    home: Home,
    /// Where its programs make their folders.
    temporary: tempfile::TempDir,
    _programs: tempfile::TempDir,
}

impl Host {
    /// `None` if this machine can't host it. `programs`: their names and where they are.
    pub fn with(programs: &[(&str, PathBuf)]) -> Option<Self> {
        let (temporary, folder) = (tempfile::tempdir().ok()?, tempfile::tempdir().ok()?);
        // What the shell's script calls; another goodput or iperf3 may be beside these.
        let basic = ["sh", "mktemp", "od", "tr", "grep", "sleep", "cat", "rm"];
        let basic = basic.map(|name| (name, find(name)));
        for (name, path) in programs.iter().chain(&basic) {
            symlink(path, folder.path().join(name)).expect("a link to a program");
        }
        let set = format!("PATH={} HOME=/nowhere", folder.path().display());
        let temporary_folder = temporary.path().display();
        let sshd = Sshd::start(&format!("TMPDIR={temporary_folder} {set} exec /bin/sh"))?;
        Some(Self { sshd, home: Home::new(), temporary, _programs: folder })
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = self.home.goodput(arguments);
        command.env("GOODPUT_SSH_CONFIG", self.sshd.config());
        command.output().expect("goodput starts")
    }

    /// Whether a server runs there.
    pub fn serves(&self) -> bool {
        std::fs::read_dir(self.temporary.path()).is_ok_and(|mut left| left.next().is_some())
    }

    /// Waits until nothing is left of a server there.
    pub fn wait_for_the_end(&self) {
        wait_for("the end of the server there", || !self.serves());
    }
}

/// Where this machine has a program.
pub fn find(name: &str) -> PathBuf {
    let found = Command::new("sh").args(["-c", "command -v \"$1\"", "sh", name]).output();
    let found = found.expect("sh starts").stdout;
    PathBuf::from(String::from_utf8_lossy(&found).trim())
}

fn goodput() -> (&'static str, PathBuf) {
    ("goodput", Path::new(env!("CARGO_BIN_EXE_goodput")).into())
}

#[test]
fn a_test_starts_a_server_there_and_ends_it() {
    let Some(host) = Host::with(&[goodput()]) else { return };
    let output = host.run(&[&["test", "ssh://b", "--json"][..], &HALF_A_SECOND].concat());
    assert!(output.status.code().is_some_and(|code| code < 2), "{}", stderr(&output));
    let record: Value = serde_json::from_str(&stdout(&output)).expect("a record");
    assert_eq!((&record["target"], &record["far_totals"]), (&"ssh://b".into(), &Value::Null));
    assert!(record["result"]["goodput_bits_per_s"].as_f64().is_some_and(|rate| rate > 0.0));
    host.wait_for_the_end();
}

#[test]
fn a_comparison_has_all_its_runs_with_one_server_there() {
    let Some(host) = Host::with(&[goodput()]) else { return };
    let length = ["-t", "0.2", "--max-time", "20s", "--precision", "50"];
    let change = ["compare", "ssh://b", "socket.nodelay=on,off", "--json"];
    let output = host.run(&[&change[..], &length].concat());
    assert!(output.status.code().is_some_and(|code| code != 2), "{}", stderr(&output));
    let record: Value = serde_json::from_str(&stdout(&output)).expect("a record");
    assert!(record["comparison"]["trials"].as_array().is_some_and(|trials| trials.len() > 2));
    host.wait_for_the_end();
}

#[test]
fn a_host_without_goodput_serves_with_iperf3() {
    let iperf3 = find("iperf3");
    if iperf3.as_os_str().is_empty() {
        return skip("iperf3");
    }
    let Some(host) = Host::with(&[("iperf3", iperf3)]) else { return };
    let port = unused_ports(1).to_string();
    let test = ["test", "ssh://b", "--far-port", &port, "--json"];
    let output = host.run(&[&test[..], &HALF_A_SECOND].concat());
    assert!(output.status.code().is_some_and(|code| code < 2), "{}", stderr(&output));
    let record: Value = serde_json::from_str(&stdout(&output)).expect("a record");
    assert!(record["far_totals"].is_object(), "{record}");
    let again = host.run(&[&test[..], &HALF_A_SECOND].concat());
    assert!(again.status.code().is_some_and(|code| code < 2), "{}", stderr(&again));
    host.wait_for_the_end();
}

#[test]
fn what_is_missing_or_taken_there_is_said() {
    let Some(host) = Host::with(&[]) else { return };
    let none = host.run(&["test", "ssh://b"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(stderr(&none).contains("neither goodput nor iperf3"), "{}", stderr(&none));
    let locked = host.run(&["test", "ssh://locked"]);
    assert_eq!(locked.status.code(), Some(3), "{}", stderr(&locked));
    let elsewhere = host.run(&["test", "localhost", "--far-port", "1000"]);
    assert!(stderr(&elsewhere).contains("--far-port is for servers"), "{}", stderr(&elsewhere));
    let watched = host.run(&["watch", "--once", "ssh://b"]);
    assert!(stderr(&watched).contains("start `goodput serve` there"), "{}", stderr(&watched));

    let Some(host) = Host::with(&[goodput()]) else { return };
    let taken = std::net::TcpListener::bind("[::]:0").expect("a port");
    let port = taken.local_addr().expect("its number").port().to_string();
    let output = host.run(&["test", "ssh://b", "--far-port", &port]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.contains("ssh://b: goodput does not serve") && said.contains(&port), "{said}");
    host.wait_for_the_end();
}
