//! What happened to datagrams, and how evenly they arrived.

use goodput_model::{DirectionResult, Known, Plan, Seconds};

/// One line about the datagrams of a direction, and one about their pace if `with_pace`.
pub fn lines(
    plan: &Plan,
    direction: &DirectionResult,
    with_pace: bool,
) -> Vec<(&'static str, String)> {
    let counted = Some(counted(direction).join("   ")).filter(|text| !text.is_empty());
    let lines =
        [("datagrams", counted), ("pacing", with_pace.then(|| pace(plan, direction)).flatten())];
    lines.into_iter().filter_map(|(label, text)| Some((label, text?))).collect()
}

/// Lost, late, duplicate, and the jitter; zero counts are left out.
fn counted(direction: &DirectionResult) -> Vec<String> {
    let mut parts = Vec::new();
    if let Known::Value(lost) = &direction.lost_percent {
        parts.push(format!("lost {lost:.2} %"));
    }
    for (name, count) in
        [("reordered", &direction.reordered), ("duplicated", &direction.duplicated)]
    {
        if let Some(count) = count.value().filter(|count| **count > 0) {
            parts.push(format!("{name} {count}"));
        }
    }
    if let Known::Value(jitter) = &direction.jitter_us {
        let joined = direction.joined_percent.value().filter(|joined| **joined > 0.0);
        let joined = joined.map(|percent| {
            format!(" between packets ({percent:.0} % arrived joined, so their gaps are unknown)")
        });
        parts.push(format!("jitter {}{}", Seconds::of_us(*jitter), joined.unwrap_or_default()));
    }
    parts
}

/// How even the gaps were, and how long the sender spun and stalled.
fn pace(plan: &Plan, direction: &DirectionResult) -> Option<String> {
    let rate = plan.rate_per_flow()?;
    let even = direction.even_gaps_percent.value()?;
    let ideal_us = plan.chunk_bytes.0 as f64 * 8e6 / rate.0;
    let mut parts =
        vec![format!("{even:.1} % of the gaps within 20 % of {}", Seconds::of_us(ideal_us))];
    if let Some(spun) = direction.spun_us.value().filter(|spun| **spun > 0) {
        parts.push(format!("busy-waited {}", Seconds::of_us(*spun as f64)));
    }
    if let Some(lost) = direction.stalled_us.value().filter(|lost| **lost > 0) {
        parts.push(format!("{} late, so less was sent", Seconds::of_us(*lost as f64)));
    }
    Some(parts.join("   "))
}
