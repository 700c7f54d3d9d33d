//! `goodput report`: earlier results as pictures.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use goodput_charts::{Figure, figures, page, ticket};
use goodput_model::Record;

use crate::args::ReportArgs;
use crate::data_dirs;
use crate::exit::Exit;
use crate::screen;

/// Draws the results into files, and names these.
pub fn run(args: &ReportArgs) -> Result<Exit> {
    let write: Write = match args.output.extension().and_then(|end| end.to_str()) {
        Some("html" | "htm") => write_page,
        Some("md") => write_ticket,
        Some("svg") => write_picture,
        _ => bail!(
            "{}: the ending says what to write: `.html` for one page, `.md` for a text with pictures beside it, `.svg` \
             for one picture",
            args.output.display()
        ),
    };
    let records: Vec<Record> =
        args.results.iter().map(|name| record(name)).collect::<Result<_>>()?;
    let wanted = |id: &str| args.only.is_empty() || args.only.contains(&id);
    let drawn = |record| (record, figures(record, |chart| wanted(chart.id)));
    let results: Vec<(&Record, Vec<Figure>)> = records.iter().map(drawn).collect();
    if results.iter().all(|(_, figures)| figures.is_empty()) {
        bail!(
            "no result has data for {}; leave out --only to draw everything",
            args.only.join(", ")
        );
    }
    write(&results, &args.output)?;
    Ok(Exit::Fine)
}

type Write = fn(&[(&Record, Vec<Figure>)], &Path) -> Result<()>;

/// A result by its name: `last`, a number of the history, or a file.
fn record(name: &str) -> Result<Record> {
    if name == "last" {
        let history = data_dirs::history()?;
        let last = history.list(1)?;
        let last =
            last.first().context("no results are kept yet; `goodput test HOST` makes one")?;
        return Ok(history.get(last.id)?);
    }
    match name.parse() {
        Ok(number) => Ok(data_dirs::history()?.get(number)?),
        Err(_) => of_file(Path::new(name)),
    }
}

fn of_file(path: &Path) -> Result<Record> {
    let shown = path.display();
    let read = || {
        format!(
            "can't read {shown} (a result is `last`, a number that `goodput history` lists, or a file with what `--json` \
             printed)"
        )
    };
    let text = fs::read_to_string(path).with_context(read)?;
    goodput_store::read_record(&text).with_context(|| format!("{shown} has no record"))
}

fn write_page(results: &[(&Record, Vec<Figure>)], path: &Path) -> Result<()> {
    put(path, &page(results))
}

fn write_ticket(results: &[(&Record, Vec<Figure>)], path: &Path) -> Result<()> {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let ticket = ticket(results, &stem);
    for (name, svg) in &ticket.pictures {
        put(&path.with_file_name(name), svg)?;
    }
    put(path, &ticket.text)
}

/// One picture as this file; several as files beside it, with what they show in their names.
fn write_picture(results: &[(&Record, Vec<Figure>)], path: &Path) -> Result<()> {
    let figures = results.iter().flat_map(|(_, figures)| figures);
    let pictures: Vec<_> =
        figures.filter_map(|figure| Some((&figure.id, figure.svg.as_ref()?))).collect();
    match &pictures[..] {
        [] => bail!("this result has tables, but no picture; write -o FILE.html"),
        [(_, svg)] => put(path, svg),
        _ if results.len() > 1 => {
            bail!("an .svg has pictures of one result; name one result, or write -o FILE.html")
        }
        several => {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            let beside = |id: &str| path.with_file_name(format!("{stem}-{id}.svg"));
            several.iter().try_for_each(|(id, svg)| put(&beside(id), svg))
        }
    }
}

/// Writes a file and reports its name.
fn put(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("can't write {}", path.display()))?;
    screen::say(format_args!("{}", path.display()));
    Ok(())
}
