//! What `goodput history` takes.

use clap::Args;

use crate::args::options::format_parser;
use crate::args::values::number::whole;
use crate::args::values::unfit;
use goodput_compat::formats::Format;

/// `goodput history`
#[derive(Debug, Args)]
pub struct HistoryArgs {
    /// One number shows that result, two compare them [default: list the latest results]
    #[arg(num_args = 0..=2, value_name = "NUMBER", value_parser = number)]
    pub ids: Vec<i64>,
    /// Number of results to list
    #[arg(long, default_value_t = 20, value_name = "N", value_parser = whole("a number of results", 0..=u32::MAX))]
    pub last: u32,
    /// Print the JSON record of the chosen result
    #[arg(long, requires = "ids")]
    pub json: bool,
    /// Print the result as another program would (`goodput list formats`)
    #[arg(long, value_name = "FORMAT", requires = "ids", conflicts_with = "json",
          value_parser = format_parser())]
    pub format: Option<&'static Format>,
}

/// The number of a result.
fn number(text: &str) -> Result<i64, String> {
    let result = "the number of a result";
    text.parse().map_err(|_| unfit(text, result, "one that `goodput history` lists"))
}
