//! `goodput history`: earlier results.

mod deleting;
mod export;
mod import;
mod prune;
mod wanted;

pub use deleting::{delete, on_full_disk};
pub use import::known;
pub use prune::give_back;

use anyhow::{Context, Result, bail};

use super::measured::soon;
use super::path_changes;
use crate::args::{HistoryArgs, HistoryDeed, Named};
use crate::data_dirs;
use crate::exit::Exit;
use crate::report::style::plain;
use crate::report::test::Detail;
use crate::report::watch;
use crate::report::{self, table::Table};
use crate::screen;
use goodput_compat::formats::{self, Style};
use goodput_model::Record;
use goodput_store::{Day, Entry, Store, Traffic, WATCH, Wanted};
use jiff::tz::TimeZone;

/// Lists results, shows one, or compares two; hands them out, takes them in, or deletes old ones.
pub fn run(args: &HistoryArgs, verbose: bool) -> Result<Exit> {
    if args.deed.is_some() && args.asks_for_a_list() {
        bail!(
            "what is before `export`, `import` or `prune` is of the list: write options behind the command, as in `goodput \
             history export --csv --target nas`"
        );
    }
    let store = match &args.deed {
        Some(HistoryDeed::Import(import)) => {
            return import::run(import, verbose);
        }
        Some(HistoryDeed::Prune(args)) => return prune::run(args),
        Some(HistoryDeed::Export(_)) | None => data_dirs::history_to_read()?,
    };
    if let Some(HistoryDeed::Export(export)) = &args.deed {
        return export::run(&store, export);
    }
    match args.ids[..] {
        [] => list(&store, &wanted::checked(&store, &args.wanted, args.last)?)?,
        [one] => show(&named(&store, one)?, args, Detail { verbose, ..Detail::default() })?,
        [_, _, ..] if args.json || args.format.is_some() => {
            bail!("--json and --format print one result; name one NUMBER")
        }
        [a, b, ..] => {
            let (a, b) = (named(&store, a)?, named(&store, b)?);
            screen::print_fitted(&report::difference::text(&a, &b))?;
        }
    }
    Ok(Exit::Fine)
}

/// A result as the user named it.
///
/// # Errors
/// There is none, or it can't be read.
pub fn named(store: &Store, name: Named) -> Result<Record> {
    let id = match name {
        Named::Number(id) => id,
        Named::Last => store.last(&soon())?.with_context(data_dirs::none_yet)?.id,
    };
    Ok(store.get(id)?)
}

/// What a list shows.
struct Listed {
    entries: Vec<Entry>,
    days: Vec<Day>,
    /// Whether there are more days.
    more: bool,
}

impl Listed {
    fn of(store: &Store, wanted: &Wanted) -> Result<Self> {
        let entries = store.search(wanted)?;
        let (days, more) = match &wanted.text {
            Some(_) => newest_days(store, wanted)?,
            None => (Vec::new(), false),
        };
        Ok(Self { entries, days, more })
    }

    fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.days.is_empty()
    }
}

/// Lists what is asked for. What a clock that was ahead has kept would be the first of each list for as long as it was
/// ahead: it is listed if the user asks for it, or if there is nothing else.
fn list(store: &Store, wanted: &Wanted) -> Result<()> {
    let soon = soon();
    let listed = Listed::of(store, &wanted.clone().by(&soon))?;
    if listed.is_empty() {
        return print_list(store, wanted, Listed::of(store, wanted)?);
    }
    print_list(store, wanted, listed)?;
    if let Some(later) = wanted.later(&soon)
        && !Listed::of(store, &Wanted { limit: wanted.limit.min(1), ..later })?.is_empty()
    {
        screen::say(format_args!(
            "goodput: results that began later than now are left out, because a clock was ahead; \
             `--since {soon}` lists them"
        ));
    }
    Ok(())
}

fn print_list(store: &Store, wanted: &Wanted, listed: Listed) -> Result<()> {
    if listed.is_empty() {
        return nothing(store, wanted);
    }
    let Listed { entries, days, more } = listed;
    let gap = if entries.is_empty() { "" } else { "\n" };
    if !entries.is_empty() {
        results(store, entries)?.print_whole()?;
    }
    if !days.is_empty() {
        screen::line(format_args!("{gap}days of deleted results"))?;
        report::days::table(&days).print_whole()?;
        if more {
            screen::line(format_args!(
                "older days are left out (--last {}); `goodput history export --days` prints all",
                wanted.limit
            ))?;
        }
    }
    changes(store, wanted)
}

/// The wanted days of deleted results, and whether there are more of them than that.
fn newest_days(store: &Store, wanted: &Wanted) -> Result<(Vec<Day>, bool)> {
    let one_more = Wanted { limit: wanted.limit.saturating_add(1), ..wanted.clone() };
    let mut days = store.days(&one_more)?;
    let most = usize::try_from(wanted.limit).unwrap_or(usize::MAX);
    let more = days.len() > most;
    days.truncate(most);
    Ok((days, more))
}

fn results(store: &Store, entries: Vec<Entry>) -> Result<Table> {
    // Who measured is worth a column if more than one did.
    let by = if store.names()?.measured_by.len() > 1 { &["by"][..] } else { &[] };
    let headings = [&["id", "started"][..], by, &["kind", "traffic", "goodput", "limit", "target"]];
    let mut table = Table::new(&headings.concat()).breaking_the_last_column();
    let watched = store.watched_among(&entries)?;
    for entry in entries {
        let target = match entry.readable() {
            // Of several runs, the goodput is that of the baseline; what they found says more.
            Ok(()) => match entry.answer {
                Some(answer) => format!("{}: {answer}", entry.target),
                None => entry.target,
            },
            Err(why) => format!("{} (can't be read: {why})", entry.target),
        };
        // Others may write to a history in a database.
        let kind = if watched.contains(&entry.id) { WATCH.into() } else { plain(&entry.kind) };
        let traffic = plain(&entry.traffic.as_ref().map(Traffic::way).unwrap_or_default());
        let (id, goodput) = (entry.id.to_string(), entry.goodput.to_string());
        let (started, target) = (plain(&to_the_minute(&entry.started)), plain(&target));
        let limit = plain(&entry.limit);
        let whom = plain(entry.measured_by.as_deref().unwrap_or("?"));
        let whom = [whom.as_str()];
        let what = [&*kind, &traffic, &goodput, &limit, &target];
        table.row(&[&[&*id, &*started][..], &whom[..by.len()], &what[..]].concat());
    }
    Ok(table)
}

/// Says that no result is listed, and what else there is.
fn nothing(store: &Store, wanted: &Wanted) -> Result<()> {
    let words = match store.list(1)?.is_empty() {
        true if !store.targets()?.is_empty() => {
            "all results were deleted; `goodput history export --days` prints their days".into()
        }
        true => data_dirs::none_yet(),
        false if *wanted == (Wanted { limit: wanted.limit, ..Wanted::default() }) => {
            "no result is asked for (--last 0)".into()
        }
        false => "no result is like that; `goodput history` lists those that there are".into(),
    };
    Ok(screen::line(words)?)
}

/// What watches found of the path that the user asks for, in UTC like the table above.
fn changes(store: &Store, wanted: &Wanted) -> Result<()> {
    let Some(text) = &wanted.text else { return Ok(()) };
    for change in path_changes::events(store, text)? {
        let since = path_changes::since(&change).to_owned();
        let from = wanted.from.as_ref().is_none_or(|from| since >= *from);
        if from && wanted.until.as_ref().is_none_or(|until| since < *until) {
            let text = watch::text_in(&change, &TimeZone::UTC);
            screen::print_unwrapped(&format!("\n{text}"))?;
        }
    }
    Ok(())
}

/// `2026-01-31T12:00:59Z` without its seconds, so that the table fits a usual screen.
fn to_the_minute(started: &str) -> String {
    started.rsplit_once(':').map_or_else(|| started.into(), |(minute, _)| format!("{minute}Z"))
}

fn show(record: &Record, args: &HistoryArgs, detail: Detail) -> Result<()> {
    if let Some(format) = args.format {
        if !record.kind.is_single_run() {
            bail!(
                "a comparison or search has several runs, but {} has a place for only one",
                format.id
            );
        }
        if let Some(why) = (format.refuses)(record) {
            bail!(why);
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
    let traffic = record.plan.traffic();
    let (started, target) = (plain(&record.started), plain(&record.target));
    screen::line(format_args!("{started}   {target}   {traffic}"))?;
    Ok(screen::print_fitted(&report::result::text(record, detail))?)
}
