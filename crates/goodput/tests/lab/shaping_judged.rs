//! Whether `goodput shaping` knows shapers and policers at the edge of what a test of five seconds can show: one that is too slow for
//! TCP, and one whose bucket holds a second of its rate. What is drawn at random is in `cargo xtask shapers`.

use std::path::Path;

use goodput_lab::{Lab, Scenario, Server};
use libtest_mimic::Failed;
use serde_json::Value;

use crate::disturbed::{Judgement, judged};
use crate::neighbours::{Needs, Test};
use crate::stage::exe;

/// Every test of this file.
pub fn all() -> Vec<Test> {
    vec![
        judged(
            "shaping_judged::a_shaper_that_is_slow_for_tcp",
            Needs::of_rate(5e6),
            a_shaper_that_is_slow_for_tcp,
        ),
        judged(
            "shaping_judged::a_policer_of_the_receiver_that_counts_bytes",
            Needs::of_rate(50e6),
            a_policer_of_the_receiver_that_counts_bytes,
        ),
    ]
}

const PATH: &str = "name = \"path\"\ntitle = \"A path of two hosts.\"\n[link.path]\n";
/// Largest error of a rate, as a share: that which was asked for, 0.5 %.
const MAX_RATE_ERROR: f64 = 0.005;
/// Largest error of a bucket, as a share.
const MAX_BUCKET_ERROR: f64 = 0.1;

/// What a test has to find.
struct Wanted {
    rate: &'static str,
    kind: &'static str,
    bits_per_s: f64,
    bucket: f64,
}

/// What the test says of a lab in which it is planted.
fn judge(lab: &Lab, scenario: &Scenario, wanted: &Wanted) -> Result<Judgement, Failed> {
    let server = Server::start(lab, scenario, exe())?;
    let mut command = lab.near().command(exe())?;
    command.args(["shaping", server.target(), "--rate", wanted.rate, "--no-store", "--json"]);
    let output = command.output()?;
    server.stop()?;
    let said = || String::from_utf8_lossy(&output.stderr).into_owned();
    let record: Value = serde_json::from_slice(&output.stdout).map_err(|_| said())?;
    let test = &record["shaping"];
    let said = format!("{:?}: {} {}", output.status, test["reasons"], test["train"]);
    if test["train"]["kind"] != wanted.kind {
        return Ok(Judgement::Wrong(said));
    }
    // In the layer that it counts.
    let rate = test["datagrams_bits_per_s"]["value"].as_f64();
    let bucket = test["train"]["bucket_bytes"]["value"].as_f64();
    let frame = test["train"]["frame_bytes"].as_f64().unwrap_or_default();
    let is_rate = rate.is_some_and(|rate| (rate / wanted.bits_per_s - 1.0).abs() <= MAX_RATE_ERROR);
    let most = (wanted.bucket * MAX_BUCKET_ERROR).max(frame);
    let is_bucket = bucket.is_some_and(|bucket| (bucket - wanted.bucket).abs() <= most);
    Ok(match is_rate && is_bucket && output.status.code() == Some(0) {
        true => Judgement::Right,
        false => Judgement::Open(said),
    })
}

fn a_shaper_that_is_slow_for_tcp() -> Result<Judgement, Failed> {
    let shaped = format!(
        "{PATH}[[fault]]\nkind = \"tbf\"\nhost = \"near\"\nrate = \"1mbit\"\nburst = \"15000\"\nlimit = \"100k\"\n"
    );
    let scenario: Scenario = shaped.parse()?;
    let lab = Lab::up(&scenario)?;
    let wanted = Wanted { rate: "1mbit", kind: "shaper", bits_per_s: 1e6, bucket: 15e3 };
    judge(&lab, &scenario, &wanted)
}

/// The bucket holds a second of the rate and the burst (net/netfilter/nft_limit.c, `nft_limit_init`).
fn a_policer_of_the_receiver_that_counts_bytes() -> Result<Judgement, Failed> {
    const RULES: &str = "table inet goodput_test { chain in { type filter hook input priority 0; \
        meta length > 1000 limit rate over 1250000 bytes/second burst 60000 bytes drop; }; }";
    if !["/usr/sbin/nft", "/sbin/nft"].iter().any(|file| Path::new(file).exists()) {
        goodput_testing::skip("nft");
        return Ok(Judgement::Right);
    }
    let scenario: Scenario = PATH.parse()?;
    let lab = Lab::up(&scenario)?;
    let set = lab.far().command("nft")?.arg(RULES).output()?;
    if !set.status.success() {
        return Err(String::from_utf8_lossy(&set.stderr).into_owned().into());
    }
    let wanted = Wanted { rate: "10mbit", kind: "policer", bits_per_s: 10e6, bucket: 1_310_000.0 };
    judge(&lab, &scenario, &wanted)
}
