//! Runs that want the same hosts at the same time, each of which is changed by its own goodput.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

use goodput_model::Family;
use libtest_mimic::Failed;

use crate::neighbours::Test;
use crate::stage::{Stage, exe, look_until};

/// Every test of this file.
pub fn all() -> Vec<Test> {
    vec![
        Test::of_facts("crossed::who_comes_later_waits_for_the_far_host", later_waits),
        Test::of_facts("crossed::runs_never_keep_each_other_from_their_second_host", crossed),
    ]
}

/// What a server says once a client holds its host.
const HELD: &str = "keep other runs from changing the host by the token: held";

/// A process that ends with the test.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = (self.0.kill(), self.0.wait());
    }
}

/// Starts a comparison and keeps what it says.
fn started(mut command: Command) -> Result<Child, Failed> {
    Ok(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?)
}

/// Who came first is interrupted once the other one says that it waits.
fn later_waits() -> Result<(), Failed> {
    let stage = Stage::set(&[])?;
    let (server, target, log) = stage.unprivileged_server(&["--allow-settings", "link.*@*"])?;
    let _server = Ends(server);
    let token = stage.token_file()?;
    let setting = format!("far:link.txqueuelen@{}=1000,77", stage.lab.far().device());
    let words = ["compare", &target, &setting, "--token-file", &token, "--no-store", "-t", "0.3"];
    let with = |time: &str| stage.goodput(&[&words[..], &["--max-time", time]].concat());
    let mut first = with("600")?;
    let first = Ends(first.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?);
    look_until("the first run to hold the far host", || {
        Ok(std::fs::read_to_string(&log)?.contains(HELD))
    })?;
    let mut later = with("5")?.stdout(Stdio::piped()).spawn()?;
    let mut said = BufReader::new(later.stdout.take().ok_or("no standard output")?);
    let mut line = String::new();
    while !line.contains("waiting for another goodput") {
        line.clear();
        if said.read_line(&mut line)? == 0 {
            return Err(format!("it did not wait: {}", later.wait()?).into());
        }
    }
    Command::new("kill").args(["-INT", &first.0.id().to_string()]).status()?;
    let mut rest = String::new();
    said.read_to_string(&mut rest)?;
    match later.wait()?.code() {
        Some(0 | 4) => Ok(()),
        code => Err(format!("{code:?}: {line}{rest}").into()),
    }
}

/// A server at the near host, for a run at the far one.
fn near_server(stage: &Stage) -> Result<(Ends, String), Failed> {
    let address = stage.lab.near().address(Family::V4).to_string();
    let mut command = stage.lab.near().command(exe())?;
    command.args(["serve", "--bind", &address, "--port", "0", "--token-file"]);
    command.arg(stage.token_file()?).args(["--allow-settings", "link.*@*"]);
    command.env("GOODPUT_STATE_DIR", stage.state_dir()).stdin(Stdio::null());
    let mut server = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let mut line = String::new();
    if let Some(stdout) = server.stdout.take() {
        BufReader::new(stdout).read_line(&mut line)?;
    }
    let server = Ends(server);
    let target = line.trim().rsplit_once("listening on ").ok_or("it does not listen")?.1.to_owned();
    Ok((server, target))
}

/// Each run changes its own host and that of the other one. At least one of them gets both, and the other one gets them after
/// it, or says who has them.
fn crossed() -> Result<(), Failed> {
    let stage = Stage::set(&[])?;
    let (server, far_target, _) = stage.unprivileged_server(&["--allow-settings", "link.*@*"])?;
    let _server = Ends(server);
    let (_near_server, near_target) = near_server(&stage)?;
    let token = stage.token_file()?;
    let [near, far] = [stage.lab.near(), stage.lab.far()].map(|host| host.device().to_owned());
    let words = |target: &str, own: &str, other: &str| {
        let own = format!("link.txqueuelen@{own}=1000,77");
        let words = ["compare", target, &own, &format!("far:link.txqueuelen@{other}=1000,77")];
        let more = ["--token-file", &token, "--no-store", "-t", "0.3", "--max-time", "5"];
        [&words[..], &more].concat().into_iter().map(String::from).collect::<Vec<_>>()
    };
    let here = words(&far_target, &near, &far);
    let mut there = stage.lab.far().command(exe())?;
    there.args(words(&near_target, &far, &near)).env("GOODPUT_STATE_DIR", stage.state_dir());
    there.env("XDG_CONFIG_HOME", stage.state_dir()).stdin(Stdio::null());
    let here: Vec<&str> = here.iter().map(String::as_str).collect();
    let both = [started(stage.goodput(&here)?)?, started(there)?];
    let ended = both.map(Child::wait_with_output);
    let mut done = 0;
    for output in ended {
        let output = output?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        match output.status.code() {
            Some(0 | 4) => done += 1,
            _ if said.contains("another goodput") => {}
            code => return Err(format!("{code:?}: {said}").into()),
        }
    }
    if done > 0 { Ok(()) } else { Err("each kept the other one from its second host".into()) }
}
