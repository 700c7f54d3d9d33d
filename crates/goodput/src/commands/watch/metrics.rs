//! What a watch knows, for Prometheus. Names and units follow its conventions: base units, `_total` for counts.
//!
//! What is unknown is absent: a target without a result has no goodput, rather than one of 0.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use goodput_model::Bytes;
use goodput_watch::Quantity;
use jiff::Timestamp;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use crate::commands::open_metrics::{Counters, Gauges, Label, Labels, gauges, set};
use crate::report::watch::{Event, Tested};

/// The labels of a target.
fn of(target: &str) -> Labels {
    vec![("target", Label::of(target))]
}

/// The metrics of a watch; all clones share them.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Registry>,
    last: LastResult,
    counts: Counts,
    change: Gauges,
    budget_used: Gauge<f64, AtomicU64>,
    /// The labels of each target's last verdict, which go when the next one comes.
    verdicts: Arc<Mutex<Vec<Labels>>>,
    /// When each target's last result began, seconds since 1970.
    began: Arc<Mutex<HashMap<String, f64>>>,
}

/// What each target's last result shows.
#[derive(Clone)]
struct LastResult {
    goodput: Gauges,
    round_trip: Gauges,
    smallest_round_trip: Gauges,
    lost: Gauges,
    verdict: Gauges,
    probability: Gauges,
    up: Gauges,
    began: Gauges,
}

/// What only grows.
#[derive(Clone, Default)]
struct Counts {
    tests: Counters,
    late: Counter,
    bytes: Counters,
    changes: Counters,
    shifts: Counters,
}

impl LastResult {
    fn registered(registry: &mut Registry) -> Self {
        let mut gauge = |name, help, unit| gauges(registry, name, help, unit);
        let last = Self {
            goodput: gauge("goodput", "Goodput of the last result", "bytes_per_second"),
            round_trip: gauge(
                "round_trip",
                "Round-trip time under load of the last result",
                "seconds",
            ),
            smallest_round_trip: gauge(
                "smallest_round_trip",
                "Smallest round-trip time of the last result",
                "seconds",
            ),
            lost: gauge("lost", "Share of the last result that was sent again or lost", "ratio"),
            probability: gauge("verdict_probability", "Probability of the last verdict", "ratio"),
            began: gauge("last_result_timestamp", "When the last result began", "seconds"),
            verdict: Gauges::default(),
            up: Gauges::default(),
        };
        let verdict = "The last verdict: 1 for the limit that it names";
        registry.register("verdict", verdict, last.verdict.clone());
        registry.register("up", "Whether the last test had a result", last.up.clone());
        last
    }
}

impl Counts {
    fn registered(registry: &mut Registry) -> Self {
        let counts = Self::default();
        registry.register("tests", "Tests by outcome", counts.tests.clone());
        let late = "Tests of any target that were left out because those before, or the history, took too long";
        registry.register("late_tests", late, counts.late.clone());
        let bytes = "Bytes of the tests' IP packets in both directions";
        registry.register_with_unit("spent", bytes, Unit::Bytes, counts.bytes.clone());
        registry.register("changes", "Changes of the path's goodput", counts.changes.clone());
        let shifts =
            "Changes of the path's round trip and loss that did not come with one of its goodput";
        registry.register("shifts", shifts, counts.shifts.clone());
        counts
    }
}

impl Metrics {
    /// No test was made yet.
    pub fn new(budget: Bytes) -> Self {
        let mut registry = Registry::with_prefix("goodput_watch");
        let version = vec![("version", env!("CARGO_PKG_VERSION"))];
        registry.register("build", "Version of goodput", Info::new(version));
        let last = LastResult::registered(&mut registry);
        let counts = Counts::registered(&mut registry);
        let change = gauges(
            &mut registry,
            "last_change",
            "Goodput since the last change, divided by that before; 1 if the path is as before again",
            "ratio",
        );
        let budget_used = Gauge::<f64, AtomicU64>::default();
        let used = "Bytes of the last 24 hours";
        registry.register_with_unit("budget_used", used, Unit::Bytes, budget_used.clone());
        let budget_limit = Gauge::<f64, AtomicU64>::default();
        budget_limit.set(budget.0 as f64);
        let limit = "Bytes that may be spent in 24 hours";
        registry.register_with_unit("budget", limit, Unit::Bytes, budget_limit);
        Self {
            registry: Arc::new(registry),
            last,
            counts,
            change,
            budget_used,
            verdicts: Arc::default(),
            began: Arc::default(),
        }
    }

    /// Takes what happened.
    pub fn see(&self, event: &Event) {
        match event {
            Event::Begin { targets, used_bytes, .. } => {
                self.budget_used.set(used_bytes.0 as f64);
                for target in targets {
                    // A count that begins at 0 shows its first growth.
                    for outcome in ["result", "part", "no-result", "over-budget", "not-tested"] {
                        self.count(target, outcome, 0);
                    }
                    self.counts.changes.get_or_create(&of(target)).inc_by(0);
                    Quantity::ALL.into_iter().for_each(|quantity| self.shift(target, quantity, 0));
                    self.counts.bytes.get_or_create(&of(target)).inc_by(0);
                }
            }
            Event::Back { .. } | Event::MadeInAnotherWay { .. } => {}
            Event::Late { tests, .. } => {
                self.counts.late.inc_by(*tests);
            }
            Event::NotTested { target, bytes, used_bytes, .. } => {
                self.counts.bytes.get_or_create(&of(target)).inc_by(bytes.0);
                self.budget_used.set(used_bytes.0 as f64);
                self.count(target, "not-tested", 1);
            }
            Event::Tested(test) if test.incomplete.is_some() => self.part(test),
            Event::Tested(test) => self.tested(test),
            Event::NoResult { target, bytes, used_bytes, .. } => {
                self.counts.bytes.get_or_create(&of(target)).inc_by(bytes.0);
                self.budget_used.set(used_bytes.0 as f64);
                self.no_result(target);
            }
            Event::UsedUp { target, used_bytes, .. } => {
                self.budget_used.set(used_bytes.0 as f64);
                self.count(target, "over-budget", 1);
            }
            Event::Changed(change) => {
                let found = &change.found;
                // Otherwise the test changed, and nobody knows whether the path did.
                if found.is_of_path() {
                    self.changed(&found.target, change.percent, found.counts());
                }
            }
            Event::Shifted(shift) => {
                let counts = shift.found.counts();
                self.shift(&shift.found.target, shift.quantity, counts.into());
            }
        }
    }

    fn tested(&self, test: &Tested) {
        self.show(test);
        self.count(&test.target, "result", 1);
        self.counts.bytes.get_or_create(&of(&test.target)).inc_by(test.bytes.0);
        self.budget_used.set(test.used_bytes.0 as f64);
    }

    /// Shows a result as the last one of its target, and counts nothing.
    fn show(&self, test: &Tested) {
        let labels = of(&test.target);
        let known = |gauges: &Gauges, value: Option<f64>| set(gauges, &labels, value);
        // The base unit of data is the byte (Prometheus, "Metric and label naming").
        known(&self.last.goodput, Some(test.goodput_bits_per_s.0 / 8.0));
        known(&self.last.round_trip, test.round_trip_s);
        known(&self.last.smallest_round_trip, test.smallest_round_trip_s);
        known(&self.last.lost, test.lost_share);
        known(&self.last.probability, test.probability);
        known(&self.last.up, Some(1.0));
        let began = test.at.parse::<Timestamp>().ok().map(|at| at.as_second() as f64);
        known(&self.last.began, began);
        if let Some(began) = began {
            self.began().insert(test.target.clone(), began);
        }
        self.set_verdict(&test.target, Some(test));
    }

    /// A part of a test: its goodput is that of its beginning, and says nothing of the path.
    fn part(&self, test: &Tested) {
        self.unknown(&test.target);
        self.last.up.get_or_create(&of(&test.target)).set(1.0);
        self.count(&test.target, "part", 1);
        self.counts.bytes.get_or_create(&of(&test.target)).inc_by(test.bytes.0);
        self.budget_used.set(test.used_bytes.0 as f64);
    }

    /// A change, which counts unless it takes one back: then the path is as before it.
    fn changed(&self, target: &str, percent: f64, counts: bool) {
        let labels = of(target);
        self.counts.changes.get_or_create(&labels).inc_by(counts.into());
        let ratio = if counts { 1.0 + percent / 100.0 } else { 1.0 };
        self.change.get_or_create(&labels).set(ratio);
    }

    fn shift(&self, target: &str, quantity: Quantity, number: u64) {
        let mut labels = of(target);
        labels.push(("quantity", Label::of(quantity.id())));
        self.counts.shifts.get_or_create(&labels).inc_by(number);
    }

    fn no_result(&self, target: &str) {
        self.gone(target);
        self.count(target, "no-result", 1);
    }

    fn gone(&self, target: &str) {
        self.unknown(target);
        self.last.up.get_or_create(&of(target)).set(0.0);
    }

    /// Shows the last result that the history has of a target, so that a restart hides neither it nor its age. A target that
    /// was gone is so until it answers.
    pub fn restore(&self, last: &Tested, is_gone: bool) {
        self.show(last);
        if is_gone {
            self.gone(&last.target);
        }
    }

    /// Nothing is known of the path now.
    fn unknown(&self, target: &str) {
        let labels = of(target);
        for gauges in [
            &self.last.goodput,
            &self.last.round_trip,
            &self.last.smallest_round_trip,
            &self.last.lost,
            &self.last.probability,
        ] {
            gauges.remove(&labels);
        }
        self.set_verdict(target, None);
    }

    /// Replaces the target's verdict.
    fn set_verdict(&self, target: &str, test: Option<&Tested>) {
        let mut verdicts = self.verdicts.lock().unwrap_or_else(PoisonError::into_inner);
        let whose = ("target", Label::of(target));
        verdicts.retain(|labels| {
            let stays = !labels.contains(&whose);
            if !stays {
                self.last.verdict.remove(labels);
            }
            stays
        });
        if let Some(test) = test {
            let end = Label::of(test.end.to_string());
            let labels = vec![whose, ("limit", Label::of(test.limit_name())), ("end", end)];
            self.last.verdict.get_or_create(&labels).set(1.0);
            verdicts.push(labels);
        }
    }

    fn count(&self, target: &str, outcome: &str, number: u64) {
        let mut labels = of(target);
        labels.push(("outcome", Label::of(outcome)));
        self.counts.tests.get_or_create(&labels).inc_by(number);
    }

    fn began(&self) -> MutexGuard<'_, HashMap<String, f64>> {
        self.began.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// No result began later than `now_s` (seconds since 1970): if the clock was ahead and was set back since, it began before it
    /// was set. Otherwise the result would not grow old for as long as the clock was ahead.
    pub fn set_back(&self, now_s: f64) {
        for (target, began) in self.began().iter_mut().filter(|(_, began)| **began > now_s) {
            *began = now_s;
            set(&self.last.began, &of(target), Some(now_s));
        }
    }

    /// All metrics as OpenMetrics text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a String can't fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;
    use crate::commands::serve_metrics;
    use crate::commands::serve_results::LastResult;
    use crate::report::watch::{Changed, HeldUp};
    use crate::report::{change_point, shifted};
    use goodput_engine::serve::Counted;
    use goodput_model::{BitRate, EndName, Limiter, Place, Verdict};
    use goodput_store::Figures;
    use goodput_watch::Difference;

    fn test(target: &str, limit: &str) -> Tested {
        Tested {
            at: "2026-11-27T14:05:00Z".into(),
            target: target.into(),
            record: Some(1),
            goodput_bits_per_s: BitRate(9.4e8),
            limit: limit.into(),
            limiter: None,
            end: Place::Path,
            probability: None,
            round_trip_s: Some(0.0031),
            smallest_round_trip_s: None,
            lost_share: Some(0.0),
            incomplete: None,
            beside: Vec::new(),
            bytes: Bytes(1000),
            used_bytes: Bytes(3000),
        }
    }

    /// Whether the text has this line, apart from the order of its labels.
    fn has(text: &str, line: &str) -> bool {
        text.lines().any(|other| other == line)
    }

    #[test]
    fn a_result_has_its_metrics_and_the_last_verdict_alone() {
        let metrics = Metrics::new(Bytes(5000));
        metrics.see(&Event::Tested(test("nas", "path-rate")));
        metrics.see(&Event::Tested(test("nas", "policer")));
        let text = metrics.text();
        for line in [
            "goodput_watch_goodput_bytes_per_second{target=\"nas\"} 117500000.0",
            "goodput_watch_round_trip_seconds{target=\"nas\"} 0.0031",
            "goodput_watch_lost_ratio{target=\"nas\"} 0.0",
            "goodput_watch_verdict{target=\"nas\",limit=\"policer\",end=\"path\"} 1.0",
            "goodput_watch_tests_total{target=\"nas\",outcome=\"result\"} 2",
            "goodput_watch_spent_bytes_total{target=\"nas\"} 2000",
            "goodput_watch_budget_used_bytes 3000.0",
            "goodput_watch_budget_bytes 5000.0",
            "goodput_watch_last_result_timestamp_seconds{target=\"nas\"} 1795788300.0",
            "# TYPE goodput_watch_spent_bytes counter",
        ] {
            assert!(has(&text, line), "{line}\n{text}");
        }
        assert!(
            !text.contains("path-rate") && !text.contains("smallest_round_trip_seconds{"),
            "{text}"
        );
        assert!(text.ends_with("# EOF\n"), "{text}");
    }

    #[test]
    fn a_result_of_a_clock_that_was_set_back_grows_old() {
        let metrics = Metrics::new(Bytes(5000));
        let tested = test("nas", "none");
        let began = tested.at.parse::<Timestamp>().unwrap().as_second() as f64;
        metrics.see(&Event::Tested(tested));
        let says = |began_s: f64| {
            let name = "goodput_watch_last_result_timestamp_seconds{target=\"nas\"}";
            has(&metrics.text(), &format!("{name} {began_s:.1}"))
        };
        metrics.set_back(began + 60.0);
        assert!(says(began), "{}", metrics.text());
        metrics.set_back(began - 3600.0);
        metrics.set_back(began - 60.0);
        assert!(says(began - 3600.0), "{}", metrics.text());
    }

    #[test]
    fn a_limit_that_only_the_account_names_is_the_verdict() {
        let metrics = Metrics::new(Bytes(5000));
        let limiter = Some(Limiter::ReceiveWindow);
        metrics.see(&Event::Tested(Tested {
            limiter,
            end: Place::Far,
            ..test("nas", Verdict::NO_LIMIT)
        }));
        let text = metrics.text();
        let verdict = r#"verdict{target="nas",limit="receive-window",end="far"} 1.0"#;
        assert!(has(&text, &format!("goodput_watch_{verdict}")), "{text}");
    }

    #[test]
    fn a_target_that_is_gone_has_no_goodput() {
        let metrics = Metrics::new(Bytes(5000));
        metrics.see(&Event::Tested(test("nas", "path-rate")));
        let at = String::from("2026-11-27T14:20:00Z");
        metrics.see(&Event::NoResult {
            at: at.clone(),
            target: "nas".into(),
            why: String::new(),
            since: at,
            bytes: Bytes(500),
            used_bytes: Bytes(3500),
        });
        let text = metrics.text();
        assert!(has(&text, "goodput_watch_spent_bytes_total{target=\"nas\"} 1500"), "{text}");
        assert!(has(&text, "goodput_watch_budget_used_bytes 3500.0"), "{text}");
        assert!(has(&text, "goodput_watch_up{target=\"nas\"} 0.0"), "{text}");
        assert!(!text.contains("bytes_per_second{") && !text.contains("verdict{"), "{text}");
        assert!(text.contains("last_result_timestamp_seconds{"), "{text}");
    }

    #[test]
    fn after_a_restart_the_last_result_of_the_history_has_its_age_and_is_not_counted_again() {
        let metrics = Metrics::new(Bytes(5000));
        metrics.restore(&test("nas", "path-rate"), false);
        metrics.restore(&test("away", "path-rate"), true);
        let text = metrics.text();
        for line in [
            "goodput_watch_up{target=\"nas\"} 1.0",
            "goodput_watch_up{target=\"away\"} 0.0",
            "goodput_watch_goodput_bytes_per_second{target=\"nas\"} 117500000.0",
            "goodput_watch_last_result_timestamp_seconds{target=\"away\"} 1795788300.0",
        ] {
            assert!(has(&text, line), "{line}\n{text}");
        }
        let unknown = [
            "tests_total{",
            "spent_bytes_total{",
            "per_second{target=\"away\"",
            "verdict{target=\"away\"",
        ];
        assert!(!unknown.iter().any(|name| text.contains(name)), "{text}");
    }

    #[test]
    fn a_test_that_was_not_made_says_nothing_of_its_target() {
        let metrics = Metrics::new(Bytes(5000));
        metrics.see(&Event::Tested(test("nas", "path-rate")));
        let at = String::from("2026-11-27T14:20:00Z");
        let (target, why) = ("nas".into(), String::new());
        let (bytes, used_bytes) = (Bytes(500), Bytes(3500));
        metrics.see(&Event::NotTested { at, target, why, bytes, used_bytes });
        metrics.see(&Event::Late {
            at: String::new(),
            tests: 3,
            targets: Vec::new(),
            because: HeldUp::default(),
        });
        let text = metrics.text();
        for line in [
            "goodput_watch_up{target=\"nas\"} 1.0",
            "goodput_watch_tests_total{target=\"nas\",outcome=\"not-tested\"} 1",
            "goodput_watch_late_tests_total 3",
            "goodput_watch_spent_bytes_total{target=\"nas\"} 1500",
        ] {
            assert!(has(&text, line), "{line}\n{text}");
        }
        assert!(text.contains("bytes_per_second{"), "{text}");
    }

    #[test]
    fn a_part_of_a_test_has_no_goodput_and_is_counted_as_a_part() {
        let metrics = Metrics::new(Bytes(5000));
        metrics.see(&Event::Tested(test("nas", "path-rate")));
        let incomplete = Some("the budget was used up".into());
        metrics.see(&Event::Tested(Tested { incomplete, ..test("nas", "path-rate") }));
        let text = metrics.text();
        for line in [
            "goodput_watch_tests_total{target=\"nas\",outcome=\"result\"} 1",
            "goodput_watch_tests_total{target=\"nas\",outcome=\"part\"} 1",
            "goodput_watch_spent_bytes_total{target=\"nas\"} 2000",
            "goodput_watch_up{target=\"nas\"} 1.0",
        ] {
            assert!(has(&text, line), "{line}\n{text}");
        }
        assert!(!text.contains("bytes_per_second{") && !text.contains("verdict{"), "{text}");
    }

    #[test]
    fn a_path_that_is_as_before_again_has_changed_once_and_has_a_ratio_of_one() {
        let metrics = Metrics::new(Bytes(5000));
        metrics.changed("nas", -50.0, true);
        assert!(has(&metrics.text(), "goodput_watch_last_change_ratio{target=\"nas\"} 0.5"));
        metrics.changed("nas", 100.0, false);
        let text = metrics.text();
        assert!(has(&text, "goodput_watch_last_change_ratio{target=\"nas\"} 1.0"), "{text}");
        assert!(has(&text, "goodput_watch_changes_total{target=\"nas\"} 1"), "{text}");
    }

    #[test]
    fn a_change_of_the_round_trip_counts_unless_it_takes_one_back() {
        let metrics = Metrics::new(Bytes(5000));
        let shift = shifted::tests::example();
        let mut back = shift.clone();
        back.found.takes_back = Some(shift.found.since.clone());
        let mut of_test = shift.clone();
        of_test.found.test = vec![mover()];
        for shift in [shift, back, of_test] {
            metrics.see(&Event::Shifted(shift.into()));
        }
        let line = "goodput_watch_shifts_total{target=\"nas\",quantity=\"round-trip\"} 1";
        assert!(has(&metrics.text(), line), "{}", metrics.text());
    }

    /// What changed of a test.
    fn mover() -> Difference {
        let [what, before, since] =
            ["sending mover of the near end", "copy", "gso"].map(String::from);
        Difference { what, before, since }
    }

    #[test]
    fn a_change_of_the_test_is_no_change_of_the_path() {
        let metrics = Metrics::new(Bytes(5000));
        let mut found = change_point::tests::example();
        found.test.push(mover());
        let change = Changed {
            found,
            percent: -41.0,
            low_percent: -43.0,
            high_percent: -39.0,
            before_bits_per_s: BitRate(9.4e8),
            since_bits_per_s: BitRate(5.5e8),
        };
        metrics.see(&Event::Changed(change.clone().into()));
        let text = metrics.text();
        assert!(!text.contains("changes_total{") && !text.contains("change_ratio{"), "{text}");
        let mut change = change;
        change.found.test.clear();
        metrics.see(&Event::Changed(change.into()));
        let line = "goodput_watch_changes_total{target=\"nas\"} 1";
        assert!(has(&metrics.text(), line), "{}", metrics.text());
    }

    #[test]
    fn hostile_labels_are_escaped_once() {
        let metrics = Metrics::new(Bytes(5000));
        metrics.see(&Event::Tested(test("a\"} 1\n\u{1b}b\\", "none")));
        let text = metrics.text();
        let line = r#"goodput_watch_up{target="a\"} 1??b\\"} 1.0"#.replace('?', "\u{fffd}");
        assert!(has(&text, &line), "{text}");
    }

    /// The names of goodput's metrics in a text.
    fn names(text: &str) -> BTreeSet<String> {
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        words.filter(|word| word.starts_with("goodput_")).map(Into::into).collect()
    }

    #[test]
    fn the_dashboard_and_the_alert_rules_name_only_metrics_that_there_are() {
        let metrics = Metrics::new(Bytes(5000));
        let whole = Tested {
            probability: Some(0.9),
            smallest_round_trip_s: Some(0.001),
            ..test("nas", "policer")
        };
        metrics.see(&Event::Tested(whole));
        metrics.changed("nas", -41.0, true);
        metrics.shift("nas", Quantity::RoundTrip, 1);
        let served = LastResult {
            sender: EndName::Near,
            began: Timestamp::UNIX_EPOCH,
            goodput: Some(BitRate(9.4e8)),
            figures: Figures {
                round_trip_s: Some(0.0031),
                smallest_round_trip_s: Some(0.001),
                lost_share: Some(0.0),
                ..Figures::default()
            },
            verdict: Some(("policer".into(), Place::Path, Some(0.9))),
        };
        let there = names(&(metrics.text() + &serve_metrics::text(Counted::default(), &[served])));
        let packaging = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging");
        for file in ["grafana/goodput.json", "prometheus/goodput.rules.yml"] {
            let text = std::fs::read_to_string(packaging.join(file)).unwrap();
            let mut named = names(&text);
            // Those of a fleet are its coordinator's.
            named.retain(|name| !name.ends_with('_') && !name.starts_with("goodput_fleet_"));
            let missing: Vec<_> = named.difference(&there).collect();
            assert!(named.len() > 4 && missing.is_empty(), "{file}: {missing:?}");
        }
    }
}
