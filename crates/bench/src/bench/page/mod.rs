//! docs/performance.md: the measurements, the machine, and whether the goals were met.

pub mod goals;
mod tables;

use std::fmt::Write;

use anyhow::Result;

use super::contest::Contest;
use super::kept::{Kept, RunOutcome, RunRecord};
use super::machine::Machine;
use super::measure::Measure;
use super::place::Place;
use super::stats::{Estimate, MIN_CONFIDENCE_PERCENT, estimate};

/// The whole page.
pub fn page(kept: &Kept, contests: &[&'static Contest]) -> Result<String> {
    let mut page = head(kept)?;
    writeln!(page, "\n## Goals\n")?;
    page.push_str(&summary(kept, contests)?);
    for contest in contests {
        writeln!(page, "\n## {}\n\n{}", contest.title, contest.about)?;
        for &place in contest.places.iter().filter(|&&place| kept.of(contest, place).count() > 0) {
            if contest.places.len() > 1 {
                writeln!(page, "\n### {}", place.words())?;
            }
            writeln!(page)?;
            tables::entries(&mut page, kept, contest, place)?;
            writeln!(page)?;
            goals::table(&mut page, kept, contest, place)?;
            tables::failures(&mut page, kept, contest, place)?;
        }
    }
    Ok(page)
}

/// Every goal of these contests in one table.
pub fn summary(kept: &Kept, contests: &[&'static Contest]) -> Result<String> {
    let mut summary = String::new();
    writeln!(summary, "| contest | place | | median | goal | met |\n|---|---|---|---|---|---|")?;
    for (contest, place) in places(contests) {
        if kept.of(contest, place).count() > 0 {
            goals::summary(&mut summary, kept, contest, place)?;
        }
    }
    Ok(summary)
}

/// A run as one line.
pub fn one_line(ran: &RunRecord, contest: &Contest) -> String {
    let came = match &ran.came {
        RunOutcome::Failed(why) => format!("FAILED: {why}"),
        RunOutcome::Values(_) => {
            let value = |measure: &&Measure| {
                let value = ran.value(measure)? * measure.scale;
                Some(format!("{}: {value:.*}", measure.heading, measure.digits))
            };
            contest.columns.iter().filter_map(value).collect::<Vec<_>>().join(", ")
        }
    };
    format!("{} ({}), {}: {came}", ran.contest, ran.place, ran.entry)
}

fn places<'a>(
    contests: &'a [&'static Contest],
) -> impl Iterator<Item = (&'static Contest, Place)> + 'a {
    contests.iter().flat_map(|&contest| contest.places.iter().map(move |&place| (contest, place)))
}

fn head(kept: &Kept) -> Result<String> {
    let Machine {
        date,
        processor,
        cpus,
        kernel,
        peers: _,
        congestion_control,
        load,
        versions,
        build,
        seconds,
    } = &kept.machine;
    let mut head = String::from("# Performance\n\n");
    let program = versions.first().map_or("goodput", String::as_str);
    writeln!(
        head,
        "Measured on {date} with {program} ({build}), by `cargo xtask bench`. Later programs may be faster or slower. \
         Run it to get your own machine's.\n"
    )?;
    writeln!(
        head,
        "- date: {date}\n- machine: {processor}, {cpus} CPUs\n- kernel: Linux {kernel}"
    )?;
    writeln!(head, "- congestion control: {congestion_control}")?;
    writeln!(head, "- versions: {}", versions.join("; "))?;
    writeln!(head, "- build of goodput: {build}")?;
    writeln!(head, "- load before the first run: {load} (1, 5 and 15 minutes)")?;
    writeln!(head, "- CPU time that the hypervisor gave to others: {}", stolen(kept))?;
    writeln!(
        head,
        "\n{} rounds of {seconds} s a run. In each round every contestant of a contest runs once, in random \
         order. A ratio is always of two runs of one round; the best peer is the one that was best in that \
         round. Throughput is what the receiver counted. CPU is the user and system time of both processes \
         from start to end. A GB is 10^9 bytes of received payload. The tables have medians, and in brackets \
         the order-statistic interval of at least {MIN_CONFIDENCE_PERCENT} % confidence, which needs six rounds. A goal is met, or missed, if the whole interval is on \
         that side of the goal; a contest with an open goal has further rounds, up to a limit.",
        rounds(kept),
    )?;
    Ok(head)
}

/// `6`, or `6 to 12` if some contests had further rounds.
fn rounds(kept: &Kept) -> String {
    match kept.rounds() {
        (least, most) if least == most => most.to_string(),
        (least, most) => format!("{least} to {most}"),
    }
}

/// What the hypervisor took during the runs.
fn stolen(kept: &Kept) -> String {
    let runs: Vec<f64> = kept.runs.iter().filter_map(|ran| ran.steal_percent).collect();
    let most = runs.iter().copied().reduce(f64::max);
    match (estimate(runs), most) {
        (Some(steal), Some(most)) => {
            format!("{:.1} % of a run (median), {most:.1} % at most (steal)", steal.median)
        }
        _ => "unknown".into(),
    }
}

/// `median [low, high]`, without an interval if there are too few values.
fn shown(value: Estimate, digits: usize) -> String {
    let interval = match value.interval {
        Some((low, high)) => format!("[{low:.digits$}, {high:.digits$}]"),
        None => return format!("{:.digits$}", value.median),
    };
    format!("{:.digits$} {interval}", value.median)
}

#[cfg(test)]
mod tests {
    use super::super::contests::ALL;
    use super::super::measure::Values;
    use super::*;

    /// Three rounds in which all values are equal, except that one peer fails.
    fn kept() -> Kept {
        let mut runs = Vec::new();
        for (contest, place) in places(ALL) {
            for (round, entry) in (1..=3)
                .flat_map(|r| contest.contestants(&[]).into_iter().map(move |who| (r, who.entry)))
            {
                let values = contest.columns.iter().map(|column| (column.id.into(), 5e9));
                let came = match entry.name {
                    "nuttcp" => RunOutcome::Failed("no | route\nat all".into()),
                    _ => RunOutcome::Values(values.collect::<Values>()),
                };
                let (contest, place) = (contest.id.into(), place.id().into());
                runs.push(RunRecord {
                    round,
                    contest,
                    place,
                    entry: entry.name.into(),
                    steal_percent: None,
                    came,
                });
            }
        }
        Kept { machine: Machine { seconds: 2, ..Machine::default() }, runs }
    }

    #[test]
    fn the_page_has_every_contest_and_names_who_failed() {
        let page = page(&kept(), ALL).unwrap();
        for contest in ALL {
            assert!(page.contains(contest.title), "{}", contest.id);
        }
        assert!(page.contains("- nuttcp failed in 3 of 3 rounds: no | route at all"), "{page}");
        assert!(page.contains("| nuttcp | – | – |"), "{page}");
        assert!(page.contains("3 rounds of 2 s"), "{page}");
    }

    #[test]
    fn a_contest_that_did_not_run_is_not_judged() {
        let mut kept = kept();
        kept.runs.retain(|ran| ran.contest == "size");
        let summary = summary(&kept, ALL).unwrap();
        assert_eq!(summary.lines().count(), 3, "{summary}");
    }
}
