//! `goodput tune --keep` as a whole: what it proves is saved, listed, and removed again. /etc is a new, empty one, in a mount
//! namespace that ends with the test.

use std::fs;
use std::path::Path;

use goodput_lab::{Lab, Scenario, Server};
use libtest_mimic::Failed;
use serde_json::Value;

use crate::disturbed::{self, Judgement};
use crate::journals::journals;
use crate::neighbours::{Needs, Test};
use crate::stage::exe;

/// Every test of this file.
pub fn all() -> Vec<Test> {
    vec![
        disturbed::judged_on(
            "kept::what_tuning_proves_is_saved_listed_and_removed",
            Scenario::parse("small-buffer", SMALL_BUFFER),
            Needs::of,
            is_buffer_kept,
        ),
        disturbed::judged_on(
            "kept::a_congestion_control_is_kept_for_the_host",
            Scenario::parse("reno", RENO),
            Needs::of,
            is_control_kept,
        ),
    ]
}

/// The buffer allows about a fifth of what the path carries.
const SMALL_BUFFER: &str = "\
name = \"small-buffer\"
title = \"A send buffer far too small for the round trip.\"
[link.path]
rate = \"80mbit\"
delay = \"10ms\"
[[fault]]
kind = \"sysctl\"
host = \"near\"
name = \"net.ipv4.tcp_wmem\"
value = \"4096 16384 16384\"
";

/// Reno takes each of the losses for congestion. The sender's host is where it comes from.
const RENO: &str = "\
name = \"reno\"
title = \"Reno on a path that loses packets at random.\"
[link.path]
rate = \"80mbit\"
delay = \"10ms\"
loss = \"1%\"
[[fault]]
kind = \"sysctl\"
host = \"near\"
name = \"net.ipv4.tcp_congestion_control\"
value = \"reno\"
";

const FILE: &str = "/etc/sysctl.d/90-goodput.conf";
/// Exit code of the script without the right to mount.
const CANNOT_MOUNT: i32 = 77;

/// Tunes the target `$1`, and writes what each command says to a file of its name.
const SCRIPT: &str = "\
mount -t tmpfs none /etc || exit 77
set -e
\"$0\" tune \"$1\" --keep --json --no-store -t 0.5 --max-time 60 >tuned || test $? = 4
\"$0\" settings saved >saved
cat \"$2\" >file || true
\"$0\" settings undo --saved >removed
\"$0\" settings saved >after
find /etc -type f >left
";

/// The send buffer of [`SMALL_BUFFER`].
fn is_buffer_kept(scenario: &Scenario) -> Result<Judgement, Failed> {
    is_kept(scenario, "net.ipv4.tcp_wmem")
}

/// The congestion control of [`RENO`].
fn is_control_kept(scenario: &Scenario) -> Result<Judgement, Failed> {
    let available = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")?;
    if !available.split_whitespace().any(|name| name == "bbr") {
        goodput_testing::skip("a kernel with the congestion control bbr (tcp_bbr)");
        return Ok(Judgement::Right);
    }
    is_kept(scenario, "net.ipv4.tcp_congestion_control")
}

fn is_kept(scenario: &Scenario, sysctl: &str) -> Result<Judgement, Failed> {
    let lab = Lab::up(scenario)?;
    let server = Server::start(&lab, scenario, exe())?;
    let directory = tempfile::tempdir()?;
    let machines = fs::read(FILE).ok();
    let mut command = lab.near().command("unshare")?;
    command.args(["--mount", "sh", "-c", SCRIPT]).arg(exe()).args([server.target(), FILE]);
    command.current_dir(&directory).env("GOODPUT_STATE_DIR", directory.path().join("state"));
    command.env("XDG_CONFIG_HOME", directory.path());
    let output = command.output()?;
    server.stop()?;
    if output.status.code() == Some(CANNOT_MOUNT) {
        goodput_testing::skip("the right to mount (root)");
        return Ok(Judgement::Right);
    }
    check(output.status.success(), String::from_utf8_lossy(&output.stderr))?;
    check(fs::read(FILE).ok() == machines, "a file of the machine was touched")?;
    check(journals(&directory.path().join("state")) == 0, "a journal is left")?;
    judge(&lab, directory.path(), sysctl)
}

/// Holds the files that the script has written against the record. If other programs took the CPUs, nothing may be proven;
/// then nothing may be saved.
fn judge(lab: &Lab, directory: &Path, sysctl: &str) -> Result<Judgement, Failed> {
    let said = |name: &str| fs::read_to_string(directory.join(name));
    let record: Value = serde_json::from_str(&said("tuned")?)?;
    let tuning = &record["tuning"];
    let proven = tuning["proven"].as_array().ok_or("a list of what is proven")?;
    let ours = proven.iter().find(|change| change["setting"]["name"] == format!("sysctl.{sysctl}"));
    let after = said("after")?;
    check(after.contains("keeps no setting") && said("left")?.is_empty(), &after)?;
    let Some(to) = ours.and_then(|change| change["to"].as_str()) else {
        let saved = said("saved")?;
        check(!proven.is_empty() || saved.contains("keeps no setting"), saved)?;
        return Ok(Judgement::Open(tuning.to_string()));
    };
    let kept_in = tuning["kept_in"].as_array().ok_or("a list of files")?;
    check(kept_in.iter().any(|file| file == FILE), tuning)?;
    check(said("saved")?.contains(&format!("sysctl.{sysctl}={to}")), said("saved")?)?;
    check(said("file")?.contains(&format!("{sysctl} = {to}")), said("file")?)?;
    check(said("removed")?.contains(&format!("removed {FILE}: ")), said("removed")?)?;
    // Removing the file leaves the present value.
    let now = lab.near().sysctl(sysctl)?;
    check(now.split_whitespace().eq(to.split_whitespace()), now)?;
    Ok(Judgement::Right)
}

fn check(holds: bool, said: impl std::fmt::Display) -> Result<(), Failed> {
    if holds { Ok(()) } else { Err(said.to_string().into()) }
}
