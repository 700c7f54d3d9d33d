//! How long a run of several measurements has taken, and may take at most.

use std::time::{Duration, Instant};

use goodput_engine::Event;

use super::progress::{Progress, time};

/// The time of the whole run.
#[derive(Debug, Clone, Copy)]
pub struct WholeTime {
    began: Instant,
    /// The longest, if known.
    pub at_most: Option<Duration>,
}

impl WholeTime {
    /// Begins now.
    pub fn begin(at_most: Option<Duration>) -> Self {
        Self { began: Instant::now(), at_most }
    }

    /// The time since the beginning.
    pub fn passed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Takes an event that `progress` has noted: each block of a comparison says anew how long the rest may take.
    pub fn note(&mut self, event: &Event, progress: &Progress) {
        let left_s = matches!(event, Event::BlockBegan(_)).then(|| progress.at_most_s());
        if let Some(left_s) = left_s.flatten() {
            self.at_most = Some(self.passed() + Duration::from_secs_f64(left_s));
        }
    }
}

/// `0:23 of max 2:00`.
pub fn words(passed: Duration, at_most: Option<Duration>) -> String {
    let clock = time(passed.as_secs_f64());
    match at_most {
        Some(at_most) => format!("{clock} of max {}", time(at_most.as_secs_f64())),
        None => clock,
    }
}
