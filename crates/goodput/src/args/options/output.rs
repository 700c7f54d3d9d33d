//! What becomes of a result.

use std::path::PathBuf;

use clap::Args;

use crate::expect::Expectation;

/// What to do with the result.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// Print one JSON record and nothing else
    #[arg(long, conflicts_with = "json_stream")]
    pub json: bool,
    /// Print one JSON event per line, and the record as the last line
    #[arg(long, hide_short_help = true)]
    pub json_stream: bool,
    /// Watch the run on the whole terminal: rate, round trip, limits, flows
    ///
    /// Press h there for the keys. Without a terminal, with NO_COLOR or with TERM=dumb, goodput prints lines as usual.
    #[arg(long, conflicts_with_all = ["json", "json_stream"], hide_short_help = true)]
    pub live: bool,
    /// End as by Ctrl-C when standard input ends
    ///
    /// For a program that started this one and shows its events.
    #[arg(long, hide = true)]
    pub end_with_input: bool,
    /// Also write the JSON record to this file
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub record: Option<PathBuf>,
    /// Don't keep the result in the history
    #[arg(long, hide_short_help = true)]
    pub no_store: bool,
    /// Exit with 1 unless this holds, like ">=900mbit" or limit=none
    ///
    /// A condition is ">=RATE", "<=RATE", limit=RULE or limit!=RULE. The option may be given several times.
    #[arg(long, value_name = "CONDITION")]
    pub expect: Vec<Expectation>,
}
