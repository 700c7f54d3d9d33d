//! `goodput compare --alternate`: arms take turns within one connection, and everything comes back however that ends.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use libtest_mimic::Failed;
use serde_json::Value;

use crate::disturbed::{self, Judgement};
use crate::namespace::{difference, look};
use crate::neighbours::{Needs, Test};
use crate::put_back::{guard_of, signal};
use crate::stage::{ORIGINAL, Stage, look_until};

/// Kills in an ordinary test run; `cargo xtask kills --alternate N` has more.
const FEW: u32 = 4;

/// Longest time before a kill, milliseconds: the trial of both arms, the warm-up, and some turns.
const LONGEST_MS: u64 = 6000;

/// Every test of this file.
pub fn all() -> Vec<Test> {
    vec![
        disturbed::judged(
            "turns::a_change_is_proven_on_one_connection",
            Needs::All,
            proven_on_one_connection,
        ),
        Test::of_facts("turns::an_interrupt_keeps_what_was_measured", an_interrupt_keeps_the_runs),
        Test::of_facts("turns::what_flows_do_not_take_up_is_refused", what_flows_ignore_is_refused),
        Test::of_facts(
            "turns::killed_at_any_moment_the_whole_namespace_comes_back",
            killed_at_any_moment,
        ),
    ]
}

/// What the arms of `setting` differ in.
fn burst(stage: &Stage) -> String {
    format!("qdisc.tbf.burst@{}={ORIGINAL},125000", stage.lab.near().device())
}

fn compare(stage: &Stage, setting: &str, more: &[&str]) -> Result<Command, Failed> {
    let words = ["compare", stage.target(), setting, "--alternate", "--no-store", "-t", "0.3"];
    let mut command = stage.goodput(&words)?;
    command.args(more);
    Ok(command)
}

fn check(holds: bool, said: impl std::fmt::Display) -> Result<(), Failed> {
    if holds { Ok(()) } else { Err(said.to_string().into()) }
}

/// How large the effect is, and whether it shows in the time, is the machine's business. Each turn is of one arm, counts or
/// has a reason why not, and an arm that is better is never called worse.
fn proven_on_one_connection() -> Result<Judgement, Failed> {
    let stage = Stage::set(&[])?;
    let output = compare(&stage, &burst(&stage), &["--json", "--max-time", "40"])?.output()?;
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    check(stage.burst()? == ORIGINAL && stage.journals() == 0, "not everything was put back")?;
    check(matches!(output.status.code(), Some(0 | 4)), &said)?;
    let record: Value = serde_json::from_slice(&output.stdout)?;
    let comparison = &record["comparison"];
    let trials = comparison["trials"].as_array().ok_or("no trials")?;
    let turns: Vec<_> = trials.iter().filter(|trial| trial["block"] != 0).collect();
    let of = |arm: u32| turns.iter().filter(|turn| turn["arm"] == arm).count();
    check(of(0) > 0 && of(0).abs_diff(of(1)) <= 1, &said)?;
    let is_known = |turn: &&&Value| turn["goodput_bits_per_s"].is_f64();
    let (known, lost): (Vec<&Value>, Vec<&Value>) = turns.iter().partition(|turn| is_known(turn));
    check(lost.iter().all(|turn| turn["discarded"].is_string()), &said)?;
    check(!known.is_empty(), &said)?;
    Ok(match comparison["arms"][1]["goodput"]["judgement"].as_str() {
        Some("better") => Judgement::Right,
        Some("worse") => Judgement::Wrong(said.into_owned()),
        _ => Judgement::Open(said.into_owned()),
    })
}

/// In the middle of a turn. The warm-up was measured: there is a record of it.
fn an_interrupt_keeps_the_runs() -> Result<(), Failed> {
    let stage = Stage::set(&[])?;
    let mut child =
        compare(&stage, &burst(&stage), &["--json-stream"])?.stdout(Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(child.stdout.take().ok_or("it is piped")?).lines();
    let is_turn = |line: &str| line.contains("block-began") && !line.contains("\"block\":0");
    let turns = lines.by_ref().map_while(Result::ok).any(|line| is_turn(&line));
    check(turns, "no block of turns began")?;
    look_until("an arm to take its turn", || Ok(stage.burst()? != ORIGINAL))?;
    signal("-INT", child.id())?;
    let last = lines.map_while(Result::ok).last().ok_or("nothing was printed after it")?;
    let code = child.wait()?.code();
    let event: Value = serde_json::from_str(&last)?;
    let comparison = &event["record"]["comparison"];
    check(code == Some(2) && comparison["stopped"] == "it was interrupted", &event)?;
    check(comparison["trials"].as_array().is_some_and(|trials| trials.len() >= 2), &event)?;
    check(stage.burst()? == ORIGINAL && stage.journals() == 0, "not everything was put back")
}

/// Before anything is changed.
fn what_flows_ignore_is_refused() -> Result<(), Failed> {
    let stage = Stage::set(&[])?;
    let device = stage.lab.near().device();
    for (setting, why) in [
        (format!("link.mtu@{device}=1500,1400"), "flows that are under way don't take it up"),
        ("far:sysctl.net.ipv4.tcp_sack=0,1".into(), "it belongs to the far end"),
        ("chunk=4K,64K".into(), "flows that are under way don't take it up"),
    ] {
        let refused = compare(&stage, &setting, &[])?.output()?;
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        check(refused.status.code() == Some(2) && said.contains(why), said)?;
    }
    check(stage.journals() == 0, "a journal is left")
}

/// What a turn changes.
fn changes(device: &str) -> [String; 3] {
    [
        format!("qdisc.tbf.burst@{device}={ORIGINAL},125000"),
        format!("offload.gro@{device}=on,off"),
        format!("link.txqueuelen@{device}=1000,300"),
    ]
}

/// Runs are killed alone, or together with their guard. Then all of the near host is as it was.
fn killed_at_any_moment() -> Result<(), Failed> {
    let stage = Stage::set(&[])?;
    let device = stage.lab.near().device().to_owned();
    let look = look(&[&device]);
    look_until("the addresses to settle", || {
        Ok(!lines(&stage, "ip -o addr")?.iter().any(|line| line.contains("tentative")))
    })?;
    let before = lines(&stage, &look)?;
    let kills = std::env::var("GOODPUT_KILLS").ok().and_then(|kills| kills.parse().ok());
    let kills = kills.unwrap_or(FEW);
    let mut undone = 0;
    for number in 0..kills {
        let change = &changes(&device)[number as usize % 3];
        let delay = Duration::from_millis(rand::random_range(0..LONGEST_MS));
        let with_guard = rand::random::<bool>();
        let run =
            compare(&stage, change, &[])?.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        // The moment is what is random: there is no condition to wait for.
        std::thread::sleep(delay);
        kill(run, with_guard)?;
        let is_back = lines(&stage, &look)? == before;
        let undo = stage.goodput(&["settings", "undo"])?.output()?;
        let said = String::from_utf8_lossy(&undo.stdout).into_owned();
        let after = lines(&stage, &look)?;
        if !undo.status.success() || after != before {
            let differs = difference(&before, &after);
            return Err(format!("kill {number}, guard too: {with_guard}, after {delay:?} of {change}: {differs:#?}\n{said}").into());
        }
        undone += u32::from(!is_back);
    }
    println!("{kills} kills, all as before; {undone} only after `goodput settings undo`");
    Ok(())
}

/// Ends a run, which may have ended, and its guard, which may not have begun.
fn kill(mut run: Child, with_guard: bool) -> Result<(), Failed> {
    if with_guard && run.try_wait()?.is_none() {
        signal("-STOP", run.id())?;
        if let Ok(guard) = guard_of(run.id()) {
            signal("-KILL", guard)?;
        }
    }
    run.kill()?;
    run.wait()?;
    Ok(())
}

/// What a shell at the near host prints, line by line, with one space between words.
pub fn lines(stage: &Stage, script: &str) -> Result<Vec<String>, Failed> {
    let output = stage.lab.near().command("sh")?.args(["-c", script]).output()?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    Ok(printed.lines().map(words).filter(|line| !line.is_empty()).collect())
}
