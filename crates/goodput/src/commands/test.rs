//! `goodput test`: measure, then say what limits it.

use anyhow::Result;
use goodput_engine::{Client, Conclusion, EngineError, Target, conclude};
use goodput_model::Plan;

use super::measured;
use crate::args::TestArgs;
use crate::exit::Exit;
use crate::report::{self, live::Live};
use crate::storage::Keeper;

/// Measures once and reports.
pub fn run(args: TestArgs) -> Result<Exit> {
    let target: Target = args.target.parse()?;
    let token = measured::token(args.measure.token_file.as_deref())?;
    let plan = args.measure.plan(Plan::standard().length);
    let keeper = Keeper::open(args.output.no_store)?;
    let mut live = Live::new(&args.output, &plan);
    let started = measured::now();
    let (Conclusion { record, .. }, interrupted) = measured::block_on(async |interrupt| {
        let listener = &mut |event| live.show(&event);
        let mut client = tokio::select! {
            client = Client::connect(&target, &plan.socket, token, listener) => client?,
            () = interrupt.raised() => return Err(EngineError::Interrupted),
        };
        let measurement = client.measure(&plan, &interrupt, listener).await;
        client.leave().await;
        conclude(measurement?, &args.target, &started)
    })?;
    let text = || report::test::text(&record, args.undecided);
    let exit = measured::finish(&record, text, &args.output, &keeper)?;
    Ok(if interrupted { Exit::CouldNot } else { exit })
}
