//! Probes: short runs that each change one thing, to distinguish two causes that look alike in the kernel's
//! counters. A probe gives one bit: goodput, or a witness, moves as one cause or as the
//! other predicts.
//!
//! Pure: a probe defines its change and how its answer is read; the engine runs it.

mod congestion;
mod four_flows;
mod half_window;
mod offload_off;
mod offload_on;
mod paced;
mod reading;
mod reverse;
mod rivals;
mod small_segments;
mod udp_rate;

use goodput_model::{Length, Missing, Plan, Record, SettingRef};

pub use reading::{Answer, Reading, Seen};
pub(crate) use rivals::doubt;
pub use rivals::{Rivals, names_rival, rivals_in, settle};

/// How long a probe runs, seconds: slow start on a path of 100 ms, and a second to measure.
const LENGTH_S: f64 = 2.5;

/// One thing to change, and the causes that the change distinguishes.
#[derive(Debug)]
pub struct Probe {
    /// Kebab-case name; also the name of its file.
    pub id: &'static str,
    /// What it changes, in a few words.
    pub title: &'static str,
    /// Makes the change, or says why that is not possible here.
    pub set_up: fn(&Record) -> Result<SetUp, Missing>,
    /// The pairs that it distinguishes.
    pub pairs: &'static [Pair],
}

/// What a probe changes about a run.
#[derive(Debug, Clone, PartialEq)]
pub struct SetUp {
    /// The plan of the probe's run.
    pub plan: Plan,
    /// Settings of the machine while it runs, put back afterwards.
    pub settings: Vec<(SettingRef, String)>,
}

/// Two causes, by their rules' ids, and how the probe's answer is read.
#[derive(Debug)]
pub struct Pair {
    /// The cause that the higher reading speaks for.
    pub one: &'static str,
    /// The cause that the lower reading speaks for.
    pub other: &'static str,
    /// What is read, with its thresholds.
    pub read: Reading,
    /// The reason for these thresholds.
    pub why: &'static str,
}

/// All probes, the most reliable first.
pub const ALL: &[&Probe] = &[
    &offload_off::PROBE,
    &offload_on::PROBE,
    &half_window::PROBE,
    &paced::PROBE,
    &small_segments::PROBE,
    &four_flows::PROBE,
    &congestion::PROBE,
    &udp_rate::PROBE,
    &reverse::PROBE,
];

impl Probe {
    /// The pair of `a` and `b`, in either order, if this probe distinguishes them.
    pub fn pair(&self, a: &str, b: &str) -> Option<&'static Pair> {
        let same =
            |pair: &&Pair| (pair.one == a && pair.other == b) || (pair.one == b && pair.other == a);
        self.pairs.iter().find(same)
    }
}

/// The probes that distinguish two causes.
pub fn splitting(a: &str, b: &str) -> Vec<&'static Probe> {
    ALL.iter().copied().filter(|probe| probe.pair(a, b).is_some()).collect()
}

impl SetUp {
    /// A run with another plan.
    fn plan(record: &Record, change: impl FnOnce(&mut Plan)) -> Self {
        let mut plan = Plan { length: Length::Seconds(LENGTH_S), ..record.plan.clone() };
        change(&mut plan);
        Self { plan, settings: Vec::new() }
    }
}

#[cfg(test)]
mod conformance;
