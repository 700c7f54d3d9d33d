//! `goodput shaping`: tests whether a shaper delivers its rate.

use anyhow::Result;
use goodput_engine::{ShapingRequest, Target, shaping};
use goodput_model::{Confirmation, Record};

use super::measured::{self, Runs};
use crate::args::ShapingArgs;
use crate::credentials::credentials;
use crate::exit::Exit;
use crate::report::{self, live::Live};

/// Tests and reports.
pub fn run(args: &ShapingArgs) -> Result<Exit> {
    let target: Target = args.target.parse()?;
    let request = ShapingRequest {
        credentials: credentials(&args.credentials, &target)?,
        plan: args.traffic.plan(),
        datagram: args.traffic.datagram(&target),
        target,
        told: args.shaper.told(),
        started: measured::now(),
    };
    let live = Live::new(&args.output, &request.plan).with_intervals(false);
    Runs { output: &args.output, live, text: report::shaping::text, judge: judged }
        .report(async |interrupt, listener| shaping(&request, interrupt, listener).await)
}

fn judged(record: &Record) -> Exit {
    match record.shaping.as_ref().map(|test| test.confirmation) {
        Some(Confirmation::Confirmed) => Exit::Fine,
        Some(Confirmation::Missed) => Exit::Problem,
        Some(Confirmation::Inconclusive) | None => Exit::Inconclusive,
    }
}
