//! What a run of a comparison costs on a long path beside its payload, counted by when the far end's clock was asked.

use goodput_lab::{Lab, Scenario, Server};
use goodput_model::{Exchange, Known, Record};
use libtest_mimic::Failed;

use crate::majority::{Outcome, Said, by_majority};
use crate::neighbours::Test;
use crate::stage::exe;

/// Questions while the path is idle, a few milliseconds apart.
const IDLE_QUESTIONS: usize = 16;
/// Questions beside the payload are 50 ms apart at least, nanoseconds.
const APART_NS: u64 = 40_000_000;

/// Every test of this file.
pub fn all() -> Vec<Test> {
    let name = "long_path::the_clocks_cost_a_run_no_round_trip";
    vec![Test::of_facts(name, move || by_majority(name, the_clocks_cost_a_run_no_round_trip))]
}

/// A comparison over a round trip of 300 ms, as long as payload waits for the first answers. The questions begin when the
/// plan is accepted, not two round trips later, when the flows are open; and none is asked when they have ended.
fn the_clocks_cost_a_run_no_round_trip() -> Result<Outcome, Failed> {
    let record = compared()?;
    let near = record.ends.near.get().map_err(|why| why.to_string())?;
    let began_ns = near.clock.as_ref().ok_or("no clock")?.began_ns;
    let exchanges = &record.clocks.exchanges;
    let early = exchanges.iter().filter(|exchange| exchange.back_ns <= began_ns).count();
    let mut sent: Vec<u64> = exchanges.iter().map(|Exchange { sent_ns, .. }| *sent_ns).collect();
    sent.sort_unstable();
    let is_dense = |two: &[u64]| two[1] - two[0] < APART_NS;
    let again = sent.windows(2).skip(IDLE_QUESTIONS).filter(|two| is_dense(two)).count();
    if again > 0 {
        return Err(format!("{again} questions were asked for an idle path once more").into());
    }
    let text = format!("{early} of {} answers before the payload", exchanges.len());
    let said = Said { text, cause: None };
    // A busy machine may be late.
    Ok(if early >= IDLE_QUESTIONS { Outcome::Expected } else { Outcome::Unexpected(said) })
}

/// The record of a short comparison.
fn compared() -> Result<Record, Failed> {
    let text = "name = \"long-path\"\ntitle = \"A long path.\"\n\
        [link.path]\nrate = \"20mbit\"\ndelay = \"150ms\"\n\
        [expect]\nlimit = \"path-rate\"\nend = \"path\"\n";
    let scenario = Scenario::parse("long-path", text)?;
    let lab = Lab::up(&scenario)?;
    let server = Server::start(&lab, &scenario, exe())?;
    let mut command = lab.near().command(exe())?;
    command.args(["compare", server.target(), "socket.sndbuf=1M,2M", "-t", "0.5"]);
    let output = command.args(["--max-time", "10s", "--json", "--no-store"]).output()?;
    server.stop()?;
    let said = String::from_utf8_lossy(&output.stderr);
    let record: Record =
        serde_json::from_slice(&output.stdout).map_err(|error| format!("{error}: {said}"))?;
    match &record.clocks.relation {
        Known::Value(_) => Ok(record),
        Known::Missing(why) => Err(format!("{why}: {said}").into()),
    }
}
