//! `goodput test files HOST`: disk alone, network alone, and both.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use goodput_engine::compare::CompareRequest;
use goodput_engine::file_parts;
use goodput_model::{Length, Record, Response, Source};

use super::measured::{self, Runs};
use super::settings::settle_leftovers;
use crate::args::TestArgs;
use crate::data_dirs::{announced, state_dir};
use crate::exit::Exit;
use crate::far_end::FarEnd;
use crate::report::{self, live::Live};

/// The target that stands for the parts of a file transfer.
pub const FILES: &str = "files";
/// Length of one run if a sink is named but no length.
const RUN_LENGTH: Length = Length::Seconds(2.0);
/// Precision at which to stop, and the smallest difference that counts, percent: the same as in `compare`.
const PRECISION_PERCENT: f64 = 2.0;
const THRESHOLD_PERCENT: f64 = 3.0;
/// Longest time for all runs: the same as in `compare`, or the time of the runs if the user asks for longer ones.
const MAX_TIME: Duration = Duration::from_secs(300);
const MIN_RUNS: f64 = 20.0;

/// Measures the parts and reports which one limits.
pub fn run(args: &TestArgs, state: Option<PathBuf>) -> Result<Exit> {
    let Some(host) = &args.host else {
        bail!("name the far end after `files`: goodput test files HOST --source FILE");
    };
    let (peer, access) = (&args.measure.peer, args.access.access());
    let FarEnd { target, credentials, started: _started } =
        FarEnd::of(host, peer, &access, state.clone())?;
    let plan = args.measure.plan_towards(&target, RUN_LENGTH);
    match &plan.storage.source {
        None if plan.storage.sink.is_none() => {
            bail!("name the files to measure: --source FILE, --sink FILE or both")
        }
        Some(Source::Input) => bail!("standard input can be read only once: name a file"),
        _ => {}
    }
    if plan.storage.sink.as_ref().is_some_and(|sink| sink.name == "-") {
        bail!("standard output can't be written alone first: name a file for --sink");
    }
    let request = CompareRequest {
        credentials,
        target,
        plan,
        arms: Vec::new(),
        responses: vec![Response::Throughput],
        ways_to_win: 1,
        precision_percent: PRECISION_PERCENT,
        threshold_percent: THRESHOLD_PERCENT,
        may_shorten: false,
        is_about_parts: false,
        settled: false,
        past_slow_start: false,
        proof_by: None,
        given_up_at: None,
        turns: None,
        max_time: max_time(args.measure.length.time).into(),
        seed: rand::random(),
        state_dir: state_dir(state.clone())?,
        hosts: Default::default(),
        far_settings: None,
        started: measured::now(),
    };
    settle_leftovers(&request.state_dir);
    let announced = announced(state, &args.output, "test", host, &request.started);
    let live = Live::new(&args.output, &request.plan, host).announced(announced);
    Runs { output: &args.output, live, text: &report::file_parts::text, judge: conclusive }
        .report(async |interrupt, listener| file_parts(&request, interrupt, listener).await)
}

fn max_time(asked_s: Option<f64>) -> Duration {
    let runs_s = asked_s.unwrap_or_default() * MIN_RUNS;
    MAX_TIME.max(Duration::try_from_secs_f64(runs_s).unwrap_or(Duration::MAX))
}

fn conclusive(record: &Record) -> Exit {
    let named = record.file_parts.as_ref().is_some_and(|parts| parts.limit.value().is_some());
    if named { Exit::Fine } else { Exit::Inconclusive }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_runs_have_longer_in_all() {
        let all = [None, Some(2.0), Some(60.0)].map(|asked_s| max_time(asked_s).as_secs());
        assert_eq!(all, [300, 300, 1200]);
    }
}
