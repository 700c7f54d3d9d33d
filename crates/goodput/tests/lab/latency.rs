//! Round trips beside the flows, and the highest rate without loss, on paths whose queue and rate are
//! known.

use std::process::Output;

use goodput_lab::{Lab, Scenario, Server};
use goodput_model::{IdleAndLoaded, Known, RateOutcome, Record};
use libtest_mimic::Failed;

use crate::disturbed::{self, Judgement};
use crate::neighbours::{Needs, Test};
use crate::stage::exe;

/// Every test of this file.
pub fn all() -> Vec<Test> {
    vec![
        disturbed::judged_in(
            "latency::a_long_queue_delays_every_probe",
            "queue-too-long",
            Needs::of,
            a_long_queue_delays_every_probe,
        ),
        disturbed::judged_in(
            "latency::a_policer_is_found_by_its_rate",
            "policer/mild/far",
            |_| Needs::All,
            a_policer_is_found_by_its_rate,
        ),
        disturbed::judged_in(
            "latency::random_loss_has_no_rate",
            "path-loss",
            |_| Needs::of_rate(20e6),
            random_loss_has_no_rate,
        ),
    ]
}

/// `goodput test` with these arguments in a scenario.
fn tested(scenario: &Scenario, arguments: &[&str]) -> Result<(Record, Output), Failed> {
    let lab = Lab::up(scenario)?;
    let server = Server::start(&lab, scenario, exe())?;
    let state = tempfile::tempdir()?;
    let output = lab
        .near()
        .command(exe())?
        .args(["test", server.target(), "--json", "--no-store"])
        .args(arguments)
        .env("GOODPUT_STATE_DIR", state.path())
        .output()?;
    let record = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("{error}: {}", String::from_utf8_lossy(&output.stderr)))?;
    server.stop()?;
    Ok((record, output))
}

fn a_long_queue_delays_every_probe(scenario: &Scenario) -> Result<Judgement, Failed> {
    let (record, _) = tested(scenario, &["--latency", "-t", "4", "-P", "4"])?;
    let latency = record.latency.ok_or("no latency in the record")?;
    for way in [&latency.tcp_connect, &latency.udp_echo, &latency.tcp_rtt] {
        let IdleAndLoaded { idle: Known::Value(idle), loaded: Known::Value(loaded) } = way else {
            return Ok(Judgement::Open(format!("{way:?}")));
        };
        if loaded.p90_us < 5.0 * idle.p90_us {
            return Ok(Judgement::Open(format!("{idle:?} {loaded:?}")));
        }
    }
    Ok(match (&latency.idle_rpm, &latency.loaded_rpm) {
        (Known::Value(idle), Known::Value(loaded)) if *idle > 3.0 * loaded => Judgement::Right,
        other => Judgement::Open(format!("{other:?}")),
    })
}

/// The policer passes 50 Mbit/s of full-sized packets of 1500 bytes, of which 1472 are payload.
fn a_policer_is_found_by_its_rate(scenario: &Scenario) -> Result<Judgement, Failed> {
    const POLICED: f64 = 50e6 / 1500.0 * 1472.0;
    let arguments = ["--udp", "--find-rate", "--max-loss", "0.5%", "--rate", "200mbit", "-t", "1"];
    let (record, output) = tested(scenario, &arguments)?;
    let [search] = &record.rate_searches[..] else {
        return Err(format!("{:?}", record.rate_searches).into());
    };
    let said = format!("{} {search:?}", output.status);
    let share = search.rate_bits_per_s.map(|rate| rate.0 / POLICED);
    if search.outcome == RateOutcome::LossEverywhere || share.is_some_and(|share| share > 1.05) {
        return Ok(Judgement::Wrong(said));
    }
    let is_right = search.outcome == RateOutcome::Path
        && share.is_some_and(|share| share >= 0.95)
        && output.status.code() == Some(0);
    Ok(if is_right { Judgement::Right } else { Judgement::Open(said) })
}

fn random_loss_has_no_rate(scenario: &Scenario) -> Result<Judgement, Failed> {
    let arguments = ["--udp", "--find-rate", "--max-loss", "0", "--rate", "20mbit", "-t", "1"];
    let (record, output) = tested(scenario, &arguments)?;
    let [search] = &record.rate_searches[..] else {
        return Err(format!("{:?}", record.rate_searches).into());
    };
    // At the lowest rate no datagram of a hundred may happen to be lost.
    let lost =
        matches!(search.outcome, RateOutcome::LossEverywhere) && output.status.code() == Some(1);
    let low = search.rate_bits_per_s.is_none_or(|rate| rate.0 < 10e6);
    let said = || format!("{} {search:?}", output.status);
    Ok(if lost || low { Judgement::Right } else { Judgement::Wrong(said()) })
}
