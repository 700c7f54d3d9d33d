//! Traffic of others that crossed the shaper, or a device of the path, while a test ran.
//!
//! Counters say what passed, and what the test itself sent is known. The rest is of others, and took its part of the rate.

use goodput_model::{BitRate, Snapshot};

/// What one host counted around a run.
#[derive(Debug, Clone, Copy)]
pub struct Counted<'a> {
    /// Its facts before the run.
    pub before: &'a Snapshot,
    /// The same facts afterwards.
    pub after: &'a Snapshot,
}

/// What was counted around a run.
#[derive(Debug, Clone, Copy)]
pub struct Around<'a> {
    /// At the end that sent, or at the router whose facts stand in for it.
    pub sender: Counted<'a>,
    /// At the end that received, if it reports.
    pub receiver: Option<Counted<'a>>,
    /// Time between both looks, seconds.
    pub seconds: f64,
}

/// Traffic of others.
#[derive(Debug, Clone, PartialEq)]
pub struct Others {
    /// Bits per second of frames.
    pub bits_per_s: f64,
    /// What counted it, in words.
    pub(crate) place: String,
    /// Whether that is the shaper: what a device counts may take another way.
    pub(crate) at_shaper: bool,
}

/// Traffic of others beside each part of a test.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OtherTraffic {
    /// Beside the datagrams.
    pub train: Option<Others>,
    /// Beside TCP.
    pub tcp: Option<Others>,
}

impl Others {
    /// What it is, in words.
    pub(crate) fn words(&self) -> String {
        let (rate, place) = (BitRate(self.bits_per_s), &self.place);
        match self.at_shaper {
            true => format!("{rate} of other traffic crossed {place} meanwhile"),
            false => format!(
                "{place} carried {rate} of other traffic meanwhile, which may cross the shaper"
            ),
        }
    }

    /// The bits per second of what others there were.
    pub(crate) fn rate(others: Option<&Self>) -> f64 {
        others.map_or(0.0, |others| others.bits_per_s)
    }
}
