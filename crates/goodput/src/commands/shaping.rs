//! `goodput shaping`: tests whether a shaper delivers its rate.

use anyhow::Result;
use goodput_engine::{ShapingRequest, Target, shaping};
use goodput_model::{Confirmation, Record};

use super::measured;
use crate::args::ShapingArgs;
use crate::credentials::credentials;
use crate::data_dirs::Keeper;
use crate::exit::Exit;
use crate::report::{self, live::Live};
use crate::screen;

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
    let keeper = Keeper::open(&args.output)?;
    let mut live = Live::new(&args.output, &request.plan).with_intervals(false);
    let (record, interrupted) = measured::block_on(async |interrupt| {
        shaping(&request, &interrupt, &mut |event| live.show(&event)).await
    })?;
    drop(live);
    let text = || screen::fitted(&report::shaping::text(&record));
    measured::finish_judged((&record, interrupted), text, &args.output, keeper, judged)
}

fn judged(record: &Record) -> Exit {
    match record.shaping.as_ref().map(|test| test.confirmation) {
        Some(Confirmation::Confirmed) => Exit::Fine,
        Some(Confirmation::Missed) => Exit::Problem,
        Some(Confirmation::Inconclusive) | None => Exit::Inconclusive,
    }
}
