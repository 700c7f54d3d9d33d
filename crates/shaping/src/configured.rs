//! What a shaper is configured for, as the user says it.

use goodput_model::{BitRate, Bytes};

use crate::counted::Counts;

/// The configured rate of a shaper, and how exactly the shaper has to give it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Configured {
    /// The rate, bits per second.
    pub rate: BitRate,
    /// Largest tolerated difference of the rate that it gives, percent.
    pub tolerance_percent: f64,
    /// The largest burst that it may let through.
    pub max_burst: Option<Bytes>,
    /// Which bytes its rate counts, if that was read; otherwise it follows from the rate that fits best.
    pub counts: Option<Counts>,
}
