//! What `goodput history` takes.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{ArgGroup, Args, Subcommand};

use crate::args::options::format_parser;
use crate::args::values::number::whole;
use crate::args::values::{time, unfit, when};
use goodput_compat::formats::Format;
use goodput_model::Kind;
use goodput_store::{WATCH, Wanted};

/// Results that are listed, unless the user says otherwise.
const LISTED: u32 = 20;

/// `goodput history`
#[derive(Debug, Args)]
pub struct HistoryArgs {
    /// One number shows that result, two compare them [default: list the latest results]
    ///
    /// `last` is the newest one.
    #[arg(num_args = 0..=2, value_name = "NUMBER", value_parser = named,
          conflicts_with_all = ["last", "target", "limit", "by", "kind", "since", "until"])]
    pub ids: Vec<Named>,
    /// Number of results to list
    #[arg(long, default_value_t = LISTED, value_name = "N", value_parser = whole("a number of results", 0..=u32::MAX))]
    pub last: u32,
    /// Print the JSON record of the chosen result
    #[arg(long, requires = "ids")]
    pub json: bool,
    /// Print the result as another program would (`goodput list formats`)
    #[arg(long, value_name = "FORMAT", requires = "ids", conflicts_with = "json",
          value_parser = format_parser())]
    pub format: Option<&'static Format>,
    #[command(flatten)]
    pub wanted: WantedArgs,
    #[command(subcommand)]
    pub deed: Option<HistoryDeed>,
}

impl HistoryArgs {
    /// Whether something is asked of the list, or of one result.
    pub fn asks_for_a_list(&self) -> bool {
        let Self { ids, last, json, format, wanted, deed: _ } = self;
        !ids.is_empty() || *last != LISTED || *json || format.is_some() || wanted.asks_for_some()
    }
}

/// Which results are meant.
#[derive(Debug, Args)]
#[command(next_help_heading = "Choice")]
pub struct WantedArgs {
    /// Only results of targets that contain this text
    #[arg(long, value_name = "TEXT")]
    pub target: Option<String>,
    /// Only results with this verdict, like path-rate or none
    ///
    /// `goodput list rules` lists the names.
    #[arg(long, value_name = "RULE")]
    pub limit: Option<String>,
    /// Only results that this site of a fleet, or this host, measured
    ///
    /// The list has the column `by` if there are several. What an older goodput kept has none.
    #[arg(long, value_name = "SITE|HOST")]
    pub by: Option<String>,
    /// Only results of this kind of command; `watch`: only tests of watches
    #[arg(long, value_name = "KIND", value_parser = kinds())]
    pub kind: Option<String>,
    /// Only results since this time: 30m, 7d, 14:05, 2026-11-24
    ///
    /// How long ago (30m, 2h, 7d, 1w), a date or a time in UTC (2026-11-24, 2026-11-24T14:05, 14:05, today, yesterday), or a
    /// time with its zone (2026-11-24T14:05:00+01:00).
    #[arg(long, value_name = "WHEN", value_parser = when::since)]
    pub since: Option<String>,
    /// Only results before this time, written like --since
    #[arg(long, value_name = "WHEN", value_parser = when::since)]
    pub until: Option<String>,
}

impl WantedArgs {
    /// Whether not all results are meant.
    fn asks_for_some(&self) -> bool {
        let Self { target, limit, by, kind, since, until } = self;
        [target, limit, by, kind, since, until].into_iter().any(Option::is_some)
    }

    /// The same for the history; at most `last` results.
    pub fn wanted(&self, last: u32) -> Wanted {
        Wanted {
            text: self.target.clone(),
            limited_by: self.limit.clone(),
            measured_by: self.by.clone(),
            from: self.since.clone(),
            until: self.until.clone(),
            limit: last,
            ..Wanted::default()
        }
        .of_kind(self.kind.as_deref())
    }
}

/// What the list has as kinds.
fn kinds() -> PossibleValuesParser {
    PossibleValuesParser::new(Kind::ALL.map(Kind::name).into_iter().chain([WATCH]))
}

/// What else can be done with results.
#[derive(Debug, Subcommand)]
pub enum HistoryDeed {
    /// Print results for other programs, oldest first
    Export(ExportArgs),
    /// Keep results that another machine exported
    ///
    /// A result that the history has already is left out.
    Import(ImportArgs),
    /// Delete old results
    ///
    /// The others keep their numbers. Of each day of deleted results, `goodput history --target nas` still shows the
    /// number, goodput, round trip and most frequent limit.
    Prune(PruneArgs),
}

/// `goodput history export`
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("form").required(true))]
pub struct ExportArgs {
    /// Print a line per result, comma-separated (RFC 4180)
    #[arg(long, group = "form")]
    pub csv: bool,
    /// Print a whole record per line, for `goodput history import`
    #[arg(long, group = "form")]
    pub json: bool,
    /// Print samples with times, for `promtool tsdb create-blocks-from`
    #[arg(long, group = "form")]
    pub openmetrics: bool,
    /// Print a line per test and direction, for the archive of perfSONAR
    ///
    /// The JSON is that which pScheduler hands to its archivers about a throughput test. Comparisons, searches, tests
    /// of files and connections of other programs are left out.
    #[arg(long, group = "form")]
    pub pscheduler: bool,
    /// Print a line per day of deleted results, comma-separated
    ///
    /// Each line is of one target, kind of command and kind of traffic.
    #[arg(long, group = "form", conflicts_with_all = ["limit", "by"])]
    pub days: bool,
    /// Print a day of deleted results per line, for `goodput history import`
    ///
    /// Each line has how many results had each value.
    #[arg(long, group = "form", conflicts_with_all = ["limit", "by"])]
    pub days_json: bool,
    #[command(flatten)]
    pub wanted: WantedArgs,
}

/// `goodput history import`
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// Files with records or days as JSON; `-`: standard input
    ///
    /// One in each line, or one record in a file.
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Print one JSON object per result: id, target, started, is_new
    ///
    /// `-v` prints these for people.
    #[arg(long)]
    pub json: bool,
}

/// Seconds for which days of deleted results are kept, unless the user says otherwise: five years.
const DAYS_KEPT_S: f64 = 1830.0 * 86_400.0;

/// Seconds for which days of deleted results are kept, if results are kept for `keep_s`.
///
/// # Errors
/// `--keep-days` is shorter than `--keep`: what is still there as results has no days to delete.
pub fn days_kept(keep_s: f64, keep_days_s: Option<f64>) -> Result<f64, String> {
    match keep_days_s {
        None => Ok(DAYS_KEPT_S.max(keep_s)),
        Some(days_s) if days_s >= keep_s => Ok(days_s),
        Some(_) => Err("--keep-days is shorter than --keep, but results become days only when --keep deletes them: give \
                        --keep-days the same age or a longer one"
            .into()),
    }
}

/// `goodput history prune`
#[derive(Debug, Args)]
pub struct PruneArgs {
    /// Keep only results that are not older than this, like 90d
    #[arg(long, value_name = "AGE", value_parser = time::age)]
    pub keep: f64,
    /// Keep only days of deleted results that are not older than this
    ///
    /// At least the age of --keep. [default: 1830d, or --keep if that is longer]
    #[arg(long, value_name = "AGE", value_parser = time::age)]
    pub keep_days: Option<f64>,
}

/// A result of the history, as typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// The newest one.
    Last,
    /// The one with this number.
    Number(i64),
}

fn named(text: &str) -> Result<Named, String> {
    if text == "last" {
        return Ok(Named::Last);
    }
    let result = "the number of a result";
    let number =
        text.parse().map_err(|_| unfit(text, result, "one that `goodput history` lists, or last"));
    number.map(Named::Number)
}
