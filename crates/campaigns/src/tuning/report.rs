//! What came of tuning, in words, and docs/tuning.md.

use std::fmt::Write;

use anyhow::Result;

use super::case::{Kind, Tuned};
use crate::truth::LEAST_COST;
use crate::wilson;
use goodput_tools::shell::machine;

/// Share of the healthy path's goodput that tuning should reach.
const REACHED_SHARE: f64 = 0.95;

/// Longest that tuning may take, seconds; bringing the hosts up is in it.
const LONGEST_S: f64 = 180.0;

/// One case in a line.
pub fn one_line(tuned: &Tuned) -> String {
    let [before, after] = shares(tuned);
    format!(
        "{}: {before} -> {after} of the healthy path in {:.0} s, proven: {}; {}",
        tuned.name,
        tuned.took_s,
        proven(tuned),
        tuned.ended
    )
}

/// The shares of the healthy path's goodput before and after.
fn shares(tuned: &Tuned) -> [String; 2] {
    let before = tuned.cost().map(|cost| 1.0 - cost);
    [before, tuned.reached()]
        .map(|share| share.map_or("unknown".into(), |share| format!("{:.0} %", 100.0 * share)))
}

fn proven(tuned: &Tuned) -> String {
    if tuned.proven.is_empty() { "nothing".into() } else { tuned.proven.join(", ") }
}

/// The most important shares: what, and how often.
pub fn summary(all: &[Tuned]) -> Vec<(&'static str, String)> {
    let costly: Vec<_> = all.iter().filter(is_costly).collect();
    let steady: Vec<_> = costly.iter().filter(|tuned| is_steady(tuned)).collect();
    let reached = steady.iter().filter(|tuned| reaches(tuned)).count();
    let healthy: Vec<_> = all.iter().filter(|tuned| tuned.kind == Kind::Healthy).collect();
    let untouched = healthy.iter().filter(|tuned| tuned.proven.is_empty()).count();
    let of_all = |holds: fn(&Tuned) -> bool| {
        wilson::shown(all.iter().filter(|tuned| holds(tuned)).count(), all.len())
    };
    vec![
        ("measured", of_all(|tuned| tuned.reached().is_some())),
        (
            "costly faults brought to 95 % of a steady healthy path",
            wilson::shown(reached, steady.len()),
        ),
        (
            "costly faults that are not judged, because the healthy path is not steady",
            wilson::shown(costly.len() - steady.len(), costly.len()),
        ),
        ("healthy paths on which nothing was kept", wilson::shown(untouched, healthy.len())),
        (
            "nothing proven that the last comparison does not support",
            of_all(|tuned| tuned.supported),
        ),
        ("done within three minutes", of_all(|tuned| tuned.took_s <= LONGEST_S)),
    ]
}

fn is_costly(tuned: &&Tuned) -> bool {
    tuned.kind == Kind::Faulty && tuned.cost().is_some_and(|cost| cost >= LEAST_COST)
}

/// Whether the healthy path's own runs differ by less than the share that tuning may lack.
fn is_steady(tuned: &Tuned) -> bool {
    tuned.healthy_spread().is_none_or(|spread| spread <= 1.0 - REACHED_SHARE)
}

fn reaches(tuned: &Tuned) -> bool {
    tuned.reached().is_some_and(|reached| reached >= REACHED_SHARE)
}

/// The whole page.
pub fn page(all: &[Tuned]) -> Result<String> {
    let mut page = head(all)?;
    page.push_str("\n| | share (95 % interval, Wilson) |\n|---|---|\n");
    for (what, shown) in summary(all) {
        writeln!(page, "| {what} | {shown} |")?;
    }
    page.push_str(
        "\n## Every path\n\n*Before* and *after* are shares of the healthy path's goodput.\n\n",
    );
    page.push_str("| path | before | after | time | proven | ended |\n|---|---|---|---|---|---|\n");
    for tuned in all {
        let ([before, after], ended) = (shares(tuned), tuned.ended.replace('|', "\\|"));
        let (name, took_s, proven) = (&tuned.name, tuned.took_s, proven(tuned));
        writeln!(page, "| {name} | {before} | {after} | {took_s:.0} s | {proven} | {ended} |")?;
    }
    Ok(page)
}

fn head(all: &[Tuned]) -> Result<String> {
    let mut times: Vec<_> = all.iter().filter_map(|tuned| tuned.started.as_deref()).collect();
    times.sort_unstable();
    let minute = |time: Option<&&str>| {
        time.map_or("never", |time| time.get(..16).unwrap_or(time)).to_owned()
    };
    Ok(format!(
        "# What tuning reaches\n\nWritten by `cargo xtask tuning --from FILE` from runs that were kept. Each path \
         lies between virtual hosts. It has a fault that a setting of one of the hosts removes, or nothing wrong. \
         `goodput lab tune` tunes the path unaided. The same path without the fault is measured before and after. A \
         fault is costly if it takes 15 % or more of the goodput. It is not judged if the healthy path's own runs \
         differ by more than 5 %: then they can't tell whether 95 % was reached.\n\n\
         - {} paths, from {} to {} UTC\n- {}\n",
        all.len(),
        minute(times.first()),
        minute(times.last()),
        machine()?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_what_they_are_about() {
        let with_spread = |kind, start, reached: f64, proven: &[&str], spread| Tuned {
            name: "x".into(),
            kind,
            started: Some("2026-01-02T03:04:05Z".into()),
            healthy_bits_per_s: Some(100.0),
            healthy_briefly_bits_per_s: Some(100.0),
            healthy_spreads: [Some(0.01), Some(spread)],
            start_bits_per_s: Some(start),
            tuned_bits_per_s: Some(reached),
            proven: proven.iter().map(|change| (*change).into()).collect(),
            supported: true,
            took_s: 100.0,
            ended: "done".into(),
            scenario: String::new(),
            steps: serde_json::Value::Null,
        };
        let tuned =
            |kind, start, reached, proven: &[&str]| with_spread(kind, start, reached, proven, 0.01);
        let all = [
            with_spread(Kind::Faulty, 10.0, 40.0, &["a=1"], 0.06),
            tuned(Kind::Faulty, 10.0, 96.0, &["a=1"]),
            tuned(Kind::Faulty, 10.0, 94.0, &["a=1"]),
            tuned(Kind::Faulty, 95.0, 95.0, &[]),
            tuned(Kind::Healthy, 100.0, 100.0, &[]),
        ];
        let page = page(&all).unwrap();
        assert!(page.contains("5 paths, from 2026-01-02T03:04 to"), "{page}");
        assert!(page.contains("95 % of a steady healthy path | 1 of 2 "), "{page}");
        assert!(page.contains("is not steady | 1 of 3 "), "{page}");
        assert!(page.contains("nothing was kept | 1 of 1 "), "{page}");
        assert!(page.contains("| x | 10 % | 96 % | 100 s | a=1 | done |"), "{page}");
        assert!(
            one_line(&all[1])
                .starts_with("x: 10 % -> 96 % of the healthy path in 100 s, proven: a=1")
        );
    }
}
