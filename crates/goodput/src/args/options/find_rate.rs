//! Options of the search for the highest rate without loss.

use clap::Args;
use goodput_model::Bytes;

use crate::args::values::{percent, size};

/// `--find-rate` and what belongs to it.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Highest rate without loss")]
pub struct FindRateArgs {
    /// Find the highest rate of datagrams whose loss stays below --max-loss
    ///
    /// The search starts at the highest rate that the sender reaches, or at --rate, and goes down. A trial takes
    /// --time [default: 2s]; the last trial takes three times as long.
    #[arg(long, requires = "udp", conflicts_with_all = ["both", "attach", "bytes", "omit", "latency",
          "format", "probe", "CaptureArgs", "no_observe", "chunk"])]
    pub find_rate: bool,
    /// Share of the datagrams that may be lost
    #[arg(long, value_name = "PERCENT", requires = "find_rate", default_value = "0.1%",
          value_parser = percent::share, hide_short_help = true)]
    pub max_loss: f64,
    /// Search with datagrams of each of these sizes [default: 1472, over IPv6 1452]
    #[arg(long, alias = "sizes", value_name = "BYTES,…", requires = "find_rate", value_delimiter = ',',
          value_parser = size::positive, hide_short_help = true)]
    pub datagram_sizes: Vec<Bytes>,
}
