//! `goodput ceiling`: how fast a path could be at best, by arithmetic.

mod series;

use anyhow::{Result, bail};
use goodput_model::record::FORMAT;
use goodput_model::{CeilingInputs, CeilingReport, CeilingUnread};

use crate::args::{CeilingArgs, asks_for_something, with_defaults};
use crate::exit::Exit;
use crate::{report, screen};

/// Computes and reports.
pub fn run(args: &CeilingArgs) -> Result<Exit> {
    if let Some(text) = &args.question.fit {
        return fit(text, args.question.json);
    }
    let report = computed(args)?;
    if args.question.json {
        screen::line(serde_json::to_string_pretty(&report)?)?;
    } else {
        screen::print(&report::ceiling::text(&report))?;
    }
    Ok(match (report.doubts.is_empty(), is_answered(&report)) {
        (false, _) => Exit::Problem,
        (true, true) => Exit::Fine,
        (true, false) => Exit::CouldNot,
    })
}

/// Whether there is a ceiling, or what becomes of a burst, which has no rate.
fn is_answered(report: &CeilingReport) -> bool {
    let mut lines = report.bounds.iter().flat_map(|bound| &bound.lines);
    report.ceiling_bits_per_s.value().is_some()
        || report.inputs.burst_frames.is_some() && lines.any(|line| line.unit == "frames")
}

fn computed(args: &CeilingArgs) -> Result<CeilingReport> {
    let question = &args.question;
    let Read { inputs, read, unread } = inputs(args)?;
    let inputs = CeilingInputs {
        transfer_bytes: question.bytes.map(|bytes| bytes.0),
        ..with_defaults(inputs)
    };
    if !asks_for_something(&inputs) && unread.is_empty() {
        bail!(
            "nothing bounds the goodput by what was given; give --link RATE, --window with --rtt, --loss with --rtt, \
             --bus, --packet-rate, --hz with --burst-max, or --ring with --drain-gap"
        );
    }
    let ceiling = goodput_ceiling::ceiling(&inputs);
    let doubts = question.measured.map(|measured| ceiling.doubts(measured)).unwrap_or_default();
    Ok(CeilingReport {
        format: FORMAT,
        limit: ceiling.lowest().map(|(bound, _)| bound.id.clone()).into(),
        ceiling_bits_per_s: ceiling.rate(),
        transfer_s: inputs.transfer_bytes.and_then(|bytes| ceiling.transfer_s(bytes)),
        measured_bits_per_s: question.measured,
        bounds: ceiling.bounds,
        inputs,
        read,
        unread,
        doubts,
    })
}

/// Inputs, and where they come from.
#[derive(Default)]
struct Read {
    inputs: CeilingInputs,
    read: Vec<String>,
    unread: Vec<CeilingUnread>,
}

fn inputs(args: &CeilingArgs) -> Result<Read> {
    let typed = args.inputs.inputs();
    Ok(Read { inputs: typed, ..Read::default() })
}

fn fit(text: &str, json: bool) -> Result<Exit> {
    let points = series::read(text)?;
    let fitted = goodput_ceiling::fit(&points).map_err(|why| anyhow::anyhow!("{text}: {why}"))?;
    if json {
        screen::line(serde_json::to_string_pretty(&fitted)?)?;
    } else {
        screen::print(&report::ceiling::fit(&fitted))?;
    }
    Ok(Exit::Fine)
}
