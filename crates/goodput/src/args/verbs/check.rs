//! What `goodput check` takes.

use clap::Args;

use crate::args::values::time;

/// `goodput check`
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Network devices [default: all hardware that is up, and the devices of the default routes]
    #[arg(value_name = "DEVICE")]
    pub devices: Vec<String>,
    /// Watch the counters and the wake-ups of the CPUs for this time
    ///
    /// Without this option, goodput checks only settings and totals.
    #[arg(long, value_name = "TIME", value_parser = time::seconds)]
    pub watch: Option<f64>,
    /// Print one JSON document and nothing else
    #[arg(long)]
    pub json: bool,
    /// Also show which checks could not decide, and why
    #[arg(long)]
    pub undecided: bool,
}
