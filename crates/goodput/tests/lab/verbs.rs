//! `goodput lab`, `goodput demo` and `goodput settings set`, as a user types them.

use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};

use goodput_lab::{Lab, Scenario, Server};
use libtest_mimic::Failed;
use serde_json::Value;

use crate::disturbed::{self, Judgement};
use crate::neighbours::{Needs, Test};
use crate::stage::{ORIGINAL, Stage, exe};

/// Every test of this file.
pub fn all() -> Vec<Test> {
    vec![
        Test::of_facts("verbs::a_setting_is_set_and_stays", a_setting_is_set_and_stays),
        Test::of_facts("verbs::a_lab_stays_up_until_it_is_ended", a_lab_stays_up_until_it_is_ended),
        Test::of_facts("verbs::runs_are_judged_and_counted", runs_are_judged_and_counted),
        Test::of_facts("verbs::a_change_is_compared_in_a_lab", a_change_is_compared_in_a_lab),
        disturbed::judged(
            "verbs::the_demo_proves_its_change",
            Needs::All,
            the_demo_proves_its_change,
        ),
        disturbed::judged(
            "verbs::a_plan_of_tuning_changes_nothing",
            Needs::All,
            a_plan_of_tuning_changes_nothing,
        ),
        disturbed::judged_in(
            "verbs::a_plan_says_what_the_far_end_refuses",
            "receive-window",
            Needs::of,
            a_plan_says_what_the_far_end_refuses,
        ),
        Test::of_facts(
            "verbs::tuning_that_is_interrupted_reports_what_it_tried",
            tuning_that_is_interrupted_reports_what_it_tried,
        ),
        disturbed::judged(
            "verbs::a_proof_that_is_interrupted_is_worth_what_its_runs_say",
            Needs::All,
            a_proof_that_is_interrupted_is_worth_what_its_runs_say,
        ),
        Test::of_facts("verbs::a_lab_ends_as_its_command", a_lab_ends_as_its_command),
        Test::of_facts(
            "verbs::what_the_kernel_makes_of_values_is_said",
            what_the_kernel_makes_of_values_is_said,
        ),
        Test::of_facts(
            "verbs::tuning_of_a_dead_path_ends_in_time",
            tuning_of_a_dead_path_ends_in_time,
        ),
        disturbed::judged("verbs::tuning_proves_what_helps", Needs::All, tuning_proves_what_helps),
        disturbed::judged_on(
            "verbs::tuning_for_latency_shortens_a_queue",
            Scenario::parse("long-queue", LONG_QUEUE),
            Needs::of,
            tuning_for_latency_shortens_a_queue,
        ),
        disturbed::judged(
            "verbs::a_policer_and_its_bucket_are_measured",
            Needs::All,
            a_policer_and_its_bucket_are_measured,
        ),
        disturbed::judged("verbs::a_shaper_gives_its_rate", Needs::All, a_shaper_gives_its_rate),
    ]
}

fn check(holds: bool, said: impl std::fmt::Display) -> Result<(), Failed> {
    if holds { Ok(()) } else { Err(said.to_string().into()) }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Nothing is left to undo: what was set on purpose stays.
fn a_setting_is_set_and_stays() -> Result<(), Failed> {
    let stage = Stage::set(&[])?;
    let name = format!("qdisc.tbf.burst@{}", stage.lab.near().device());
    let settings = |words: &[&str]| -> Result<Output, Failed> {
        Ok(stage.goodput(&[&["settings"], words].concat())?.output()?)
    };
    let wrong = settings(&["set", &format!("{name}=banana")])?;
    check(wrong.status.code() == Some(2) && stage.burst()? == ORIGINAL, text(&wrong.stderr))?;
    let set = settings(&["set", &format!("{name}=200000")])?;
    let said = text(&set.stdout);
    check(set.status.success() && stage.burst()? == 200_000, text(&set.stderr))?;
    check(said.contains("1600 → 200000") && said.contains("until the next boot"), &said)?;
    check(text(&settings(&["get", &name])?.stdout).trim() == "200000", "it reads otherwise")?;
    let undo = text(&settings(&["undo"])?.stdout);
    check(undo.contains("nothing to undo") && stage.burst()? == 200_000, undo)?;
    check(stage.journals() == 0, "a journal is left")
}

fn what_the_kernel_makes_of_values_is_said() -> Result<(), Failed> {
    let stage = Stage::set(&[])?;
    let device = stage.lab.near().device();
    let compare = |values: &str, more: &[&str]| -> Result<(Option<i32>, String), Failed> {
        let values = values.replace('=', &format!("@{device}="));
        let words = [&["compare", stage.target(), &values, "--no-store"], more].concat();
        let output = stage.goodput(&words)?.output()?;
        Ok((output.status.code(), text(&output.stdout) + &text(&output.stderr)))
    };
    let (code, said) = compare("rps.flow_cnt=1000,1024", &[])?;
    check(code == Some(2) && said.contains("1000 and 1024 are the same, 1024"), said)?;
    let (code, said) = compare("qdisc.tbf.burst=1600,100", &[])?;
    check(code == Some(2) && said.contains("have up to 1514 bytes"), said)?;
    check(stage.journals() == 0, "a journal is left")?;
    let (_, said) = compare("rps.flow_cnt=0,1000", &["-n", "100K", "--max-time", "1", "--json"])?;
    check(said.contains("=1000: the kernel made it 1024"), said)
}

fn a_lab_stays_up_until_it_is_ended() -> Result<(), Failed> {
    let mut command = Command::new(exe());
    command.args(["lab", "up", "burst-too-small"]).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let mut lab = command.spawn()?;
    let stdout = BufReader::new(lab.stdout.take().ok_or("stdout is piped")?);
    let mut said = Vec::new();
    for line in stdout.lines() {
        said.push(line?);
        if said.last().is_some_and(|line| line.contains("Ctrl-C")) {
            break;
        }
    }
    let near = said.iter().find(|line| line.trim_start().starts_with("near "));
    let (_, enter) = near.and_then(|near| near.split_once("nsenter ")).ok_or("no way into it")?;
    let inside = Command::new("nsenter").args(enter.split(' ')).args(["ip", "-o", "link"]).output();
    let sent = Command::new("kill").args(["-INT", &lab.id().to_string()]).status()?;
    let ended = lab.wait()?;
    check(sent.success() && ended.success(), ended)?;
    let devices = text(&inside?.stdout);
    check(devices.contains("to-far"), format!("{said:?}: {devices}"))
}

fn a_lab_ends_as_its_command() -> Result<(), Failed> {
    let code = |script: &str| -> Result<Option<i32>, Failed> {
        let words = ["lab", "up", "burst-too-small", "--", "sh", "-c", script];
        Ok(Command::new(exe()).args(words).status()?.code())
    };
    check(code("exit 7")? == Some(7), "not the exit code of its command")?;
    check(code("kill -TERM $$")? == Some(128 + 15), "not the signal of its command")
}

/// A scenario without an expectation is always as expected, and one that expects a fault which is not there
/// never.
fn runs_are_judged_and_counted() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let run = |expect: &str, more: &[&str]| -> Result<(Option<i32>, String), Failed> {
        let file = folder.path().join("plain.toml");
        let body = "name = \"plain\"\ntitle = \"A link.\"\n[link.path]\n[run]\nseconds = 1\n";
        std::fs::write(&file, format!("{body}{expect}"))?;
        let output = Command::new(exe()).args(["lab", "run"]).arg(&file).args(more).output()?;
        Ok((output.status.code(), text(&output.stdout) + &text(&output.stderr)))
    };
    let (code, said) = run("", &[])?;
    check(code == Some(0) && said.contains("1 as expected, 0 not as expected, 0 skipped"), said)?;
    let absent = "[expect]\nlimit = \"policer\"\nend = \"path\"\n";
    let (code, said) = run(absent, &[])?;
    check(code == Some(1) && said.contains("0 as expected, 1 not as expected, 0 skipped"), said)?;
    let (_, said) = run(absent, &["--json"])?;
    let line: Value = serde_json::from_str(&said).map_err(|why| format!("{why}: {said}"))?;
    let judged = line["judged"].as_array().ok_or("nothing is judged")?;
    check(judged.iter().any(|one| one["ok"] == false) && line["record"].is_object(), &line)
}

/// The effect is so large that a few runs decide.
fn a_change_is_compared_in_a_lab() -> Result<(), Failed> {
    const CHANGE: &str = "socket.max_pacing=10mbit,50mbit";
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("plain.toml");
    let link = "name = \"plain\"\ntitle = \"A link.\"\n[link.path]\nrate = \"100mbit\"\n";
    std::fs::write(&file, link)?;
    let mut command = Command::new(exe());
    command.args(["lab", "compare"]).arg(&file).args([CHANGE, "--json"]);
    let output = command.output()?;
    let said = text(&output.stdout);
    let line: Value = serde_json::from_str(&said).map_err(|why| format!("{why}: {said}"))?;
    let arms = line["record"]["comparison"]["arms"].as_array().map(Vec::len);
    check(arms == Some(2) && line["compared"] == CHANGE, said)
}

/// Which limit a busy machine has, and how clear an effect is, is its own business; what was changed is put
/// back anyway.
fn the_demo_proves_its_change() -> Result<Judgement, Failed> {
    let output = Command::new(exe()).arg("demo").output()?;
    let said = text(&output.stdout) + &text(&output.stderr);
    Ok(match output.status.code() {
        Some(0) if said.contains("== everything as it was") && said.contains("== proven") => {
            Judgement::Right
        }
        Some(4) if said.contains("== everything as it was") => Judgement::Open(said),
        Some(2) if said.contains("the demo expected") => Judgement::Cpus(said),
        _ => Judgement::Wrong(said),
    })
}

fn tune(stage: &Stage, more: &[&str]) -> Result<(Option<i32>, Value), Failed> {
    let mut command = stage.goodput(&["tune", stage.target(), "--no-store", "--json"])?;
    let output = command.args(more).output()?;
    let said = text(&output.stdout) + &text(&output.stderr);
    let record = serde_json::from_str(&text(&output.stdout)).map_err(|_| said)?;
    Ok((output.status.code(), record))
}

/// What a busy machine proposes is its own business; that nothing was changed is not.
fn a_plan_of_tuning_changes_nothing() -> Result<Judgement, Failed> {
    let stage = Stage::set(&[])?;
    let (code, record) = tune(&stage, &["--dry-run", "-t", "1"])?;
    let steps = record["tuning"]["steps"].as_array().ok_or("nothing would be tried")?;
    // A host that was busy meanwhile may propose something for the far end, which permits nothing.
    let is_planned = |step: &Value| match step["change"]["setting"]["end"] == "far" {
        true => step["outcome"] == "not-permitted",
        false => step["outcome"] == "planned",
    };
    check(code == Some(0) && steps.iter().all(is_planned), &record)?;
    check(record.get("comparison").is_none() && stage.journals() == 0, &record)?;
    check(stage.burst()? == ORIGINAL, "the burst is another")?;
    let words = ["tune", stage.target(), "--no-store", "--dry-run", "-t", "1"];
    let shown = text(&stage.goodput(&words)?.output()?.stdout);
    let back = format!("settings set qdisc.tbf.burst@{}={ORIGINAL}", stage.lab.near().device());
    Ok(match shown.contains("undo") && shown.contains(&back) {
        true => Judgement::Right,
        false => Judgement::Open(shown),
    })
}

/// A server that allows no changes is asked, and refuses those of its own host, if the test proposes some.
fn a_plan_says_what_the_far_end_refuses(scenario: &Scenario) -> Result<Judgement, Failed> {
    let lab = Lab::up(scenario)?;
    let server = Server::start(&lab, scenario, exe())?;
    let directory = tempfile::tempdir()?;
    let mut command = lab.near().command(exe())?;
    command.args(["tune", server.target(), "--dry-run", "--json", "--no-store", "-t", "1"]);
    command.env("GOODPUT_STATE_DIR", directory.path().join("state"));
    let output = command.env("XDG_CONFIG_HOME", directory.path()).output()?;
    server.stop()?;
    let record: Value = serde_json::from_str(&text(&output.stdout))
        .map_err(|_| text(&output.stdout) + &text(&output.stderr))?;
    let steps = record["tuning"]["steps"].as_array().ok_or("a list of steps")?;
    let (far, near): (Vec<_>, Vec<_>) =
        steps.iter().partition(|step| step["change"]["setting"]["end"] == "far");
    let is = |steps: &[&Value], outcome| steps.iter().all(|step| step["outcome"] == outcome);
    check(is(&far, "not-permitted") && is(&near, "planned"), &record["tuning"])?;
    let Some(step) = far.first() else {
        return Ok(Judgement::Open(record["tuning"].to_string()));
    };
    check(step["comparison"].to_string().contains("settings"), step)?;
    Ok(Judgement::Right)
}

/// Tunes with these arguments, and interrupts once after a line for which `is_time` holds. Returns the exit code and the last
/// event, which has the record.
fn interrupted(
    stage: &Stage,
    more: &[&str],
    mut is_time: impl FnMut(&str) -> bool,
) -> Result<(Option<i32>, Value), Failed> {
    let words = ["tune", stage.target(), "--no-store", "--json-stream", "-t", "0.5"];
    let mut child = stage.goodput(&words)?.args(more).stdout(Stdio::piped()).spawn()?;
    let lines = BufReader::new(child.stdout.take().ok_or("it is piped")?).lines();
    let (mut is_interrupted, mut last) = (false, String::new());
    for line in lines {
        last = line?;
        if !is_interrupted && is_time(&last) {
            is_interrupted = true;
            let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status()?;
            check(sent.success(), "it could not be interrupted")?;
        }
    }
    Ok((child.wait()?.code(), serde_json::from_str(&last)?))
}

/// Between two runs of a change: so few can show nothing, and all is as it was.
fn tuning_that_is_interrupted_reports_what_it_tried() -> Result<(), Failed> {
    let stage = Stage::set(&[])?;
    let mut tries = false;
    let (code, event) = interrupted(&stage, &[], |line| {
        tries |= line.contains("change-began");
        tries && line.contains("trial-ended")
    })?;
    let tuning = &event["record"]["tuning"];
    check(code == Some(2) && tuning["stopped"] == "it was interrupted", &event)?;
    // What is not permitted may come before the step that was interrupted, and what was planned after it.
    let steps = tuning["steps"].as_array().ok_or("there are steps")?;
    let ended_early = steps.iter().filter(|step| step["outcome"] == "too-few-runs").count();
    check(ended_early == 1, tuning)?;
    check(stage.burst()? == ORIGINAL && stage.journals() == 0, "not everything was put back")
}

/// As the last comparison begins: a trial is the proof if it was the only one and went on until it was judged. Nothing is
/// if there were others, or if an obvious difference ended it early.
fn a_proof_that_is_interrupted_is_worth_what_its_runs_say() -> Result<Judgement, Failed> {
    let stage = Stage::set(&[])?;
    let (code, event) = interrupted(&stage, &[], |line| line.contains("proof-began"))?;
    check(stage.burst()? == ORIGINAL && stage.journals() == 0, "not everything was put back")?;
    let tuning = &event["record"]["tuning"];
    if code != Some(2) {
        return Ok(Judgement::Open(tuning.to_string()));
    }
    check(tuning["stopped"] == "it was interrupted", &event)?;
    check(event["record"].get("incomplete").is_none_or(Value::is_null), &event)?;
    let steps = tuning["steps"].as_array().ok_or("there are steps")?;
    let compared = |step: &&Value| step["comparison"].get("arms").is_some();
    let trials: Vec<_> = steps.iter().filter(compared).collect();
    let proven = tuning["proven"].as_array().ok_or("a list")?.len();
    let is_better = |step: &Value| {
        step["outcome"] == "kept"
            && step["comparison"]["arms"][1]["goodput"]["judgement"] == "better"
    };
    let is_proof = matches!(&trials[..], [only] if is_better(only));
    check(proven == usize::from(is_proof), tuning)?;
    Ok(Judgement::Right)
}

/// The path dies at once. However long the far end may be waited for, the time that was given is kept to: otherwise the
/// silence of the far end would end it, in other words.
fn tuning_of_a_dead_path_ends_in_time() -> Result<(), Failed> {
    let stage = Stage::set(&[])?;
    let near = stage.lab.near();
    let words = ["tune", stage.target(), "--no-store", "--json-stream", "--max-time", "8"];
    let mut command = stage.goodput(&words)?;
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(child.stdout.take().ok_or("it is piped")?).lines();
    let is_moving = lines.by_ref().map_while(Result::ok).any(|line| line.contains("interval"));
    check(is_moving, "nothing was measured")?;
    near.command("ip")?.args(["link", "set", near.device(), "down"]).status()?;
    lines.for_each(drop);
    let ended = child.wait_with_output()?;
    let said = text(&ended.stderr);
    check(ended.status.code() == Some(2) && said.contains("within 8 s (--max-time)"), said)
}

/// What limits a busy machine, and how clear an effect is, is its own business; what was changed is put back all
/// the same, and nothing is called proven that the last comparison does not support.
fn tuning_proves_what_helps() -> Result<Judgement, Failed> {
    let stage = Stage::set(&[])?;
    let (code, record) = tune(&stage, &["-t", "0.5"])?;
    check(stage.burst()? == ORIGINAL && stage.journals() == 0, "not everything was put back")?;
    let tuning = &record["tuning"];
    let better = record["comparison"]["arms"][1]["goodput"]["judgement"] == "better";
    let proven: Vec<_> = tuning["proven"].as_array().ok_or("a list")?.iter().collect();
    let is_open = code == Some(4) && proven.is_empty();
    check((code == Some(0) || is_open) && better != proven.is_empty(), tuning)?;
    let helps = |change: &&Value| change["setting"]["name"] == "qdisc.tbf.burst";
    Ok(match proven.into_iter().any(|change| helps(&change)) {
        true => Judgement::Right,
        false => Judgement::Open(tuning.to_string()),
    })
}

/// A queue of 300 ms before the sender's own bucket.
const LONG_QUEUE: &str = "\
name = \"long-queue\"
title = \"The sender's shaper has a queue of many round trips.\"
[link.path]
delay = \"1ms\"
[[fault]]
kind = \"tbf\"
host = \"near\"
rate = \"20mbit\"
burst = \"50KB\"
limit = \"750KB\"
";

/// The path is full, so nothing is left to gain for goodput; the queue costs its round trips alone.
fn tuning_for_latency_shortens_a_queue(scenario: &Scenario) -> Result<Judgement, Failed> {
    let lab = Lab::up(scenario)?;
    let server = Server::start(&lab, scenario, exe())?;
    let directory = tempfile::tempdir()?;
    let mut command = lab.near().command(exe())?;
    command.args(["tune", server.target(), "--for", "latency", "--congestion", "cubic"]);
    // TCP leaves only a few packets of each flow in its own host's queue (TCP small queues, net/ipv4/tcp_output.c).
    command.args(["-P", "32", "--json", "--no-store", "-t", "1", "--max-time", "60"]);
    command.env("GOODPUT_STATE_DIR", directory.path().join("state"));
    let output = command.env("XDG_CONFIG_HOME", directory.path()).output()?;
    server.stop()?;
    let said = text(&output.stdout) + &text(&output.stderr);
    let record: Value = serde_json::from_str(&text(&output.stdout)).map_err(|_| said)?;
    let tuning = &record["tuning"];
    let steps = tuning["steps"].as_array().ok_or("a list of steps")?;
    check(steps.iter().any(|step| shortens(&step["change"])), tuning)?;
    let proven = tuning["proven"].as_array().ok_or("a list of what is proven")?;
    Ok(match proven.iter().any(shortens) {
        true => Judgement::Right,
        false => Judgement::Open(tuning.to_string()),
    })
}

fn shortens(change: &Value) -> bool {
    change["setting"]["name"] == "qdisc.tbf.limit"
}

/// What `goodput shaping` says of a scenario whose rate is `rate`, in bits per second.
fn shaping(case: &str, rate: &str) -> Result<Value, Failed> {
    let scenario = Scenario::load(case)?;
    let lab = Lab::up(&scenario)?;
    let server = Server::start(&lab, &scenario, exe())?;
    let words = ["shaping", server.target(), "--rate", rate, "--no-store", "--json"];
    let output = lab.near().command(exe())?.args(words).output()?;
    server.stop()?;
    let record: Value = serde_json::from_str(&text(&output.stdout))
        .map_err(|_| text(&output.stdout) + &text(&output.stderr))?;
    Ok(record["shaping"].clone())
}

/// Whether the train shows `kind`, a rate in frames and a bucket in bytes, each within a share of the truth.
fn train_shows(shaping: &Value, kind: &str, rate: f64, bucket: f64) -> Judgement {
    let train = &shaping["train"];
    let said = || shaping.to_string();
    let is_near = |value: &Value, truth: f64, share: f64| {
        value["value"].as_f64().is_some_and(|value| (value / truth - 1.0).abs() <= share)
    };
    // A host that is too busy drops datagrams in its socket, or sends too few.
    match train["kind"].as_str() {
        None | Some("none") => Judgement::Open(said()),
        Some(found) if found != kind => Judgement::Wrong(said()),
        Some(_) => {
            let right = is_near(&train["rate_bits_per_s"], rate, 0.02)
                && is_near(&train["bucket_bytes"], bucket, 0.15);
            if right { Judgement::Right } else { Judgement::Open(said()) }
        }
    }
}

fn a_policer_and_its_bucket_are_measured() -> Result<Judgement, Failed> {
    let seen = shaping("policer/medium/far", "50mbit")?;
    // It counts IP packets: 40 of 1500 bytes.
    Ok(train_shows(&seen, "policer", 50e6 * 1514.0 / 1500.0, 40.0 * 1514.0))
}

fn a_shaper_gives_its_rate() -> Result<Judgement, Failed> {
    let seen = shaping("shaper-rate/severe/near", "20mbit")?;
    Ok(train_shows(&seen, "shaper", 20e6, 64e3))
}
