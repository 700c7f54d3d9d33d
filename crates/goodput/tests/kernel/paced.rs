//! UDP whose datagrams the discipline fq holds until their time (`SO_TXTIME`).

use goodput_lab::{Lab, Scenario};
use libtest_mimic::{Failed, Trial};

use crate::program::measure;

/// Every test of this file.
pub fn all() -> Vec<Trial> {
    vec![Trial::test("paced::fq_holds_datagrams_until_their_time", fq_holds_datagrams)]
}

fn fq_holds_datagrams() -> Result<(), Failed> {
    let scenario: Scenario = "name = \"x\"\ntitle = \"X.\"".parse()?;
    let lab = Lab::up(&scenario)?;
    let (near, device) = (lab.near(), lab.near().device());
    let tc = |words: &str| -> Result<String, Failed> {
        let output = near.command("tc")?.args(words.split(' ')).output()?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned().into()),
        }
    };
    tc(&format!("qdisc replace dev {device} root fq"))?;
    let arguments = ["-u", "-t", "2", "--rate", "2mbit", "--mover", "txtime"];
    let record = measure(&lab, &scenario, &arguments)?;
    let text = tc(&format!("-json -statistics qdisc show dev {device}"))?;
    let shown: serde_json::Value = serde_json::from_str(&text)?;
    let held = shown[0]["throttled"].as_u64();
    let doubted: Vec<_> = record.doubts.iter().filter(|text| text.contains("fq")).collect();
    let came =
        record.result.directions.iter().filter_map(|way| way.received_bytes.value()).sum::<u64>();
    match (held, doubted.is_empty()) {
        (Some(held), true) if held > 0 && came > 0 => Ok(()),
        _ => Err(format!("held {held:?}, {came} bytes came, {doubted:?}").into()),
    }
}
