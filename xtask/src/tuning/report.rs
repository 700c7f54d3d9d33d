//! What came of tuning, in words.

use std::fmt::Write;

use super::case::{Kind, Tuned};
use crate::truth::LEAST_COST;
use crate::wilson;

/// Share of the healthy path's goodput that tuning should reach.
const REACHED: f64 = 0.95;

/// Longest that tuning may take, seconds; bringing the hosts up is in it.
const LONGEST_S: f64 = 180.0;

/// One case in a line.
pub fn one_line(tuned: &Tuned) -> String {
    let percent =
        |share: Option<f64>| share.map_or("?".into(), |share| format!("{:.0} %", 100.0 * share));
    let before = tuned.cost().map(|cost| 1.0 - cost);
    let proven = if tuned.proven.is_empty() { "nothing".into() } else { tuned.proven.join(", ") };
    format!(
        "{}: {} -> {} of the healthy path in {:.0} s, proven: {proven}; {}",
        tuned.name,
        percent(before),
        percent(tuned.reached()),
        tuned.took_s,
        tuned.ended
    )
}

/// The most important shares, one per line.
pub fn summary(all: &[Tuned]) -> String {
    let costly = |tuned: &&Tuned| {
        tuned.kind == Kind::Faulty && tuned.cost().is_some_and(|cost| cost >= LEAST_COST)
    };
    let costly: Vec<_> = all.iter().filter(costly).collect();
    let reached = |tuned: &&&Tuned| tuned.reached().is_some_and(|reached| reached >= REACHED);
    let healthy: Vec<_> = all.iter().filter(|tuned| tuned.kind == Kind::Healthy).collect();
    let untouched = healthy.iter().filter(|tuned| tuned.proven.is_empty()).count();
    let in_time = all.iter().filter(|tuned| tuned.took_s <= LONGEST_S).count();
    let supported = all.iter().filter(|tuned| tuned.supported).count();
    let measured = all.iter().filter(|tuned| tuned.reached().is_some()).count();
    let mut text = String::new();
    let mut line = |what: &str, hits, n| {
        writeln!(text, "{what}: {}", wilson::shown(hits, n)).expect("a string takes any text");
    };
    line("measured", measured, all.len());
    line(
        "costly faults brought to 95 % of the healthy path",
        costly.iter().filter(reached).count(),
        costly.len(),
    );
    line("healthy paths on which nothing was kept", untouched, healthy.len());
    line("nothing proven that the last comparison does not support", supported, all.len());
    line("done within three minutes", in_time, all.len());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_what_they_are_about() {
        let tuned = |kind, start, reached: f64, proven: &[&str]| Tuned {
            name: "x".into(),
            kind,
            healthy_bits_per_s: Some(100.0),
            healthy_briefly_bits_per_s: Some(100.0),
            start_bits_per_s: Some(start),
            tuned_bits_per_s: Some(reached),
            proven: proven.iter().map(|change| (*change).into()).collect(),
            supported: true,
            took_s: 100.0,
            ended: "done".into(),
        };
        let all = [
            tuned(Kind::Faulty, 10.0, 96.0, &["a=1"]),
            tuned(Kind::Faulty, 10.0, 94.0, &["a=1"]),
            tuned(Kind::Faulty, 95.0, 95.0, &[]),
            tuned(Kind::Healthy, 100.0, 100.0, &[]),
        ];
        let text = summary(&all);
        assert!(text.contains("95 % of the healthy path: 1 of 2 "), "{text}");
        assert!(text.contains("nothing was kept: 1 of 1 "), "{text}");
        assert!(
            one_line(&all[0])
                .starts_with("x: 10 % -> 96 % of the healthy path in 100 s, proven: a=1")
        );
    }
}
