//! Whatever ends a comparison, the machine is as it was.

use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use libtest_mimic::Failed;

use crate::neighbours::Test;
use crate::stage::{ORIGINAL, Stage, TRIED, look_until};

/// Every test of this file.
pub fn all() -> Vec<Test> {
    vec![
        Test::of_facts("put_back::after_kill", after_kill),
        Test::of_facts("put_back::after_interrupt", after_interrupt),
        Test::of_facts("put_back::after_the_guard_was_killed_too", after_the_guard_was_killed_too),
        Test::of_facts("put_back::not_by_a_plan_of_tuning", not_by_a_plan_of_tuning),
        Test::of_facts("put_back::after_the_server_died", after_the_server_died),
        Test::of_facts("put_back::far_end_after_the_client_died", far_end_after_the_client_died),
        Test::of_facts("put_back::far_end_after_the_server_died", far_end_after_the_server_died),
        Test::of_facts("put_back::helper_after_the_client_died", || helper_after(Dies::Client)),
        Test::of_facts("put_back::helper_after_the_server_died", || helper_after(Dies::Server)),
        Test::of_facts("put_back::after_the_helper_died", || helper_after(Dies::Helper)),
        Test::of_facts("put_back::by_a_key_of_the_role", by_a_key_of_the_role),
        Test::of_facts(
            "put_back::what_the_far_end_refuses_changes_nothing",
            refused_by_the_far_end,
        ),
        Test::of_facts("put_back::far_end_after_the_path_was_cut", || {
            far_end_unheard(Ends::PathCut)
        }),
        Test::of_facts("put_back::far_end_after_the_client_froze", || {
            far_end_unheard(Ends::Frozen)
        }),
        Test::of_facts("put_back::while_another_run_is_refused", while_another_run_is_refused),
    ]
}

pub fn signal(name: &str, pid: u32) -> Result<(), Failed> {
    let sent = Command::new("kill").args([name, &pid.to_string()]).status()?;
    if sent.success() { Ok(()) } else { Err(format!("kill {name} {pid} failed").into()) }
}

/// SIGKILL at several moments of the comparison, some of them within a change.
fn after_kill() -> Result<(), Failed> {
    let stage = Stage::set(&[])?;
    for moment in 0..6 {
        let mut compare = stage.compare()?;
        stage.wait_for_change()?;
        std::thread::sleep(Duration::from_millis(137 * moment));
        signal("-KILL", compare.id())?;
        compare.wait()?;
        // `undo` waits for the guard.
        if moment % 2 == 0 {
            let undo = stage.goodput(&["settings", "undo"])?.output()?;
            if !undo.status.success() || stage.burst()? != ORIGINAL {
                let said = String::from_utf8_lossy(&undo.stdout).into_owned();
                return Err(format!("burst {} after undo: {said}", stage.burst()?).into());
            }
        }
        stage.wait_for_original()?;
    }
    Ok(())
}

fn after_interrupt() -> Result<(), Failed> {
    let stage = Stage::set(&[])?;
    for name in ["-INT", "-TERM", "-HUP"] {
        let mut compare = stage.compare()?;
        stage.wait_for_change()?;
        signal(name, compare.id())?;
        let status = compare.wait()?;
        if status.code() != Some(2) || stage.burst()? != ORIGINAL {
            return Err(format!("{name}: {status}, burst {}", stage.burst()?).into());
        }
    }
    Ok(())
}

/// What a power cut leaves: nobody is there to put anything back, but the journal is. Returns the burst.
fn cut_power(stage: &Stage) -> Result<u32, Failed> {
    let mut compare = stage.compare()?;
    stage.wait_for_change()?;
    let guard = guard_of(compare.id())?;
    signal("-STOP", compare.id())?;
    signal("-KILL", guard)?;
    signal("-KILL", compare.id())?;
    compare.wait()?;
    stage.burst()
}

/// It says what is left, and changes nothing.
fn not_by_a_plan_of_tuning() -> Result<(), Failed> {
    let stage = Stage::set(&[])?;
    let left = cut_power(&stage)?;
    let words = ["tune", stage.target(), "--no-store", "--dry-run", "-t", "0.3"];
    let plan = stage.goodput(&words)?.output()?;
    let said = String::from_utf8_lossy(&plan.stderr).into_owned();
    let is_untouched = stage.burst()? == left && stage.journals() == 1;
    stage.goodput(&["settings", "undo"])?.output()?;
    match is_untouched && said.contains("an interrupted run left") && stage.burst()? == ORIGINAL {
        true => Ok(()),
        false => Err(format!("burst {} instead of {left}: {said}", stage.burst()?).into()),
    }
}

fn after_the_guard_was_killed_too() -> Result<(), Failed> {
    let stage = Stage::set(&[])?;
    let left = cut_power(&stage)?;
    let undo = stage.goodput(&["settings", "undo"])?.output()?;
    let said = String::from_utf8_lossy(&undo.stdout).into_owned();
    if !undo.status.success() || stage.burst()? != ORIGINAL {
        return Err(format!("burst {} after undo, {left} before: {said}", stage.burst()?).into());
    }
    Ok(())
}

/// The guard is the only child that a comparison has.
pub fn guard_of(pid: u32) -> Result<u32, Failed> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
    let all: Result<Vec<u32>, _> = std::fs::read_dir(format!("/proc/{pid}/task"))?
        .filter_map(Result::ok)
        .filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok())
        .chain([children])
        .flat_map(|text| text.split_whitespace().map(str::to_string).collect::<Vec<_>>())
        .map(|child| child.parse())
        .collect();
    all?.first().copied().ok_or_else(|| format!("{pid} has no guard").into())
}

fn after_the_server_died() -> Result<(), Failed> {
    let mut stage = Stage::set(&[])?;
    let mut compare = stage.compare()?;
    stage.wait_for_change()?;
    stage.stop_server()?;
    let status = compare.wait()?;
    if status.success() || stage.burst()? != ORIGINAL {
        return Err(format!("{status}, burst {}", stage.burst()?).into());
    }
    Ok(())
}

/// A setting of the far host, changed by a client that knows the token; its value before.
fn far_comparison(stage: &Stage) -> Result<(Child, String), Failed> {
    let before = stage.lab.far().sysctl(FAR_SYSCTL)?.replace('\t', " ");
    let setting = format!("far:sysctl.{FAR_SYSCTL}={before},4096 65536 262144");
    let compare = stage.compare_setting(&setting, &["--token-file", &stage.token_file()?])?;
    stage.wait_for_far(FAR_SYSCTL, &kernel_form(&before), false)?;
    Ok((compare, before))
}

/// A setting of the far host that belongs to its network namespace.
const FAR_SYSCTL: &str = "net.ipv4.tcp_rmem";

/// As the kernel prints it: with tabs.
fn kernel_form(value: &str) -> String {
    value.replace(' ', "\t")
}

/// Its connection ends, so the server puts back.
fn far_end_after_the_client_died() -> Result<(), Failed> {
    let stage = Stage::set(&[])?;
    let (mut compare, before) = far_comparison(&stage)?;
    signal("-KILL", compare.id())?;
    compare.wait()?;
    stage.wait_for_far(FAR_SYSCTL, &kernel_form(&before), true)
}

/// The server's guard puts back.
fn far_end_after_the_server_died() -> Result<(), Failed> {
    let stage = Stage::set(&[])?;
    let (mut compare, before) = far_comparison(&stage)?;
    signal("-KILL", stage.server_pid()?)?;
    stage.wait_for_far(FAR_SYSCTL, &kernel_form(&before), true)?;
    compare.wait()?;
    Ok(())
}

/// Who is killed.
#[derive(Clone, Copy, PartialEq)]
enum Dies {
    Client,
    Server,
    Helper,
}

/// A setting of the far host, changed through a server that has no privileges itself.
fn helper_after(dies: Dies) -> Result<(), Failed> {
    let stage = Stage::set(&[])?;
    let (mut server, target, log) = stage.unprivileged_server(&[])?;
    let helper = guard_of(server.id())?;
    let before = stage.lab.far().sysctl(FAR_SYSCTL)?.replace('\t', " ");
    let setting = format!("far:sysctl.{FAR_SYSCTL}={before},4096 65536 262144");
    let token = stage.token_file()?;
    let mut compare = stage.compare_with(&target, &setting, &["--token-file", &token])?;
    stage.wait_for_far(FAR_SYSCTL, &kernel_form(&before), false)?;
    let killed = match dies {
        Dies::Client => compare.id(),
        Dies::Server => server.id(),
        Dies::Helper => helper,
    };
    signal("-KILL", killed)?;
    stage.wait_for_far(FAR_SYSCTL, &kernel_form(&before), true)?;
    if dies == Dies::Helper {
        look_until("the server to say that its helper is gone", || {
            Ok(std::fs::read_to_string(&log)?.contains("the settings helper (process"))
        })?;
    }
    let alive = dies == Dies::Server || server.try_wait()?.is_none();
    let _ = (server.kill(), compare.kill());
    server.wait()?;
    compare.wait()?;
    if alive { Ok(()) } else { Err(std::fs::read_to_string(&log)?.into()) }
}

/// A key with the role of settings is all that the client shows: no token.
fn by_a_key_of_the_role() -> Result<(), Failed> {
    let stage = Stage::set(&[])?;
    let (key, list) = (stage.file("ops")?, stage.file("authorized")?);
    let words = ["key", "-o", &key, "--name", "ops", "--role", "settings"];
    let made = stage.goodput(&words)?.output()?;
    std::fs::write(&list, made.stdout)?;
    std::fs::set_permissions(&list, std::fs::Permissions::from_mode(0o644))?;
    let (mut server, target, log) = stage.unprivileged_server(&["--authorized-keys", &list])?;
    let before = stage.lab.far().sysctl(FAR_SYSCTL)?.replace('\t', " ");
    let setting = format!("far:sysctl.{FAR_SYSCTL}={before},4096 65536 262144");
    let mut compare = stage.compare_with(&target, &setting, &["--key", &key])?;
    stage.wait_for_far(FAR_SYSCTL, &kernel_form(&before), false)?;
    look_until("the server to say who did it", || {
        Ok(std::fs::read_to_string(&log)?.contains("by key ops"))
    })?;
    signal("-INT", compare.id())?;
    let status = compare.wait()?;
    stage.wait_for_far(FAR_SYSCTL, &kernel_form(&before), true)?;
    let _ = server.kill();
    server.wait()?;
    if status.code() == Some(2) { Ok(()) } else { Err(format!("{status}").into()) }
}

/// The arm after the one that is wrong would be applied first.
fn refused_by_the_far_end() -> Result<(), Failed> {
    let stage = Stage::set(&[])?;
    let (mut server, target, log) = stage.unprivileged_server(&[])?;
    let before = stage.lab.far().sysctl(FAR_SYSCTL)?.replace('\t', " ");
    let setting = format!("far:sysctl.{FAR_SYSCTL}={before},4096 65536,4096 65536 262144");
    let token = stage.token_file()?;
    let words = ["compare", &target, &setting, "--token-file", &token, "--no-store", "-t", "0.3"];
    let refused = stage.goodput(&words)?.output()?;
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    let _ = server.kill();
    server.wait()?;
    let log = std::fs::read_to_string(&log)?;
    let is_refused = refused.status.code() == Some(2) && said.contains("needs 3 numbers");
    match is_refused && log.contains("setting: check ") && !log.contains("setting: change ") {
        true => Ok(()),
        false => Err(format!("{:?}: {said}\n{log}", refused.status).into()),
    }
}

/// Why the far end hears nothing any more, although nobody has closed a connection.
#[derive(Clone, Copy, PartialEq)]
enum Ends {
    PathCut,
    Frozen,
}

/// What a change has cut off can't be confirmed by anyone, and the far end puts it back after 15 s of silence.
fn far_end_unheard(ends: Ends) -> Result<(), Failed> {
    let stage = Stage::set(&[])?;
    let before = stage.lab.far().sysctl(FAR_SYSCTL)?.replace('\t', " ");
    let setting = format!("far:sysctl.{FAR_SYSCTL}={before},4096 65536 262144");
    let token = stage.token_file()?;
    let mut compare = stage.compare_setting(&setting, &["--token-file", &token])?;
    stage.wait_for_far(FAR_SYSCTL, &kernel_form(&before), false)?;
    let near = stage.lab.near();
    let device = ["link", "set", near.device()];
    match ends {
        Ends::PathCut => drop(near.command("ip")?.args(device).arg("down").status()?),
        Ends::Frozen => signal("-STOP", compare.id())?,
    }
    stage.wait_for_far(FAR_SYSCTL, &kernel_form(&before), true)?;
    if ends == Ends::Frozen {
        signal("-CONT", compare.id())?;
    }
    signal("-INT", compare.id())?;
    let status = compare.wait()?;
    if status.success() { Err(format!("it goes on: {status}").into()) } else { Ok(()) }
}

/// A second run would measure the changes of the first one.
fn while_another_run_is_refused() -> Result<(), Failed> {
    let stage = Stage::set(&[])?;
    let device = stage.lab.near().device();
    let burst = format!("qdisc.tbf.burst@{device}={ORIGINAL},{TRIED}");
    // Its blocks take far longer than all that is refused meanwhile.
    let long = ["compare", stage.target(), &burst, "--no-store", "-t", "5s"];
    let mut first = stage.goodput(&long)?.stdout(Stdio::null()).spawn()?;
    stage.wait_for_change()?;
    let (set, arms) =
        (format!("link.txqueuelen@{device}=77"), format!("link.txqueuelen@{device}=1000,77"));
    let elsewhere = stage.file("elsewhere")?;
    for words in [
        vec!["settings", "set", &set],
        vec!["compare", stage.target(), &arms, "--no-store", "-t", "0.3"],
        vec!["tune", stage.target(), "--no-store", "-t", "0.3"],
        vec!["--state-dir", &elsewhere, "settings", "set", &set],
    ] {
        let refused = stage.goodput(&words)?.output()?;
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        let named = said.contains(&format!("process {}", first.id()));
        if refused.status.code() != Some(2) || !named {
            return Err(format!("{words:?}: {} {said}", refused.status).into());
        }
    }
    signal("-INT", first.id())?;
    first.wait()?;
    let done = stage.goodput(&["settings", "set", &set])?.output()?;
    if done.status.success() { Ok(()) } else { Err(format!("{done:?}").into()) }
}
