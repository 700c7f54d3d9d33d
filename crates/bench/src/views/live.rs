//! A test on the whole terminal beside one that prints lines: what the view costs, and what it takes from the measurement.

use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rand::seq::SliceRandom;
use serde_json::Value;

use super::terminal::OnTerminal;
use super::{Bound, Figure, Stage};
use crate::bench::net::{Net, address};
use crate::bench::place::Place;
use crate::bench::stats::estimate;
use crate::crowd::SERVER_PORT;

/// The thread that draws.
const THREAD: &str = "dashboard";

/// How often its CPU time is read: the last reading is that of nearly the whole test.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// One test.
struct Run {
    bits_per_s: f64,
    /// CPU time of the view, percent of one CPU.
    view_percent: Option<f64>,
}

pub fn figures(stage: &Stage<'_>) -> Result<Vec<Figure>> {
    let _server = stage.serve()?;
    let (mut ratios, mut costs) = (Vec::new(), Vec::new());
    for round in 1..=stage.options.rounds {
        let mut order = [true, false];
        order.shuffle(&mut rand::rng());
        let mut rates = [0.0; 2];
        for live in order {
            let run = run(stage, live)?;
            rates[usize::from(live)] = run.bits_per_s;
            costs.extend(run.view_percent);
        }
        println!("round {round}: {:.3e} bit/s with the view, {:.3e} without", rates[1], rates[0]);
        ratios.push(rates[1] / rates[0]);
    }
    let ratio = estimate(ratios).context("there was no round")?;
    let highest = ratio.interval.map_or(ratio.median, |(_, high)| high);
    let cost = estimate(costs).context("the view was never seen")?;
    let what =
        format!("goodput with `--live` over without, {:.3} at the median, at best", ratio.median);
    Ok(vec![
        Figure::at_most("the view of `--live`, % of a CPU", cost.median, 1.0),
        // A loss is shown if even the upper end of the interval is below 1.
        Figure { what, value: highest, bound: Bound::AtLeast(1.0) },
    ])
}

fn run(stage: &Stage<'_>, live: bool) -> Result<Run> {
    let target = format!("{}:{SERVER_PORT}", address(Place::Veth));
    let history = stage.folder().join("live.db").display().to_string();
    let seconds = stage.options.seconds.to_string();
    let mut words = vec!["test", &target, "-t", &seconds, "--store", &history];
    words.extend(live.then_some("--live"));
    let mut test = OnTerminal::start(stage, &words)?;
    let mut view_s = None;
    while test.runs()? {
        view_s = test.cpu_s(|name| name == THREAD).or(view_s);
        sleep(LOOK_INTERVAL);
    }
    if live != view_s.is_some() {
        bail!("a thread {THREAD:?} is there if and only if the test has a view; it was not so");
    }
    let mut show = Net::at_client(Place::Veth, &stage.program.to_string_lossy());
    let shown = show.args(["history", "last", "--json", "--store", &history]).output()?;
    let record: Value = serde_json::from_slice(&shown.stdout).context("the test has no result")?;
    let bits_per_s = record["result"]["goodput_bits_per_s"].as_f64().context("no goodput")?;
    let percent = |view_s: f64| view_s / f64::from(stage.options.seconds) * 100.0;
    Ok(Run { bits_per_s, view_percent: view_s.map(percent) })
}
