//! The metrics of pairs and of sites, made anew for each reader: which pairs have some changes with their tests.

use std::array;

use goodput_model::median;
use prometheus_client::encoding::text::encode_registry;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::PREFIX;
use super::pairs::{Newest, OfSite, Pair, Pairs, Side};
use crate::commands::open_metrics::{Counters, Gauges, Label, Labels, gauges, set};

/// Appends them as OpenMetrics text.
pub(super) fn write(pairs: &Pairs, text: &mut String) {
    let mut registry = Registry::with_prefix(PREFIX);
    let sides = pairs.sides();
    let shown = pairs.shown(&sides);
    of_pairs(&mut registry, pairs, &shown);
    of_sites(&mut registry, pairs, &sides);
    of_all(&mut registry, pairs, shown.len());
    // Writing to a String can't fail.
    let _ = encode_registry(text, &registry);
}

fn label(text: &str) -> Label {
    Label::of(text)
}

/// Gauges without a unit, registered.
fn plain(registry: &mut Registry, name: &str, help: &str) -> Gauges {
    let gauges = Gauges::default();
    registry.register(name, help, gauges.clone());
    gauges
}

fn of_pairs(registry: &mut Registry, pairs: &Pairs, shown: &[Pair<'_>]) {
    let mut with_unit = |name, help, unit| gauges(registry, name, help, unit);
    let goodput = with_unit("goodput", "Goodput of the last result", "bytes_per_second");
    let round_trip =
        with_unit("smallest_round_trip", "Smallest round-trip time of the last result", "seconds");
    let last_result = with_unit("last_result_timestamp", "When the last result began", "seconds");
    let lost = with_unit("lost", "Share of the last result that was sent again or lost", "ratio");
    let up = plain(registry, "up", "Whether the last test of the pair had a record");
    let verdict = plain(registry, "verdict", "The last verdict: 1 for the limit that it names");
    let tests = Counters::default();
    registry.register("tests", "Tests by outcome", tests.clone());
    for pair in shown {
        let newest = pair.newest;
        let labels = vec![("sender", label(pair.sender)), ("receiver", label(pair.receiver))];
        let with = |more: &[(&'static str, &str)]| -> Labels {
            let more = more.iter().map(|(name, value)| (*name, label(value)));
            labels.iter().cloned().chain(more).collect()
        };
        set(&goodput, &labels, newest.goodput.known());
        set(&round_trip, &labels, newest.smallest_round_trip_s.known());
        set(&last_result, &labels, newest.began_s.map(|began| began.get().into()));
        set(&lost, &labels, newest.lost_share.known());
        set(&up, &labels, Some(f64::from(u8::from(newest.is_up))));
        if let Some((limit, end)) = pairs.limit(newest) {
            set(&verdict, &with(&[("limit", limit.as_str()), ("end", end.as_str())]), Some(1.0));
        }
        // A count that begins at 0 shows its first growth.
        for (outcome, count) in outcomes(newest) {
            tests.get_or_create(&with(&[("outcome", outcome)])).inc_by(count);
        }
    }
}

fn of_sites(registry: &mut Registry, pairs: &Pairs, sides: &[Vec<OfSite>; 2]) {
    let help = "Median goodput of the site's pairs by their last results";
    let goodput = gauges(registry, "site_goodput", help, "bytes_per_second");
    let tested = plain(registry, "site_pairs", "Pairs of the site that were tested");
    let help = "Pairs of the site whose last test has no record";
    let without_record = plain(registry, "site_pairs_without_record", help);
    for ((_, role), of_sites) in Side::ALL.into_iter().zip(sides) {
        for (number, of) in of_sites.iter().enumerate().filter(|(_, of)| of.pairs > 0) {
            let labels = vec![("site", label(pairs.site(number))), ("role", label(role))];
            set(&goodput, &labels, of.goodput);
            set(&tested, &labels, Some(of.pairs as f64));
            set(&without_record, &labels, Some(of.without_record as f64));
        }
    }
}

/// What the pairs without metrics of their own are counted in, too.
fn of_all(registry: &mut Registry, pairs: &Pairs, shown: usize) {
    let number = |registry: &mut Registry, name: &str, help: &str, value: usize| {
        let gauge = Gauge::<i64>::default();
        gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        registry.register(name, help, gauge);
    };
    let up: Vec<f64> = pairs.all().filter_map(|pair| pair.newest.goodput.known()).collect();
    let all = pairs.all().count();
    number(registry, "pairs", "Pairs that were tested", all);
    number(registry, "pairs_shown", "Pairs that have metrics of their own", shown);
    let help = "Pairs whose last test has no record";
    let without_record = pairs.all().filter(|pair| !pair.newest.is_up).count();
    number(registry, "pairs_without_record", help, without_record);
    let help = "Goodput of the last results: of the slowest pair, the median, of the fastest pair";
    let goodput = gauges(registry, "pairs_goodput", help, "bytes_per_second");
    let [slowest, fastest] = [f64::min, f64::max].map(|most| up.iter().copied().reduce(most));
    for (pair, value) in [("slowest", slowest), ("fastest", fastest), ("median", median(up))] {
        set(&goodput, &vec![("pair", label(pair))], value);
    }
    let limited =
        plain(registry, "pairs_limited", "Pairs by the limit that their last verdict names");
    for ((limit, end), count) in pairs.limited() {
        let labels = vec![("limit", label(limit)), ("end", label(end))];
        set(&limited, &labels, Some(count as f64));
    }
    let counters = Counters::default();
    registry.register("outcomes", "Tests of all pairs by outcome", counters.clone());
    let none = outcomes(&Newest::default());
    let all = pairs.all().map(|pair| outcomes(pair.newest));
    let counts = all
        .fold(none, |sum, of_pair| array::from_fn(|one| (sum[one].0, sum[one].1 + of_pair[one].1)));
    for (outcome, count) in counts {
        counters.get_or_create(&vec![("outcome", label(outcome))]).inc_by(count);
    }
}

/// How many tests of a pair have each outcome.
fn outcomes(newest: &Newest) -> [(&'static str, u64); 3] {
    let Newest { records, parts, failures, .. } = *newest;
    [("record", records.into()), ("part", parts.into()), ("no-record", failures.into())]
}

#[cfg(test)]
mod tests {
    use super::super::pairs::MOST_PAIRS;
    use super::super::pairs::tests::full_mesh;
    use super::*;

    /// Prometheus limits what it reads at once (`sample_limit`, `body_size_limit`) and waits 10 s (`scrape_timeout`).
    /// A mesh of a thousand sites has a million pairs.
    #[test]
    fn a_mesh_of_a_thousand_sites_has_as_many_series_as_a_database_has_room_for() {
        let pairs = full_mesh(1000);
        let mut text = String::new();
        write(&pairs, &mut text);
        let series = text.lines().filter(|line| !line.starts_with('#')).count();
        assert!(series <= 9 * MOST_PAIRS + 6 * 1000 + 20, "{series}");
        assert!(text.len() < 2_000_000, "{}", text.len());
        for line in [
            "goodput_fleet_pairs 999000",
            "goodput_fleet_pairs_shown 1000",
            "goodput_fleet_pairs_without_record 1000",
            "goodput_fleet_pairs_limited{limit=\"path-rate\",end=\"path\"} 998000.0",
            "goodput_fleet_pairs_goodput_bytes_per_second{pair=\"median\"} 100000000.0",
            "goodput_fleet_site_goodput_bytes_per_second{site=\"site0010\",role=\"sender\"} 10000000.0",
            "goodput_fleet_outcomes_total{outcome=\"no-record\"} 1000",
        ] {
            assert!(text.lines().any(|other| other == line), "{line}");
        }
    }
}
