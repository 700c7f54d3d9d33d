//! `goodput tune --keep` as a whole: what it proves is saved, listed, and removed again. /etc is a new, empty one, in a mount
//! namespace that ends with the test.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{self, Child, Command, Output, Stdio};

use goodput_lab::{Host, Lab, Scenario, Server};
use goodput_model::Family;
use goodput_testing::Sshd;
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
        disturbed::judged_on(
            "kept::a_full_disk_is_seen_before_anything_is_tried",
            Scenario::parse("small-buffer", SMALL_BUFFER),
            Needs::of,
            is_full_disk_seen,
        ),
        disturbed::judged_on(
            "kept::by_ssh_it_is_kept_by_the_host_that_was_tuned",
            Scenario::parse("small-buffer", SMALL_BUFFER),
            Needs::of,
            is_kept_by_ssh,
        ),
        disturbed::judged_on(
            "kept::by_ssh_what_is_read_of_a_far_end_without_goodput_is_tried_and_kept",
            Scenario::parse("small-far-buffer", SMALL_FAR_BUFFER),
            Needs::of,
            is_far_kept_by_ssh,
        ),
        disturbed::judged_on(
            "kept::by_ssh_a_full_disk_is_seen_before_anything_is_tried",
            Scenario::parse("small-buffer", SMALL_BUFFER),
            Needs::of,
            is_full_disk_seen_by_ssh,
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

/// The same of the receiver. Only the far host's own settings show what to change, and an iperf3 server reports none.
const SMALL_FAR_BUFFER: &str = "\
name = \"small-far-buffer\"
title = \"A receive buffer far too small for the round trip.\"
[link.path]
rate = \"80mbit\"
delay = \"10ms\"
[[fault]]
kind = \"sysctl\"
host = \"far\"
name = \"net.ipv4.tcp_rmem\"
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

/// The same on a disk that is full; `tuned` is then outside of it.
const ON_A_FULL_DISK: &str = "\
mount -t tmpfs -o size=16k none /etc || exit 77
cat /dev/zero >/etc/full 2>/dev/null
\"$0\" tune \"$1\" --keep --json --no-store -t 0.5 --max-time 30 >tuned || test $? = 2 -o $? = 4
find /etc -type f >left
";

/// Runs such a script in the near host. `None` without the right to mount.
fn run_there(
    lab: &Lab,
    server: &Server,
    directory: &Path,
    script: &str,
) -> Result<Option<Output>, Failed> {
    let mut command = lab.near().command("unshare")?;
    command.args(["--mount", "sh", "-c", script]).arg(exe()).args([server.target(), FILE]);
    command.current_dir(directory).env("GOODPUT_STATE_DIR", directory.join("state"));
    let output = command.env("XDG_CONFIG_HOME", directory).output()?;
    if output.status.code() == Some(CANNOT_MOUNT) {
        goodput_testing::skip("the right to mount (root)");
        return Ok(None);
    }
    Ok(Some(output))
}

/// A change that no file could keep is not tried.
fn is_full_disk_seen(scenario: &Scenario) -> Result<Judgement, Failed> {
    let lab = Lab::up(scenario)?;
    let server = Server::start(&lab, scenario, exe())?;
    let directory = tempfile::tempdir()?;
    let output = run_there(&lab, &server, directory.path(), ON_A_FULL_DISK)?;
    server.stop()?;
    let Some(output) = output else { return Ok(Judgement::Right) };
    check(output.status.success(), String::from_utf8_lossy(&output.stderr))?;
    let said = |name: &str| fs::read_to_string(directory.path().join(name));
    check(said("left")?.trim() == "/etc/full", said("left")?)?;
    left_out(&said("tuned")?)
}

/// Whether the record says that the change of [`SMALL_BUFFER`] could not be kept, and was not tried.
fn left_out(record: &str) -> Result<Judgement, Failed> {
    let record: Value = serde_json::from_str(record)?;
    let tuning = &record["tuning"];
    check(tuning["proven"].as_array().is_some_and(Vec::is_empty), tuning)?;
    let steps = tuning["steps"].as_array().ok_or("a list of steps")?;
    let of_host = |step: &&Value| step["change"]["setting"]["name"] == "sysctl.net.ipv4.tcp_wmem";
    let Some(step) = steps.iter().find(of_host) else {
        return Ok(Judgement::Open(tuning.to_string()));
    };
    let why = step["comparison"].to_string();
    check(
        why.contains("because it can't be kept") && why.contains("No space left on device"),
        &why,
    )?;
    Ok(Judgement::Right)
}

/// `goodput tune --keep` towards a target, with the host of this `end` changed by SSH: by a login there that begins with
/// `prepare`, a part of a shell's line. What is printed; `None` if this machine can't host it.
fn tuned_by_ssh(
    lab: &Lab,
    target: &str,
    (end, host): (&str, &Host),
    prepare: &str,
) -> Result<Option<Output>, Failed> {
    let namespace = format!("/proc/{}/fd/{}", process::id(), host.namespace().as_raw_fd());
    let forced = format!(
        "exec nsenter --net={namespace} -- unshare --mount /bin/sh -c \
         'mount -t sysfs none /sys && {prepare} && exec /bin/sh'"
    );
    let directory = tempfile::tempdir()?;
    let Some(sshd) = lab.near().within(|| Sshd::start(&forced))? else { return Ok(None) };
    // What is proven of this host is kept too, and never in the machine's own files.
    let own_etc = format!(
        "cp -a /etc {at}/etc && mount --bind {at}/etc /etc && exec \"$0\" \"$@\"",
        at = directory.path().display()
    );
    let mut command = lab.near().command("unshare")?;
    command.args(["--mount", "/bin/sh", "-c", &own_etc]).arg(exe());
    command.args(["tune", target, end, "ssh://b", "--keep", "--json"]);
    command.args(["--no-store", "-t", "0.5", "--max-time", "60"]);
    command.env("GOODPUT_SSH_CONFIG", sshd.config());
    command.env("GOODPUT_STATE_DIR", directory.path()).env("XDG_CONFIG_HOME", directory.path());
    let output = command.output()?;
    check(journals(directory.path()) == 0, "a journal is left")?;
    Ok(Some(output))
}

fn is_full_disk_seen_by_ssh(scenario: &Scenario) -> Result<Judgement, Failed> {
    let lab = Lab::up(scenario)?;
    let server = Server::start(&lab, scenario, exe())?;
    let full =
        "mount -t tmpfs -o size=16k none /etc && { cat /dev/zero >/etc/full 2>/dev/null; :; }";
    let before = lab.near().sysctl("net.ipv4.tcp_wmem")?;
    let output = tuned_by_ssh(&lab, server.target(), ("--near", lab.near()), full)?;
    server.stop()?;
    let Some(output) = output else { return Ok(Judgement::Right) };
    check(lab.near().sysctl("net.ipv4.tcp_wmem")? == before, "it is not changed")?;
    left_out(&String::from_utf8_lossy(&output.stdout))
}

fn is_kept_by_ssh(scenario: &Scenario) -> Result<Judgement, Failed> {
    let lab = Lab::up(scenario)?;
    let server = Server::start(&lab, scenario, exe())?;
    let near = ("--near", lab.near());
    let judgement = tuned_and_kept(&lab, server.target(), near, "net.ipv4.tcp_wmem")?;
    server.stop()?;
    Ok(judgement)
}

fn is_far_kept_by_ssh(scenario: &Scenario) -> Result<Judgement, Failed> {
    let lab = Lab::up(scenario)?;
    let Some(_server) = Iperf3::start(lab.far())? else { return Ok(Judgement::Right) };
    let target = format!("iperf3://{}", lab.far().address(Family::V4));
    tuned_and_kept(&lab, &target, ("--far", lab.far()), "net.ipv4.tcp_rmem")
}

/// Tunes by SSH, and judges what is kept of a parameter by the host there.
fn tuned_and_kept(
    lab: &Lab,
    target: &str,
    (end, host): (&str, &Host),
    sysctl: &str,
) -> Result<Judgement, Failed> {
    let root = tempfile::tempdir()?;
    ["etc", "run"].iter().try_for_each(|name| fs::create_dir(root.path().join(name)))?;
    fs::create_dir_all(root.path().join("run/systemd/system"))?;
    let at = root.path().display();
    let prepare = format!("cd {at} && mount --bind etc /etc && mount --bind run /run && cd /");
    let Some(output) = tuned_by_ssh(lab, target, (end, host), &prepare)? else {
        return Ok(Judgement::Right);
    };
    let record: Value = serde_json::from_slice(&output.stdout)
        .map_err(|_| String::from_utf8_lossy(&output.stderr).into_owned())?;
    let tuning = &record["tuning"];
    let proven = tuning["proven"].as_array().ok_or("a list of what is proven")?;
    let is_ours = |change: &&Value| {
        let setting = &change["setting"];
        setting["name"] == format!("sysctl.{sysctl}")
            && end == format!("--{}", text(&setting["end"]))
    };
    let ours = proven.iter().find(is_ours);
    let kept = fs::read_to_string(root.path().join(&FILE[1..])).unwrap_or_default();
    let Some(to) = ours.and_then(|change| change["to"].as_str()) else {
        check(!proven.is_empty() || kept.is_empty(), kept)?;
        return Ok(Judgement::Open(tuning.to_string()));
    };
    let kept_in = tuning["kept_in"].as_array().ok_or("a list of files")?;
    check(kept_in.iter().any(|file| *file == format!("ssh://b: {FILE}")), tuning)?;
    check(kept.contains(&format!("{sysctl} = {to}")), kept)?;
    let now = host.sysctl(sysctl)?;
    check(now.split_whitespace().eq(to.split_whitespace()), now)?;
    Ok(Judgement::Right)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// An iperf3 server; ended with the test.
struct Iperf3(Child);

impl Iperf3 {
    /// `None`, and the test is skipped, if this machine has none.
    fn start(host: &Host) -> Result<Option<Self>, Failed> {
        let mut command = host.command("iperf3")?;
        command.args(["-s", "--forceflush"]).stdout(Stdio::piped()).stderr(Stdio::null());
        let Ok(mut child) = command.spawn() else {
            goodput_testing::skip("iperf3");
            return Ok(None);
        };
        let said = child.stdout.take().ok_or("it is piped")?;
        let server = Self(child);
        let mut lines = BufReader::new(said).lines().map_while(Result::ok);
        check(lines.any(|line| line.contains("listening on")), "iperf3 does not listen")?;
        // It may end if nobody takes what it prints.
        std::thread::spawn(move || lines.for_each(drop));
        Ok(Some(server))
    }
}

impl Drop for Iperf3 {
    fn drop(&mut self) {
        let _ = (self.0.kill(), self.0.wait());
    }
}

/// The send buffer of [`SMALL_BUFFER`].
fn is_buffer_kept(scenario: &Scenario) -> Result<Judgement, Failed> {
    is_kept(scenario, "net.ipv4.tcp_wmem")
}

/// The congestion control of [`RENO`].
fn is_control_kept(scenario: &Scenario) -> Result<Judgement, Failed> {
    // Many kernels have it as a module. Whether that could be loaded is seen below.
    let _ = Command::new("modprobe").arg("tcp_bbr").output();
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
    let output = run_there(&lab, &server, directory.path(), SCRIPT)?;
    server.stop()?;
    let Some(output) = output else { return Ok(Judgement::Right) };
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
