//! `goodput shaping --class` on the classes of a real htb, which filters tell apart by DSCP or by port.

use std::process::Output;

use goodput_lab::{Host, Lab, Scenario, Server};
use goodput_testing::Sshd;
use libtest_mimic::Failed;
use serde_json::Value;

use crate::disturbed::{self, Judgement};
use crate::neighbours::{Needs, Test};
use crate::stage::exe;

/// Every test of this file.
pub fn all() -> Vec<Test> {
    vec![
        disturbed::judged(
            "shaping_classes::each_gets_its_rate_and_borrows",
            Needs::All,
            each_gets_its_rate_and_borrows,
        ),
        disturbed::judged(
            "shaping_classes::one_starves_beside_another",
            Needs::All,
            one_starves_beside_another,
        ),
        disturbed::judged(
            "shaping_classes::without_a_filter_both_are_one",
            Needs::All,
            without_a_filter_both_are_one,
        ),
        disturbed::judged("shaping_classes::through_a_router", Needs::All, through_a_router),
    ]
}

const DSCP_FILTER: &str =
    "filter add dev DEVICE parent 1: protocol ip u32 match ip tos 0xb8 0xfc flowid 1:10";
const BUCKETS: &str = "ceil 100mbit burst 64k cburst 64k";
const PORT_FILTER: &str =
    "filter add dev DEVICE parent 1: protocol ip u32 match ip sport 6000 0xffff flowid 1:10";

/// `goodput shaping` through a class 1:10 of this rate and its sibling of 80 Mbit/s, below 100 Mbit/s. `None` if tc(8) or
/// the kernel lacks what that takes.
fn shaping(rate: &str, filter: Option<&str>, class: &str) -> Result<Option<(Value, i32)>, Failed> {
    let text = "name = \"classes\"\ntitle = \"A path of two hosts.\"\n[link.path]\n";
    let scenario: Scenario = text.parse()?;
    let lab = Lab::up(&scenario)?;
    if let Some(lacks) = classes_at(lab.near(), lab.near().device(), rate, filter)? {
        goodput_testing::skip(&lacks);
        return Ok(None);
    }
    shaping_from(&lab, &scenario, class, None).map(Some)
}

/// Makes the classes at a device of a host. Returns what the kernel lacks for that, if anything.
fn classes_at(
    host: &Host,
    device: &str,
    rate: &str,
    filter: Option<&str>,
) -> Result<Option<String>, Failed> {
    let commands = [
        "qdisc add dev DEVICE root handle 1: htb default 20".to_owned(),
        format!("class add dev DEVICE parent 1: classid 1:1 htb rate 100mbit {BUCKETS}"),
        format!("class add dev DEVICE parent 1:1 classid 1:10 htb rate {rate} {BUCKETS}"),
        format!("class add dev DEVICE parent 1:1 classid 1:20 htb rate 80mbit {BUCKETS}"),
    ];
    for command in commands.iter().map(String::as_str).chain(filter) {
        let words = command.replace("DEVICE", device);
        let set = host.command("tc")?.args(words.split(' ')).output()?;
        if !set.status.success() {
            return Ok(Some(format!("tc {command}: {}", said(&set))));
        }
    }
    Ok(None)
}

/// `goodput shaping` of a class and `be` from the near host, with the router that a login leads to, if there is one. The
/// test, and the exit code.
fn shaping_from(
    lab: &Lab,
    scenario: &Scenario,
    class: &str,
    router: Option<&Sshd>,
) -> Result<(Value, i32), Failed> {
    let server = Server::start(lab, scenario, exe())?;
    let words = ["shaping", server.target(), "--rate", "100mbit", "--tolerance", "10%", "--class"];
    let mut command = lab.near().command(exe())?;
    command.args(words).args([class, "--class", "be=80mbit", "--no-store", "--json"]);
    if let Some(sshd) = router {
        command.args(["--router", "ssh://b"]).env("GOODPUT_SSH_CONFIG", sshd.config());
    }
    let output = command.output()?;
    server.stop()?;
    let record: Value = serde_json::from_slice(&output.stdout).map_err(|_| said(&output))?;
    Ok((record["shaping"].clone(), output.status.code().unwrap_or(-1)))
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// An answer that is not right is open only if the test, or a class, decides nothing.
fn judged(seen: Option<(Value, i32)>, is_right: impl Fn(&Value, i32) -> bool) -> Judgement {
    let Some((shaping, code)) = seen else { return Judgement::Right };
    if is_right(&shaping, code) {
        return Judgement::Right;
    }
    let classes = shaping["classes"].as_array().into_iter().flatten();
    let answers = classes.map(|class| &class["answer"]);
    let decides_nothing =
        answers.chain([&shaping["confirmation"]]).any(|answer| answer == "inconclusive");
    let said = format!("exit code {code}: {shaping}");
    if decides_nothing { Judgement::Open(said) } else { Judgement::Wrong(said) }
}

fn has_cause(shaping: &Value, id: &str) -> bool {
    shaping["causes"].as_array().is_some_and(|all| all.iter().any(|cause| cause["id"] == id))
}

fn each_gets_its_rate_and_borrows() -> Result<Judgement, Failed> {
    let seen = shaping("20mbit", Some(DSCP_FILTER), "ef=20mbit")?;
    Ok(judged(seen, |shaping, code| {
        let [ef, be] = [0, 1].map(|place| &shaping["classes"][place]);
        let borrows = |class: &Value| {
            class["ceil_bits_per_s"] == 1e8
                && class["alone_bits_per_s"]["value"].as_f64().is_some_and(|alone| alone > 9e7)
        };
        code == 0
            && ef["htb_class"] == "1:10"
            && be["htb_class"] == "1:20"
            && borrows(ef)
            && borrows(be)
    }))
}

fn one_starves_beside_another() -> Result<Judgement, Failed> {
    let seen = shaping("1mbit", Some(PORT_FILTER), "source-port:6000=20mbit")?;
    Ok(judged(seen, |shaping, code| {
        let class = &shaping["classes"][0];
        // TCP starves too: from another port, it would share the class of the others.
        let beside = class["beside_bits_per_s"]["value"].as_f64();
        code == 1
            && class["answer"] == "starves"
            && beside.is_some_and(|rate| rate < 1e7)
            && has_cause(shaping, "set-otherwise")
            && has_cause(shaping, "taken")
    }))
}

fn without_a_filter_both_are_one() -> Result<Judgement, Failed> {
    let seen = shaping("20mbit", None, "ef=20mbit..100mbit")?;
    Ok(judged(seen, |shaping, code| code == 1 && has_cause(shaping, "same-class")))
}

/// A router between both hosts, whose htb has the classes, and a login to it from the near host.
fn through_a_router() -> Result<Judgement, Failed> {
    let text = "name = \"router\"\ntitle = \"Two hosts and a router.\"\n[link.near-router]\n[link.router-far]\n";
    let scenario: Scenario = text.parse()?;
    let lab = Lab::up(&scenario)?;
    let router = lab.host("router").ok_or("no router")?;
    if let Some(lacks) = classes_at(router, router.device(), "20mbit", Some(DSCP_FILTER))? {
        goodput_testing::skip(&lacks);
        return Ok(Judgement::Right);
    }
    let mut holder = router.command("sleep")?.arg("1000").spawn()?;
    let forced = format!("exec nsenter --net=/proc/{}/ns/net -- /bin/sh", holder.id());
    let seen = lab.near().within(|| Sshd::start(&forced)).map_err(Failed::from).and_then(|sshd| {
        sshd.map(|sshd| shaping_from(&lab, &scenario, "ef=20mbit", Some(&sshd))).transpose()
    });
    holder.kill()?;
    holder.wait()?;
    Ok(judged(seen?, |shaping, code| {
        let [ef, be] = [0, 1].map(|place| &shaping["classes"][place]["htb_class"]);
        code == 0 && ef == "1:10" && be == "1:20"
    }))
}
