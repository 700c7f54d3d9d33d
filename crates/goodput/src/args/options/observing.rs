//! What is looked at beside the payload.

use clap::Args;

use crate::args::values::time;

/// What is observed while payload moves.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Observing")]
pub struct ObservingArgs {
    /// Also measure round trips before and while the flows run
    ///
    /// The part before the flows takes a second.
    #[arg(long)]
    pub latency: bool,
    /// Don't observe the run, to see what observing costs
    #[arg(long, hide = true)]
    pub no_observe: bool,
    /// Time between reported intervals, at least 100ms; 0 reports none [default: 1s]
    #[arg(short, long, value_name = "TIME", value_parser = time::interval)]
    pub interval: Option<f64>,
}

impl ObservingArgs {
    /// Seconds between intervals; they are measured even if none is reported.
    pub fn interval_s(&self) -> f64 {
        self.interval.filter(|seconds| *seconds > 0.0).unwrap_or(1.0)
    }

    /// Whether intervals are reported.
    pub fn reports_intervals(&self) -> bool {
        self.interval != Some(0.0)
    }
}
