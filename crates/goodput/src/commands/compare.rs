//! `goodput compare`: prove a change.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use goodput_engine::compare::{CompareRequest, Factor, compare};
use goodput_engine::{EngineError, Target};
use goodput_model::{Bytes, Comparison, Judgement, Length, Plan, Record, Source};
use goodput_settings::SettingError;

use super::measured;
use crate::args::CompareArgs;
use crate::credentials::credentials;
use crate::exit::Exit;
use crate::report::{self, live::Live};
use crate::storage::{Keeper, state_dir};

/// Length of one run where the user names none: past slow start on most paths, and short enough
/// for the dozen runs that a proof takes.
const RUN_LENGTH: Length = Length::Seconds(2.0);

/// Runs the comparison and reports.
pub fn run(args: CompareArgs, state: Option<PathBuf>) -> Result<Exit> {
    let target: Target = args.target.parse()?;
    let factors = args.factors.iter().map(|f| factor(f)).collect::<Result<Vec<_>>>()?;
    let plan = args.measure.plan_towards(&target, RUN_LENGTH);
    let cells = cells(&plan, &args.sizes, &args.clients)?;
    let seed = args.seed.unwrap_or_else(rand::random);
    let request = CompareRequest {
        target,
        credentials: credentials(&args.measure.credentials)?,
        plan: plan.clone(),
        factors,
        precision_percent: args.precision,
        threshold_percent: args.threshold,
        max_time: Duration::from_secs_f64(args.max_time / cells.len() as f64),
        seed,
        state_dir: state_dir(state)?,
        started: measured::now(),
    };
    let keeper = Keeper::open(args.output.no_store)?;
    let mut live = Live::new(&args.output, &plan);
    let (record, interrupted) = measured::block_on(async |interrupt| {
        let mut whole: Option<Record> = None;
        for plan in cells {
            let request = CompareRequest { plan, ..request.clone() };
            let record = compare(&request, &interrupt, &mut |event| live.show(&event)).await?;
            whole = Some(whole.map_or(record.clone(), |whole| joined(whole, record)));
            if interrupt.is_raised() {
                break;
            }
        }
        whole.ok_or(EngineError::Interrupted)
    })?;
    let exit = measured::finish(&record, || text(&record), &args.output, &keeper)?;
    Ok(match exit {
        _ if interrupted => Exit::CouldNot,
        Exit::Fine => conclusive(&record),
        other => other,
    })
}

/// The plan for each size and number of clients.
fn cells(plan: &Plan, sizes: &[Bytes], clients: &[u16]) -> Result<Vec<Plan>> {
    let sizes: Vec<_> = match sizes {
        [] => vec![None],
        sizes => sizes.iter().copied().map(Some).collect(),
    };
    let clients = if clients.is_empty() { vec![plan.flows] } else { clients.to_vec() };
    let mut cells = Vec::new();
    for size in sizes {
        for flows in &clients {
            let plan = Plan { flows: *flows, ..plan.clone() };
            cells.push(size.map_or(Ok(plan.clone()), |size| of_size(plan, size))?);
        }
    }
    Ok(cells)
}

/// The same plan for a file in memory of that size, or for so much of the file that it names.
fn of_size(mut plan: Plan, size: Bytes) -> Result<Plan> {
    if size.0 == 0 {
        bail!("a size of 0 bytes measures nothing");
    }
    match plan.storage.source {
        Some(Source::Input) => bail!("standard input has one size only; name a file"),
        Some(Source::File { .. }) => {
            let all = size.0.checked_mul(u64::from(plan.flows));
            plan.length = Length::Bytes(Bytes(all.context("these are too many bytes")?));
        }
        None | Some(Source::Memory(_)) => {
            plan.storage.source = Some(Source::Memory(size));
            plan.length = Length::Source;
        }
    }
    Ok(plan)
}

/// The record of the first, with the tables of all.
fn joined(mut whole: Record, next: Record) -> Record {
    whole.transfers.extend(next.transfers);
    let new = next.doubts.into_iter().filter(|doubt| !whole.doubts.contains(doubt));
    let new: Vec<_> = new.collect();
    whole.doubts.extend(new);
    whole
}

/// The tables of files; where there is one comparison, what it proves as well.
fn text(record: &Record) -> String {
    let tables: String = record.transfers.iter().map(report::transfers::text).collect();
    match record.transfers.len() {
        0 | 1 => report::compare::text(record) + &tables,
        _ => tables,
    }
}

/// `NAME=A,B`: a known setting and at least two values.
fn factor(text: &str) -> Result<Factor> {
    let Some((setting, values)) = text.split_once('=') else {
        bail!("{text:?} names no values; write SETTING=A,B like mover=copy,sendfile");
    };
    let setting: goodput_model::SettingRef = setting.parse()?;
    let known = goodput_settings::find_for(&setting)?;
    let values: Vec<String> = values.split(',').map(|v| v.trim().to_string()).collect();
    if values.len() < 2 || values.iter().any(String::is_empty) {
        bail!("{text:?} needs at least two values, the first is the baseline: {setting}=A,B");
    }
    if known.is_plan() {
        check_plan_values(&setting, &values)?;
    }
    Ok(Factor { setting, values })
}

/// Values of the plan can be checked before anything runs.
fn check_plan_values(
    setting: &goodput_model::SettingRef,
    values: &[String],
) -> Result<(), SettingError> {
    for value in values {
        let mut scratch = goodput_model::Plan::standard();
        goodput_settings::apply_to_plan(setting, value, &mut scratch)?;
    }
    Ok(())
}

fn conclusive(record: &Record) -> Exit {
    let inconclusive = |comparison: &Comparison| {
        let effects = comparison.arms.iter().filter_map(|arm| arm.goodput.as_ref());
        effects.clone().any(|e| e.judgement == Judgement::Inconclusive)
            || comparison.arms.iter().skip(1).any(|arm| arm.goodput.is_none())
    };
    match &record.comparison {
        Some(comparison) if inconclusive(comparison) => Exit::Inconclusive,
        _ => Exit::Fine,
    }
}
