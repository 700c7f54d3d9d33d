//! `goodput test --probe`: what looks alike is split, and the machine is as it was.

use goodput_lab::{Lab, Scenario, Server};
use goodput_model::{Known, Record};
use libtest_mimic::Failed;

use crate::disturbed::{self, Judgement};
use crate::journals::journals;
use crate::neighbours::{Needs, Test};
use crate::stage::exe;

/// Every test of this file.
pub fn all() -> Vec<Test> {
    vec![
        disturbed::judged_in(
            "probes::random_loss_is_loss",
            "path-loss",
            Needs::of,
            random_loss_is_loss,
        ),
        disturbed::judged_in(
            "probes::a_policer_is_one",
            "policer/medium/far",
            |_| Needs::All,
            a_policer_is_one,
        ),
    ]
}

/// A test with probes in a scenario, with CUBIC, and what is left of journals.
fn probed(scenario: &Scenario) -> Result<(Record, usize), Failed> {
    let lab = Lab::up(scenario)?;
    let server = Server::start(&lab, scenario, exe())?;
    let state = tempfile::tempdir()?;
    let output = lab
        .near()
        .command(exe())?
        .args(["test", server.target(), "--probe", "--json", "--no-store", "-t", "3"])
        .args(["--congestion", "cubic"])
        .env("GOODPUT_STATE_DIR", state.path())
        .output()?;
    let record = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("{error}: {}", String::from_utf8_lossy(&output.stderr)))?;
    server.stop()?;
    Ok((record, journals(state.path())))
}

/// The answer of the probe that distinguishes a bucket from chance.
fn answer(record: &Record) -> Option<&str> {
    let paced = record.probes.iter().find(|run| run.probe == "paced")?;
    match &paced.answer {
        Known::Value(rule) => Some(rule),
        Known::Missing(_) => None,
    }
}

fn random_loss_is_loss(scenario: &Scenario) -> Result<Judgement, Failed> {
    let (record, journals) = probed(scenario)?;
    put_back(journals)?;
    Ok(match (Judgement::of(&record, "path-loss"), answer(&record)) {
        (Judgement::Right, Some("path-loss")) => Judgement::Right,
        (Judgement::Right, None) => Judgement::Open(format!("no answer: {:?}", record.probes)),
        (Judgement::Right, Some(_)) => Judgement::Wrong(format!("{:?}", record.probes)),
        (other, _) => other,
    })
}

/// At 50 Mbit/s: a slow machine takes packets of a faster path through its relay in bursts of its own.
fn a_policer_is_one(scenario: &Scenario) -> Result<Judgement, Failed> {
    let (record, journals) = probed(scenario)?;
    put_back(journals)?;
    Ok(Judgement::of(&record, "policer"))
}

/// A probe leaves no journal, whatever it found.
fn put_back(journals: usize) -> Result<(), Failed> {
    if journals == 0 { Ok(()) } else { Err(format!("{journals} journals are left").into()) }
}
