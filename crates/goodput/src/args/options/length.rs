//! When a measurement ends.

use clap::Args;
use goodput_model::{Bytes, Length};

use crate::args::values::number::whole;
use crate::args::values::{size, time};

/// When a measurement ends, and what of it counts.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Length")]
pub struct LengthArgs {
    /// Stop after this time: 10, 500ms, 2m [default: 2 to 10 s, as soon as the mean is known to ±2 %]
    #[arg(short = 't', long, value_name = "TIME", value_parser = time::seconds, conflicts_with = "bytes")]
    pub time: Option<f64>,
    /// Stop after this much payload, summed over the flows of a direction
    ///
    /// Each flow moves an even share. goodput fetches no more than this from a file server: only the beginning of a
    /// long file (by `Range` from a web server), or a short file several times.
    #[arg(short = 'n', long, value_name = "BYTES", value_parser = size::positive)]
    pub bytes: Option<Bytes>,
    /// Stop when each flow has fetched the file this many times
    ///
    /// The fetch before the measurement does not count.
    #[arg(long, value_name = "N", value_parser = whole("a number of fetches", 1..=u32::MAX),
          conflicts_with_all = ["time", "bytes", "write"], hide_short_help = true)]
    pub fetches: Option<u32>,
    /// Leave this first part out of the rates [default: slow start is found and left out]
    ///
    /// --time begins when this part ends.
    #[arg(long, value_name = "TIME", value_parser = time::seconds, requires = "time", hide_short_help = true)]
    pub omit: Option<f64>,
}

impl LengthArgs {
    /// The length that was asked for, if one was.
    pub fn length(&self) -> Option<Length> {
        let fetches = self.fetches.map(|_| Length::Source);
        self.time.map(Length::Seconds).or(self.bytes.map(Length::Bytes)).or(fetches)
    }
}
