//! `--format`: the output of another program.

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use crate::args::values::{time, unfit};
use goodput_compat::formats::{self, Format, Style};

/// Which other program's output is printed.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Output")]
pub struct FormatArgs {
    /// Print what another program would print (`goodput list formats`)
    #[arg(long, value_name = "FORMAT", value_parser = parser(), hide_possible_values = true,
          conflicts_with_all = ["json", "json_stream", "live"], hide_short_help = true)]
    pub format: Option<&'static Format>,
    /// Title in that output, if the format has a place for one
    #[arg(long, value_name = "TEXT", requires = "format", hide_short_help = true)]
    pub format_title: Option<String>,
    /// Unit of rates in iperf's tables: k, m, g, t, or capitals for bytes
    #[arg(long, value_name = "LETTER", requires = "format", value_parser = unit, hide_short_help = true)]
    pub format_units: Option<char>,
}

/// How a server prints what it measures.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Output")]
pub struct ServedFormatArgs {
    /// Print measurements as another program would (`goodput list formats`)
    #[arg(long, value_name = "FORMAT", value_parser = parser(), hide_possible_values = true)]
    pub format: Option<&'static Format>,
    /// Unit of rates in iperf's tables: k, m, g, t, or capitals for bytes
    #[arg(long, value_name = "LETTER", requires = "format", value_parser = unit, hide_short_help = true)]
    pub format_units: Option<char>,
    /// Time between printed intervals, at least 100ms; 0 prints none [default: 1s]
    #[arg(long, value_name = "TIME", requires = "format", value_parser = time::interval, hide_short_help = true)]
    pub interval: Option<f64>,
    /// Watch clients on the whole terminal: tests, rates, refusals, CPU
    ///
    /// Press h there for the keys. Without a terminal, with NO_COLOR or with TERM=dumb, goodput prints a line when a test
    /// begins or ends, and when a client is refused.
    #[arg(long, conflicts_with = "format")]
    pub live: bool,
}

impl ServedFormatArgs {
    /// What is wanted of the format.
    pub fn style(&self) -> Style {
        Style { intervals: intervals(self.interval), title: None, units: self.format_units }
    }
}

fn intervals(interval: Option<f64>) -> formats::Intervals {
    match interval {
        None => formats::Intervals::Usual,
        Some(0.0) => formats::Intervals::None,
        Some(_) => formats::Intervals::All,
    }
}

impl FormatArgs {
    /// What is wanted of the format, with the intervals that `interval` asks for.
    pub fn style(&self, interval: Option<f64>) -> Style {
        let intervals = intervals(interval);
        Style { intervals, title: self.format_title.clone(), units: self.format_units }
    }
}

/// Reads the id of a format.
pub fn parser() -> impl TypedValueParser<Value = &'static Format> {
    let values = formats::ALL.iter().map(|f| PossibleValue::new(f.id).help(f.summary));
    PossibleValuesParser::new(values).try_map(|id| formats::find(&id))
}

fn unit(text: &str) -> Result<char, String> {
    let mut letters = text.chars();
    match (letters.next(), letters.next()) {
        (Some(letter), None) if formats::is_unit(letter) => Ok(letter),
        _ => {
            let letters = "a, k, m, g or t for bits, A, K, M, G or T for bytes";
            Err(unfit(text, "a unit of rates", letters))
        }
    }
}
