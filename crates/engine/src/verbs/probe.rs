//! Runs the probes that distinguish the two likeliest causes of a test, then gives the verdict.

use std::path::PathBuf;

use goodput_diagnose::probes::{Answer, Pair, Probe, Rivals, Seen, SetUp, rivals_in, settle};
use goodput_model::{BitRate, Known, Missing, Plan, ProbeRun, Record};
use goodput_remote::Hosts;

use crate::error::EngineError;
use crate::events::{Event, Listener};
use crate::interrupt::Interrupt;
use crate::near::client::Client;
use crate::near::measure::measure_whole;
use crate::result::conclude::conclude;
use crate::verbs::compare::Arm;
use crate::verbs::compare::appliers::Appliers;

/// Most probes that are run.
const MAX_PROBES: usize = 3;

/// Distinguishes the two likeliest causes of `record`, if a probe can, on the same conversation. A probe
/// that can't run says so in the record and decides nothing. Settings are put back after each, always.
pub async fn probe(
    client: &mut Client,
    record: &mut Record,
    state_dir: PathBuf,
    interrupt: &Interrupt,
    listener: &mut Listener<'_>,
) -> Result<(), EngineError> {
    let Some(rivals) = rivals_in(record) else {
        let text = "no probe is needed: no two causes look alike here".to_owned();
        listener(Event::Note { text: text.clone() });
        record.doubts.push(text);
        return Ok(());
    };
    let before = Seen::of(record).map_err(|why| EngineError::Flow(why.to_string()))?;
    for (second, probe) in rivals.splits.iter().take(MAX_PROBES) {
        if interrupt.is_raised() {
            break;
        }
        let Some(pair) = probe.pair(&rivals.first, second) else { continue };
        let text = format!("probes with {}: {} or {}", probe.title, pair.one, pair.other);
        listener(Event::Note { text });
        let seen = match (probe.set_up)(record) {
            Ok(set_up) => run(client, record, set_up, &state_dir, interrupt).await?,
            Err(why) => Err(why),
        };
        record.probes.push(entry(probe, pair, &before, seen));
    }
    decide(record, &rivals);
    Ok(())
}

/// Runs one probe. The outer error is one that the user must know: something was not put back.
async fn run(
    client: &mut Client,
    record: &Record,
    set_up: SetUp,
    state_dir: &std::path::Path,
    interrupt: &Interrupt,
) -> Result<Result<Seen, Missing>, EngineError> {
    let mut appliers = Appliers::new(state_dir.to_path_buf(), Hosts::default());
    let measured = async {
        // The capture is of the test, not of its probes.
        let plan = Plan { far_capture: false, ..set_up.plan };
        let plan = appliers.apply(client, &Arm(set_up.settings), &plan).await?;
        let measurement = measure_whole(client, &plan, interrupt, &mut |_| {}).await?;
        conclude(measurement, &record.target, &record.started)
    }
    .await;
    appliers.restore(Some(client)).await?;
    Ok(match measured {
        Ok(_) if interrupt.is_raised() => Err(Missing::because("it was interrupted")),
        Ok(conclusion) => Seen::of(&conclusion.record),
        Err(why) => Err(Missing::because(format!("it could not run: {why}"))),
    })
}

fn entry(probe: &Probe, pair: &Pair, before: &Seen, after: Result<Seen, Missing>) -> ProbeRun {
    let read = after.clone().and_then(|after| pair.read.read(before, &after));
    let answer = match &read {
        Ok((Answer::One, _)) => Known::Value(pair.one.to_owned()),
        Ok((Answer::Other, _)) => Known::Value(pair.other.to_owned()),
        Ok((Answer::Neither, _)) => {
            Known::missing("between the results that either cause would give")
        }
        Err(why) => Known::Missing(why.clone()),
    };
    let goodput = after.map(|seen| BitRate(seen.goodput));
    let text = match (&goodput, &read) {
        (Ok(goodput), Ok((_, value))) => format!(
            "{}: {} → {goodput}, {}",
            probe.title,
            BitRate(before.goodput),
            pair.read.words(*value)
        ),
        (Ok(goodput), Err(_)) => {
            format!("{}: {} → {goodput}", probe.title, BitRate(before.goodput))
        }
        (Err(_), _) => probe.title.to_owned(),
    };
    ProbeRun {
        probe: probe.id.into(),
        title: probe.title.into(),
        between: vec![pair.one.into(), pair.other.into()],
        before_bits_per_s: BitRate(before.goodput),
        goodput_bits_per_s: goodput.into(),
        reading: read.map(|(_, value)| value).into(),
        text,
        answer,
    }
}

/// A rival with more probes for it than against it is the verdict. If there is none, the first finding
/// stays, confirmed if a probe supports it.
fn decide(record: &mut Record, rivals: &Rivals) {
    let first = rivals.first.as_str();
    let mut seconds: Vec<&str> = rivals.splits.iter().map(|(rule, _)| rule.as_str()).collect();
    seconds.dedup();
    let votes = |second: &str, rule: &str| {
        let runs = record.probes.iter().filter(|run| run.between.iter().any(|r| r == second));
        runs.filter(|run| run.answer.value().is_some_and(|answer| answer == rule)).count()
    };
    let ahead = |second: &&str| votes(second, second) > votes(second, first);
    let behind = |second: &&str| votes(second, second) < votes(second, first);
    let winners: Vec<&str> = seconds.iter().copied().filter(ahead).collect();
    let losers: Vec<&str> = seconds.iter().copied().filter(behind).collect();
    let (winner, losers) = match (&winners[..], losers.is_empty()) {
        ([only], _) => (*only, vec![first]),
        ([], false) => (first, losers),
        _ => {
            let names = [&[first][..], &seconds].concat().join(", ");
            record
                .doubts
                .push(format!("the probes could not decide between these causes: {names}"));
            return;
        }
    };
    let speaks = |run: &&ProbeRun| run.answer.value().is_some_and(|answer| answer == winner);
    let Some(run) = record.probes.iter().find(speaks) else { return };
    let shown = (run.text.clone(), run.reading.value().copied().unwrap_or(0.0));
    settle(&mut record.findings, &mut record.verdict, winner, &losers, shown);
}
