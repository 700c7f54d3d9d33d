//! `goodput report`: earlier results as pictures.

use std::fs::{self, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result, bail};
use goodput_charts::{Chart, Shown, figures, figures_of_both, page, ticket};
use goodput_model::Record;
use goodput_store::{RecordError, read_record};

use crate::args::ReportArgs;
use crate::commands::measured::soon;
use crate::data_dirs;
use crate::exit::Exit;
use crate::json_lines;
use crate::os_error::without_numbers;
use crate::report;
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
    let mut records = Vec::new();
    for name in &args.results {
        records.extend(named(name)?.iter().map(in_words).collect::<Result<Vec<_>>>()?);
    }
    let wanted = |chart: &Chart| args.only.is_empty() || args.only.contains(&chart.id);
    let drawn = match &records[..] {
        [first, second] => figures_of_both([first, second], wanted).to_vec(),
        _ => records.iter().map(|record| figures(record, wanted)).collect(),
    };
    let shown =
        |(record, figures)| Shown { record, text: report::result::on_page(record), figures };
    let results: Vec<Shown> = records.iter().zip(drawn).map(shown).collect();
    if results.iter().all(|one| one.figures.is_empty()) {
        bail!(
            "no result has data for {}; leave out --only to draw everything",
            args.only.join(", ")
        );
    }
    write(&results, &args.output)?;
    Ok(Exit::Fine)
}

type Write = fn(&[Shown], &Path) -> Result<()>;

/// Results by their name: `last`, a number of the history, or a file.
fn named(name: &str) -> Result<Vec<Record>> {
    if name == "last" {
        let history = data_dirs::history_to_read()?;
        let last = history.last(&soon())?.with_context(data_dirs::none_yet)?;
        return Ok(vec![history.get(last.id)?]);
    }
    match name.parse() {
        Ok(number) => Ok(vec![data_dirs::history_to_read()?.get(number)?]),
        Err(_) => of_file(Path::new(name)),
    }
}

/// The record with its reasons as people read them. Before it is drawn, because a picture cuts long texts.
pub fn in_words(record: &Record) -> Result<Record> {
    let text = record.to_json().context("can't write the record again")?;
    let mut record =
        Record::from_json(&without_numbers(&text)).context("can't read the record again")?;
    // An older goodput did not keep the commands.
    let to_keep = report::tune::to_keep(&record);
    if let Some(tuning) = record.tuning.as_mut().filter(|tuning| tuning.to_keep.is_empty()) {
        tuning.to_keep = to_keep;
    }
    Ok(record)
}

fn of_file(path: &Path) -> Result<Vec<Record>> {
    let shown = path.display();
    let read = || {
        format!(
            "can't read {shown} (a result is `last`, a number that `goodput history` lists, or a file with what `--json` \
             printed)"
        )
    };
    let bytes = fs::read(path).with_context(read)?;
    let text = String::from_utf8(bytes).map_err(|_| RecordError::Damaged.into());
    let records = text.and_then(|text| json_lines::records(&text, |json| Ok(read_record(json)?)));
    records.with_context(|| {
        format!(
            "{shown} has something other than records (a file has what `goodput test HOST --json` or `goodput history export \
             --json` printed)"
        )
    })
}

fn write_page(results: &[Shown], path: &Path) -> Result<()> {
    put(path, &page(results))
}

fn write_ticket(results: &[Shown], path: &Path) -> Result<()> {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let ticket = ticket(results, &stem);
    for (name, svg) in &ticket.pictures {
        put(&path.with_file_name(name), svg)?;
    }
    put(path, &ticket.text)
}

/// One picture as this file; several as files beside it, with what they show in their names.
fn write_picture(results: &[Shown], path: &Path) -> Result<()> {
    let figures = results.iter().flat_map(|one| &one.figures);
    let pictures: Vec<_> =
        figures.filter_map(|figure| Some((&figure.id, &figure.svg.as_ref()?.wide))).collect();
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

/// Writes a file and reports its name. If the disk is full, an earlier file of that name stays as it was.
fn put(path: &Path, text: &str) -> Result<()> {
    let is_new_or_plain = path.symlink_metadata().map_or(true, |found| found.is_file());
    // A device, a pipe or a link is written to, not replaced.
    let put =
        if is_new_or_plain { replace } else { |path: &Path, text: &str| fs::write(path, text) };
    put(path, text).map_err(|why| unwritten(path, why))?;
    screen::say(format_args!("{}", path.display()));
    Ok(())
}

fn unwritten(path: &Path, why: io::Error) -> anyhow::Error {
    let path = path.display();
    match why.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => anyhow::anyhow!(
            "can't write {path}: no space is left there; make room, or name another place with -o"
        ),
        _ => anyhow::Error::new(why).context(format!("can't write {path}")),
    }
}

/// Gives the file its name only when it is complete.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let around = path.parent().filter(|around| !around.as_os_str().is_empty());
    let around = around.unwrap_or(Path::new("."));
    fs::metadata(around)?;
    let mut builder = tempfile::Builder::new();
    // The user's umask applies, as to any new file.
    let mut made = builder
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(around)
        // It names the temporary file, which says nothing to anyone.
        .map_err(|why| io::Error::from(why.kind()))?;
    made.write_all(text.as_bytes())?;
    made.persist(path).map_err(|why| why.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use goodput_model::{FlowSample, Interval, Known, Role, Sample, TcpInfo};

    use super::*;

    #[test]
    fn a_file_is_replaced_and_a_link_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let [page, link] = ["page.html", "link.html"].map(|name| folder.path().join(name));
        put(&page, "first").unwrap();
        put(&page, "second").unwrap();
        std::os::unix::fs::symlink(&page, &link).unwrap();
        put(&link, "third").unwrap();
        assert_eq!(fs::read_to_string(&page).unwrap(), "third");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing else is left");
        let why = format!("{:#}", put(&folder.path().join("none/page.html"), "").unwrap_err());
        assert!(why.contains("none/page.html: No such file or directory"), "{why}");
    }

    #[test]
    fn a_file_with_a_record_in_each_line_has_all_of_them_and_a_wrong_line_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.json");
        let example = Record::from_json(include_str!("../report/example/record.json")).unwrap();
        let line = example.to_json().unwrap();
        std::fs::write(&path, format!("{line}\n{line}\n")).unwrap();
        assert_eq!(of_file(&path).unwrap(), [example.clone(), example]);
        std::fs::write(&path, format!("{line}\n{}\n", &line[..100])).unwrap();
        let why = format!("{:#}", of_file(&path).unwrap_err());
        assert!(
            why.contains("results.json has something other") && why.contains("line 2: "),
            "{why}"
        );
    }

    /// A test of these flows and seconds, made of the example: each flow has details as often as a record keeps them.
    fn long(flows: u16, seconds: u32) -> Record {
        // What a record keeps at most, in details of flows (`thinned_samples` of the engine).
        const MAX_DETAILED_FLOWS: u32 = 4096;
        let mut record = Record::from_json(include_str!("../report/example/record.json")).unwrap();
        record.plan.flows = flows;
        let detailed_every = (seconds * 10 * u32::from(flows)).div_ceil(MAX_DETAILED_FLOWS).max(1);
        let tcp = TcpInfo {
            rtt_us: Some(20_123),
            min_rtt_us: Some(10_045),
            snd_cwnd_segments: Some(412),
            unacked_segments: Some(398),
            total_retrans_segments: Some(17),
            ..TcpInfo::default()
        };
        let unseen = FlowSample::unreported(0, Role::Sender, 0, "not looked at");
        let detail = FlowSample { tcp: Known::Value(tcp), ..unseen };
        for end in [&mut record.ends.near, &mut record.ends.far] {
            let Known::Value(end) = end else { panic!("the example has both ends") };
            let sample = |tenth: u32| {
                let bytes = |flow: u16| u64::from(tenth) * (90_000 + u64::from(flow) * 997);
                let of_flow = |flow: u16| FlowSample {
                    flow,
                    bytes: bytes(flow) + u64::from(tenth % 7) * 1009,
                    ..detail.clone()
                };
                let is_detailed = tenth.is_multiple_of(detailed_every) || tenth == seconds * 10;
                let flows_seen =
                    if is_detailed { (0..flows).map(of_flow).collect() } else { Vec::new() };
                let all = (0..flows).map(bytes).sum();
                Sample {
                    at_s: f64::from(tenth) / 10.0,
                    sent_bytes: all,
                    received_bytes: all,
                    flows: flows_seen,
                }
            };
            end.samples = (0..=seconds * 10).map(sample).collect();
        }
        let first = record.intervals[0].clone();
        let interval =
            |at: u32| Interval { from_s: f64::from(at), to_s: f64::from(at + 1), ..first.clone() };
        record.intervals = (0..seconds).map(interval).collect();
        record
    }

    /// It goes by mail. How long it takes depends on the machine: `cargo xtask views report`.
    #[test]
    fn a_page_of_ten_minutes_and_64_flows_is_smaller_than_2_mb() {
        const BOUND_BYTES: usize = 2_000_000;
        let record = in_words(&long(64, 600)).unwrap();
        let drawn = figures(&record, |_| true);
        let alts: Vec<&str> = drawn.iter().map(|figure| &*figure.alt).collect();
        assert!(alts.iter().any(|alt| alt.contains("Flow 63")), "{alts:#?}");
        let text = report::result::on_page(&record);
        let page = page(&[Shown { record: &record, text, figures: drawn }]);
        assert!(page.len() < BOUND_BYTES, "{} bytes", page.len());
    }

    #[test]
    fn a_page_and_a_ticket_have_the_words_of_an_error_and_not_its_number() {
        let example = include_str!("../report/example/record.json");
        let mut kept = Record::from_json(example).unwrap();
        let denied = std::io::Error::from_raw_os_error(13);
        kept.doubts.push(format!("can't read the card: {denied}; \"as is\""));
        let record = in_words(&kept).unwrap();
        let figures = figures(&record, |_| true);
        let drawn = [Shown { record: &record, text: String::new(), figures }];
        for text in [page(&drawn), ticket(&drawn, "it").text] {
            assert!(text.contains("Permission denied; "), "{text}");
            assert!(!text.contains("os error"), "{text}");
        }
        kept.doubts.clear();
        assert_eq!(in_words(&kept).unwrap(), kept);
    }
}
