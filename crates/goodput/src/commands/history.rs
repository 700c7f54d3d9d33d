//! `goodput history`: earlier results.

use anyhow::{Result, bail};

use crate::args::HistoryArgs;
use crate::data_dirs;
use crate::exit::Exit;
use crate::report::test::Detail;
use crate::report::{self, table::Table};
use crate::screen;
use goodput_compat::formats::{self, Style};
use goodput_model::{Kind, Record};
use goodput_store::Store;

/// Lists results, shows one, or compares two.
pub fn run(args: &HistoryArgs, verbose: bool) -> Result<Exit> {
    let store = data_dirs::history()?;
    match args.ids[..] {
        [] => list(&store, args.last)?,
        [id] => show(&store.get(id)?, args, Detail { verbose, ..Detail::default() })?,
        [a, b, ..] => {
            screen::print_fitted(&report::difference::text(&store.get(a)?, &store.get(b)?))?
        }
    }
    Ok(Exit::Fine)
}

fn list(store: &Store, last: u32) -> Result<()> {
    let headings = ["id", "started", "kind", "goodput", "limit", "target"];
    let mut table = Table::new(&headings).breaking_the_last_column();
    for entry in store.list(last)? {
        table.row(&[
            &entry.id.to_string(),
            &to_the_minute(&entry.started),
            &entry.kind,
            &entry.goodput.to_string(),
            &entry.limit,
            &entry.target,
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
