//! The charts: one file each, and the list.

mod account;
mod arms_over_time;
mod band;
mod comparison;
mod cpu;
mod dose;
mod each_flow;
mod factors;
mod flows;
mod gaps;
mod in_order;
mod latency;
mod losses;
mod path_steps;
mod rate;
mod round_trip;
mod shaper;
mod window;

use goodput_model::Record;

use crate::figure::Of;
use crate::kin::of_sender;
use crate::sketch::Sketch;

/// A kind of picture.
pub struct Chart {
    /// Kebab-case; what `--only` takes.
    pub id: &'static str,
    /// What it shows, in one line.
    pub shows: &'static str,
    /// What it draws of a record with several runs.
    pub of: Of,
    /// Its figures of a record: none if the record has nothing of the kind, one for each direction if it matters.
    pub(crate) draw: fn(&Record) -> Vec<Sketch>,
}

/// Every chart, in the order of a page.
pub const ALL: &[Chart] = &[
    comparison::CHART,
    arms_over_time::CHART,
    dose::CHART,
    factors::CHART,
    shaper::CHART,
    gaps::OF_TRAIN,
    gaps::CHART,
    rate::CHART,
    flows::CHART,
    account::CHART,
    round_trip::CHART,
    latency::CHART,
    window::CHART,
    losses::CHART,
    cpu::CHART,
    path_steps::CHART,
];

/// The part of an id or a title that names the direction; nothing if there is only one.
fn direction_words(record: &Record, sender: goodput_model::EndName) -> (String, String) {
    match record.result.directions.len() {
        0 | 1 => (String::new(), String::new()),
        _ => (of_sender(sender), format!(", sent by the {sender} host")),
    }
}
