//! `goodput shaping --class` on the classes of a real htb, which filters tell apart by DSCP or by port.

use std::process::Output;

use goodput_lab::{Lab, Scenario, Server};
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
    let commands = [
        "qdisc add dev DEVICE root handle 1: htb default 20".to_owned(),
        format!("class add dev DEVICE parent 1: classid 1:1 htb rate 100mbit {BUCKETS}"),
        format!("class add dev DEVICE parent 1:1 classid 1:10 htb rate {rate} {BUCKETS}"),
        format!("class add dev DEVICE parent 1:1 classid 1:20 htb rate 80mbit {BUCKETS}"),
    ];
    for command in commands.iter().map(String::as_str).chain(filter) {
        let set = tc(&lab, command)?;
        if !set.status.success() {
            goodput_testing::skip(&format!("tc {command}: {}", said(&set)));
            return Ok(None);
        }
    }
    let server = Server::start(&lab, &scenario, exe())?;
    let words = ["shaping", server.target(), "--rate", "100mbit", "--tolerance", "10%", "--class"];
    let more = [class, "--class", "be=80mbit", "--no-store", "--json"];
    let output = lab.near().command(exe())?.args(words).args(more).output()?;
    server.stop()?;
    let record: Value = serde_json::from_slice(&output.stdout).map_err(|_| said(&output))?;
    Ok(Some((record["shaping"].clone(), output.status.code().unwrap_or(-1))))
}

fn tc(lab: &Lab, command: &str) -> Result<Output, Failed> {
    let words = command.replace("DEVICE", lab.near().device());
    Ok(lab.near().command("tc")?.args(words.split(' ')).output()?)
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn judged(seen: Option<(Value, i32)>, is_right: impl Fn(&Value, i32) -> bool) -> Judgement {
    match seen {
        None => Judgement::Right,
        Some((shaping, code)) if is_right(&shaping, code) => Judgement::Right,
        Some((shaping, code)) => Judgement::Open(format!("exit code {code}: {shaping}")),
    }
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
        code == 1
            && shaping["classes"][0]["answer"] == "starves"
            && has_cause(shaping, "set-otherwise")
            && has_cause(shaping, "taken")
    }))
}

fn without_a_filter_both_are_one() -> Result<Judgement, Failed> {
    let seen = shaping("20mbit", None, "ef=20mbit..100mbit")?;
    Ok(judged(seen, |shaping, code| code == 1 && has_cause(shaping, "same-class")))
}
