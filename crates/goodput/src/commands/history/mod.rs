//! `goodput history`: earlier results.

mod export;
mod import;

pub use import::known;

use anyhow::{Result, bail};

use crate::args::{HistoryArgs, HistoryDeed, PruneArgs};
use crate::data_dirs;
use crate::exit::Exit;
use crate::report::test::Detail;
use crate::report::{self, table::Table};
use crate::screen;
use goodput_compat::formats::{self, Style};
use goodput_model::{Kind, Record};
use goodput_store::{Store, Wanted};
use jiff::{SignedDuration, Timestamp};

/// Lists results, shows one, or compares two; hands them out, takes them in, or deletes old ones.
pub fn run(args: &HistoryArgs, verbose: bool) -> Result<Exit> {
    let store = match &args.deed {
        Some(HistoryDeed::Import(import)) => {
            return import::run(&data_dirs::history()?, &import.files);
        }
        Some(HistoryDeed::Prune(prune)) => return delete_old(&data_dirs::history()?, prune),
        Some(HistoryDeed::Export(_)) | None => data_dirs::history_to_read()?,
    };
    if let Some(HistoryDeed::Export(export)) = &args.deed {
        return export::run(&store, export);
    }
    match args.ids[..] {
        [] => list(&store, &args.wanted.wanted(args.last))?,
        [id] => show(&store.get(id)?, args, Detail { verbose, ..Detail::default() })?,
        [a, b, ..] => {
            screen::print_fitted(&report::difference::text(&store.get(a)?, &store.get(b)?))?
        }
    }
    Ok(Exit::Fine)
}

/// Deletes what is older than the user wants to keep, and reports the number.
fn delete_old(store: &Store, args: &PruneArgs) -> Result<Exit> {
    let age = SignedDuration::try_from_secs_f64(args.keep)?;
    let before = Timestamp::now().saturating_sub(age)?.strftime("%Y-%m-%dT%H:%M:%SZ");
    let deleted = store.delete_before(&before.to_string())?;
    let results = if deleted == 1 { "result" } else { "results" };
    screen::line(format_args!("deleted {deleted} {results} from before {before}"))?;
    Ok(Exit::Fine)
}

fn list(store: &Store, wanted: &Wanted) -> Result<()> {
    let headings = ["id", "started", "kind", "goodput", "limit", "target"];
    let mut table = Table::new(&headings).breaking_the_last_column();
    for entry in store.search(wanted)? {
        let target = match entry.readable() {
            Ok(()) => entry.target,
            Err(why) => format!("{} (can't be read: {why})", entry.target),
        };
        table.row(&[
            &entry.id.to_string(),
            &to_the_minute(&entry.started),
            &entry.kind,
            &entry.goodput.to_string(),
            &entry.limit,
            &target,
        ]);
    }
    Ok(table.print()?)
}

/// `2026-01-31T12:00:59Z` without its seconds, so that the table fits a usual screen.
fn to_the_minute(started: &str) -> String {
    started.rsplit_once(':').map_or_else(|| started.into(), |(minute, _)| format!("{minute}Z"))
}

fn show(record: &Record, args: &HistoryArgs, detail: Detail) -> Result<()> {
    if let Some(format) = args.format {
        if matches!(record.kind, Kind::Compare | Kind::FindRate | Kind::Tune | Kind::Shaping) {
            bail!(
                "a comparison or search has several runs, but {} has a place for only one",
                format.id
            );
        }
        screen::print(&formats::print(format, record, Style::default()))?;
        return Ok(());
    }
    if args.json {
        screen::print_data(|out| {
            record.write_json(&mut *out)?;
            writeln!(out)
        })?;
        return Ok(());
    }
    screen::line(format_args!("{}   {}", record.started, record.target))?;
    let text = match record.kind {
        Kind::Test | Kind::Attach => report::test::text(record, detail),
        Kind::FindRate => report::rate_search::text(record),
        Kind::Compare if record.file_parts.is_some() => report::file_parts::text(record),
        Kind::Compare => report::compare::text(record),
        Kind::Tune => report::tune::text(record),
        Kind::Shaping => report::shaping::text(record),
    };
    Ok(screen::print_fitted(&text)?)
}
