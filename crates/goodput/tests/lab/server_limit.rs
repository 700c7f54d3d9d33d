//! A limit of the server's operator is the verdict, whichever end sends and in whatever way.

use goodput_lab::{Lab, Scenario, Server};
use goodput_model::Record;
use libtest_mimic::Failed;

use crate::disturbed::{self, Judgement};
use crate::neighbours::{Needs, Test};
use crate::stage::exe;

/// Every test of this file.
pub fn all() -> Vec<Test> {
    vec![disturbed::judged(
        "server_limit::is_the_verdict_whoever_sends_and_however",
        Needs::of_rate(LIMIT_BITS_PER_S),
        is_the_verdict,
    )]
}

/// What the server lets each client have.
const LIMIT_BITS_PER_S: f64 = 50e6;

const LINK: &str = "name = \"plain\"\ntitle = \"A link.\"\n[link.path]\n\
                    [run]\nserver = [\"--max-rate\", \"50mbit\"]\n";

fn is_the_verdict() -> Result<Judgement, Failed> {
    let scenario = Scenario::parse("plain", LINK)?;
    let lab = Lab::up(&scenario)?;
    let server = Server::start(&lab, &scenario, exe())?;
    for way in [&[][..], &["-R"], &["-u"], &["-u", "-R"]] {
        let mut command = lab.near().command(exe())?;
        command.args(["test", server.target(), "--json", "--no-store", "-t", "2"]).args(way);
        let output = command.output()?;
        let record: Record = serde_json::from_slice(&output.stdout)
            .map_err(|error| format!("{error}: {}", String::from_utf8_lossy(&output.stderr)))?;
        match Judgement::of(&record, "server-limit") {
            Judgement::Right => {}
            other => return Ok(other),
        }
    }
    server.stop()?;
    Ok(Judgement::Right)
}
