//! What came of tuning, in words, and docs/tuning.md.

use std::fmt::Write;

use anyhow::Result;

use super::case::{Kind, Tuned};
use crate::truth::LEAST_COST;
use crate::wilson;
use goodput_tools::shell::machine;

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

/// The shares of the healthy path's goodput before and after, the latter with its interval.
fn shares(tuned: &Tuned) -> [String; 2] {
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    let before = tuned.cost().map(|cost| percent(1.0 - cost));
    let after = tuned.after().map(|after| match after.interval {
        Some((low, high)) => {
            format!("{} ({:.0} to {})", percent(after.estimate), 100.0 * low, percent(high))
        }
        None => percent(after.estimate),
    });
    [before, after].map(|share| share.unwrap_or_else(|| "unknown".into()))
}

fn proven(tuned: &Tuned) -> String {
    if tuned.proven.is_empty() { "nothing".into() } else { tuned.proven.join(", ") }
}

/// The most important shares: what, and how often.
pub fn summary(all: &[Tuned]) -> Vec<(&'static str, String)> {
    let costly: Vec<_> = all.iter().filter(is_costly).collect();
    let judged: Vec<bool> = costly.iter().filter_map(|tuned| tuned.reaches()).collect();
    let reached = judged.iter().filter(|reached| **reached).count();
    let healthy: Vec<_> = all.iter().filter(|tuned| tuned.kind == Kind::Healthy).collect();
    let untouched = healthy.iter().filter(|tuned| tuned.proven.is_empty()).count();
    let of_all = |holds: fn(&Tuned) -> bool| {
        wilson::shown(all.iter().filter(|tuned| holds(tuned)).count(), all.len())
    };
    vec![
        ("measured", of_all(|tuned| tuned.after().is_some())),
        ("costly faults brought to 95 % of the healthy path", wilson::shown(reached, judged.len())),
        (
            "costly faults that are not judged: the runs can't tell",
            wilson::shown(costly.len() - judged.len(), costly.len()),
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

/// The whole page.
pub fn page(all: &[Tuned]) -> Result<String> {
    let mut page = head(all)?;
    page.push_str("\n| | share (95 % interval, Wilson) |\n|---|---|\n");
    for (what, shown) in summary(all) {
        writeln!(page, "| {what} | {shown} |")?;
    }
    page.push_str(
        "\n## Every path\n\n*Before* and *after* are shares of the healthy path's goodput, *after* with its interval if \
         something was proven.\n\n",
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
         fault is costly if it takes 15 % or more of the goodput. Whether 95 % was reached is judged by the 95 % interval \
         of the ratio of the tuned path's runs to eight runs of the healthy path, of the same length and made afterwards \
         (rank-sum test): a fault is not judged if 95 % lies in it, or a sample has too few runs.\n\n\
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
        let tuned = |kind, start, with_changes: f64, spread: f64| Tuned {
            name: "x".into(),
            kind,
            started: Some("2026-01-02T03:04:05Z".into()),
            healthy_bits_per_s: vec![100.0],
            healthy_briefly_bits_per_s: vec![99.0, 99.5, 100.0, 100.0, 100.5, 101.0],
            start_bits_per_s: Some(start),
            found: Vec::new(),
            tuned_bits_per_s: (0..6).map(|run| with_changes + spread * f64::from(run)).collect(),
            proven: if with_changes > start { vec!["a=1".into()] } else { vec![] },
            supported: true,
            took_s: 100.0,
            ended: "done".into(),
            scenario: String::new(),
            steps: serde_json::Value::Null,
        };
        let all = [
            tuned(Kind::Faulty, 10.0, 80.0, 10.0),
            tuned(Kind::Faulty, 10.0, 98.0, 0.1),
            tuned(Kind::Faulty, 10.0, 92.0, 0.1),
            tuned(Kind::Faulty, 95.0, 95.0, 0.0),
            tuned(Kind::Healthy, 100.0, 100.0, 0.0),
        ];
        let page = page(&all).unwrap();
        assert!(page.contains("5 paths, from 2026-01-02T03:04 to"), "{page}");
        assert!(page.contains("95 % of the healthy path | 1 of 2 "), "{page}");
        assert!(page.contains("can't tell | 1 of 3 "), "{page}");
        assert!(page.contains("nothing was kept | 1 of 1 "), "{page}");
        assert!(page.contains("| x | 10 % | 98 % (98 to 99 %) | 100 s | a=1 | done |"), "{page}");
        assert!(page.contains("| x | 95 % | 95 % | 100 s | nothing | done |"), "{page}");
        assert!(one_line(&all[1]).starts_with("x: 10 % -> 98 % (98 to 99 %) of the healthy path"));
    }
}
