//! `goodput test --find-rate`: the highest rate of datagrams without loss.

use std::path::PathBuf;

use anyhow::Result;
use goodput_engine::{FindRateRequest, find_rate};
use goodput_model::{Length, RateOutcome, Record};

use super::measured::{self, Runs};
use crate::args::TestArgs;
use crate::data_dirs::announced;
use crate::exit::Exit;
use crate::far_end::FarEnd;
use crate::report::{self, live::Live};

/// Length of one trial if the user sets none: long enough for thousands of datagrams at most rates,
/// and short enough for the dozen trials of a search.
const TRIAL_LENGTH: Length = Length::Seconds(2.0);

/// Searches and reports.
pub fn run(args: &TestArgs, target_text: &str, state: Option<PathBuf>) -> Result<Exit> {
    let (peer, access) = (&args.measure.peer, args.access.access());
    let FarEnd { target, credentials, started: _started } =
        FarEnd::of(target_text, peer, &access, state.clone())?;
    let plan = args.measure.plan_towards(&target, TRIAL_LENGTH);
    let sizes = match &args.find_rate.datagram_sizes[..] {
        [] => vec![plan.chunk_bytes],
        sizes => sizes.to_vec(),
    };
    let request = FindRateRequest {
        credentials,
        target,
        plan,
        sizes,
        max_loss_percent: args.find_rate.max_loss,
        started: measured::now(),
    };
    let announced = announced(state, &args.output, "test", target_text, &request.started);
    let live = Live::new(&args.output, &request.plan, target_text)
        .with_status(&request.plan, None)
        .announced(announced);
    let text = report::rate_search::text;
    Runs { output: &args.output, live, text: &text, judge: found }
        .report(async |interrupt, listener| find_rate(&request, interrupt, listener).await)
}

/// The worst of all sizes: loss at any rate is a problem, and a rate that wasn't found is
/// inconclusive.
fn found(record: &Record) -> Exit {
    let any = |wanted: RateOutcome| record.rate_searches.iter().any(|s| s.outcome == wanted);
    if any(RateOutcome::LossEverywhere) {
        Exit::Problem
    } else if any(RateOutcome::Unsteady) || any(RateOutcome::Unfinished) {
        Exit::Inconclusive
    } else {
        Exit::Fine
    }
}
