//! `goodput test`: measure, or watch another program's transfer, then report what limits it.

use std::cell::RefCell;
use std::path::PathBuf;

use anyhow::{Result, bail};
use goodput_engine::probe::probe;
use goodput_engine::{
    AttachRequest, AttachTo, CapturedRun, Captures, Client, Conclusion, Event, HostLimitsWatch,
    Incomplete, attach, conclude, conclude_at_least,
};
use goodput_model::Plan;

use super::file_parts::{self, FILES};
use super::{find_rate, measured};
use crate::args::TestArgs;
use crate::data_dirs::{Keeper, announced, state_dir};
use crate::exit::{self, Exit};
use crate::far_end::FarEnd;
use crate::report::test::Detail;
use crate::report::{self, live::Live};
use crate::screen;
use goodput_compat::formats::Context;

/// Measures once, or watches another program's transfer, and reports.
pub fn run(args: TestArgs, state: Option<PathBuf>, verbose: bool) -> Result<Exit> {
    let detail = Detail { undecided: args.explain.undecided, verbose, ..Detail::default() };
    match (&args.target, args.explain.attach) {
        (Some(target), None) if target == FILES => file_parts::run(&args, state),
        (Some(_), None) if args.host.is_some() => {
            bail!("name one target; only `goodput test {FILES} HOST` takes a second word")
        }
        (Some(target), None) if args.find_rate.find_rate => find_rate::run(&args, target, state),
        (Some(target), None) => measure(&args, target, state, detail),
        (_, Some(to)) => watch(&args, to, state, detail),
        (None, None) => bail!("name a target, or a transfer to watch with --attach"),
    }
}

fn watch(args: &TestArgs, to: AttachTo, state: Option<PathBuf>, detail: Detail) -> Result<Exit> {
    let plan = args.measure.plan(Plan::standard().length);
    let request = AttachRequest {
        to,
        length: plan.length,
        interval_s: plan.interval_s,
        started: measured::now(),
    };
    let keeper = Keeper::open(&args.output)?;
    let mut live = live(args, &plan, "", &request.started);
    live.show(&Event::Opened { connections: Vec::new() });
    measured::end_with_input(&args.output);
    let mut show = |event: Event| {
        if let Event::Found { target, .. } = &event {
            let state = state.clone();
            let run = announced(state, &args.output, "test --attach", target, &request.started);
            live.announce(run);
        }
        live.show(&event);
    };
    let outcome =
        measured::block_on(async |interrupt| attach(&request, &interrupt, &mut show).await);
    finish(args, outcome, keeper, live, detail)
}

/// The display of the measurement while it runs: for a person, or in another program's format.
fn live(args: &TestArgs, plan: &Plan, target: &str, started: &str) -> Live {
    match args.format.format {
        Some(format) => Live::foreign((format.writer)(Context {
            plan: plan.clone(),
            target: target.into(),
            started: started.into(),
            served: None,
            served_flows: 0,
            style: args.format.style(args.measure.observing.interval),
        })),
        None => Live::new(&args.output, plan, target)
            .with_intervals(args.measure.observing.reports_intervals()),
    }
}

fn finish(
    args: &TestArgs,
    outcome: Result<(Conclusion, bool)>,
    keeper: Keeper,
    mut live: Live,
    detail: Detail,
) -> Result<Exit> {
    let (Conclusion { record, incomplete, .. }, interrupted) =
        outcome.inspect_err(|error| live.fail(&exit::in_words(error)))?;
    live.close();
    let incomplete = incomplete.filter(|_| !interrupted);
    let detail = Detail { failure_is_reported: incomplete.is_some(), ..detail };
    let text = || {
        live.rest(&record).unwrap_or_else(|| screen::fitted(&report::test::text(&record, detail)))
    };
    let printed = measured::finish(&record, text, &args.output, keeper);
    if let Some(why) = args.format.format.and_then(|format| (format.refuses)(&record)) {
        screen::say(format_args!("warning: {why}"));
    }
    match incomplete {
        Some(incomplete) => part(&incomplete, printed),
        None if interrupted => printed.map(|_| Exit::CouldNot),
        None => printed,
    }
}

/// The result so far is printed and stored, but an incomplete measurement is not a success.
fn part(incomplete: &Incomplete, printed: Result<Exit>) -> Result<Exit> {
    screen::say(format_args!("goodput: {}", incomplete.why));
    let exit = if incomplete.not_permitted { Exit::NotPermitted } else { Exit::CouldNot };
    match printed {
        Err(error) if !exit::is_seen_enough(&error) => Err(error),
        _ => Ok(exit),
    }
}

fn measure(
    args: &TestArgs,
    target_text: &str,
    state: Option<PathBuf>,
    detail: Detail,
) -> Result<Exit> {
    let files = args.capture.files()?;
    let (peer, access) = (&args.measure.peer, args.access.access());
    let FarEnd { target, credentials, started: _started } =
        FarEnd::of(target_text, peer, &access, state.clone())?;
    let plan = files.plan(args.measure.plan_towards(&target, Plan::standard().length));
    screen::leave_to_payload(&plan);
    let keeper = Keeper::open(&args.output)?;
    let started = measured::now();
    let announced = announced(state.clone(), &args.output, "test", target_text, &started);
    let mut live = live(args, &plan, target_text, &started).announced(announced);
    measured::end_with_input(&args.output);
    let state_dir = args.explain.probe.then(|| state_dir(state)).transpose()?;
    let outcome = measured::block_on(async |interrupt| {
        let limits = match args.explain.host_limits {
            true => Some(RefCell::new(HostLimitsWatch::measure(&plan).await?)),
            false => None,
        };
        let listener = &mut |event| {
            limits.iter().for_each(|limits| limits.borrow_mut().heard(&event));
            live.show(&event);
        };
        let mut client =
            Client::connect(&target, &plan, &credentials, &interrupt, listener).await?;
        let conclusion = async {
            let captures = Captures::start(&client, &plan, &files).await?;
            let mut measurement =
                goodput_engine::measure(&mut client, &plan, &interrupt, listener).await?;
            let captured = CapturedRun::of(&mut measurement);
            // A foreign format shows what was sent.
            let unreported = !target.protocol.far_end.counts && args.format.format.is_some();
            let mut conclusion = match unreported {
                true => conclude_at_least(measurement, target_text, &started),
                false => conclude(measurement, target_text, &started)?,
            };
            captures.finish(&mut conclusion.record, vec![captured]).await;
            if let Some(limits) = &limits {
                let limits = limits.borrow_mut().conclude(&conclusion.record);
                conclusion.record.host_limits = Some(Box::new(limits));
            }
            if let Some(state_dir) = state_dir.filter(|_| conclusion.incomplete.is_none()) {
                probe(&mut client, &mut conclusion.record, state_dir, &interrupt, listener).await?;
            }
            Ok(conclusion)
        }
        .await;
        client.leave().await;
        conclusion
    });
    finish(args, outcome, keeper, live, detail)
}
