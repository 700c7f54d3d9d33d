//! Tuning at a far end that runs no goodput: what is configured there is read by SSH, on a real server.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};

use goodput_testing::{Sshd, in_namespace, skip};
use serde_json::Value;

use crate::common::{HALF_A_SECOND, Home, stderr, stdout};

/// A running `iperf3 -s`; ended with the test.
pub struct Iperf3(Child);

impl Iperf3 {
    /// `None`, and the test is skipped, if this machine has none.
    pub fn start(port: &str) -> Option<Self> {
        let mut command = Command::new("iperf3");
        let command = command.args(["-s", "--forceflush", "-p", port]);
        let Ok(mut child) = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn() else {
            skip("iperf3");
            return None;
        };
        let said = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let listens = said.lines().map_while(Result::ok).any(|line| line.contains("listening on"));
        assert!(listens, "iperf3 listens on port {port}");
        Some(Self(child))
    }
}

impl Drop for Iperf3 {
    fn drop(&mut self) {
        let _ = (self.0.kill(), self.0.wait());
    }
}

/// What a plan of tuning says of each change that it would try, as `SETTING=TO`.
pub fn planned(record: &Value) -> Vec<String> {
    let steps = record["tuning"]["steps"].as_array().expect("steps");
    let named = |step: &Value| {
        let (setting, to) = (&step["change"]["setting"], &step["change"]["to"]);
        let text = |of: &Value| of.as_str().unwrap_or_default().to_owned();
        let end = if setting["end"] == "far" { "far:" } else { "" };
        let scope = setting["scope"].as_str().map(|scope| format!("@{scope}")).unwrap_or_default();
        format!("{end}{}{scope}={}", text(&setting["name"]), text(to))
    };
    steps.iter().map(named).collect()
}

/// The record that `goodput tune … --dry-run` prints.
pub fn record(output: &Output) -> Value {
    assert!(output.status.code().is_some_and(|code| code != 2), "{}", stderr(output));
    serde_json::from_str(&stdout(output)).expect("a record")
}

fn sh(script: &str) -> String {
    let output = Command::new("sh").args(["-c", script]).output().expect("sh starts");
    assert!(output.status.success(), "{script}: {}", stderr(&output));
    stdout(&output).trim().to_owned()
}

#[test]
fn what_is_configured_at_another_host_of_the_near_end_is_proposed() {
    in_namespace(|| {
        sh("ip link set lo up");
        let Some(_server) = Iperf3::start("5201") else { return };
        // A host of its own, on which alone it is off.
        let host =
            "exec unshare --net sh -c 'sysctl -qw net.ipv4.tcp_window_scaling=0 && exec /bin/sh'";
        let Some(sshd) = Sshd::start(host) else { return };
        let plan = ["tune", "iperf3://127.0.0.1", "--near", "ssh://b", "--dry-run", "--json"];
        let mut command = Home::new().goodput(&[&plan[..], &HALF_A_SECOND].concat());
        let output = command.env("GOODPUT_SSH_CONFIG", sshd.config()).output();
        let plan = record(&output.expect("goodput starts"));
        let steps = planned(&plan);
        let scaling = "sysctl.net.ipv4.tcp_window_scaling=1";
        assert!(steps.iter().any(|step| step == scaling), "{steps:?}");
        let doubts = plan["doubts"].to_string();
        assert!(
            doubts.contains("settings of the near end were read by SSH from ssh://b"),
            "{doubts}"
        );
        let stopped = plan["tuning"]["stopped"].to_string();
        assert!(!stopped.contains("was not tried"), "it was: {stopped}");
    });
}

#[test]
fn what_is_configured_at_a_far_end_without_goodput_is_proposed_and_its_source_is_named() {
    in_namespace(|| {
        sh(
            "ip link set lo up && sysctl -qw net.ipv4.tcp_window_scaling=0 'net.ipv4.tcp_rmem=4096 16384 65536'",
        );
        let Some(_server) = Iperf3::start("5201") else { return };
        let Some(sshd) = Sshd::start("exec /bin/sh") else { return };
        let home = Home::new();
        let tune = |far: &str| {
            let plan = ["tune", "iperf3://127.0.0.1", "--far", far, "--dry-run", "--json"];
            let mut command = home.goodput(&[&plan[..], &HALF_A_SECOND].concat());
            command.env("GOODPUT_SSH_CONFIG", sshd.config()).output().expect("goodput starts")
        };
        let plan = record(&tune("ssh://b"));
        let steps = planned(&plan);
        let scaling = "far:sysctl.net.ipv4.tcp_window_scaling=1";
        let is_buffer = |step: &String| step.starts_with("far:sysctl.net.ipv4.tcp_rmem=4096 ");
        assert!(steps.iter().any(|step| step == scaling), "{steps:?}");
        assert!(steps.iter().any(is_buffer), "{steps:?}");
        let doubts = plan["doubts"].to_string();
        assert!(doubts.contains("read by SSH from ssh://b"), "{doubts}");
        let stopped = plan["tuning"]["stopped"].to_string();
        assert!(!stopped.contains("was not tried"), "it was: {stopped}");
        assert_eq!(sh("sysctl -n net.ipv4.tcp_window_scaling"), "0");
        let locked = record(&tune("ssh://locked"));
        let doubts = locked["doubts"].to_string();
        assert!(doubts.contains("the settings of the far end are unknown: "), "{doubts}");
        assert!(!planned(&locked).iter().any(|step| step.starts_with("far:sysctl")), "{locked}");
    });
}
