//! What the coordinator knows of its fleet, for Prometheus. Names and units follow its conventions, as those of a watch do.
//!
//! What is unknown is absent: a pair without a result has no goodput, rather than one of 0.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use goodput_bus::{Entry, Keys};
use goodput_fleet::{Announcement, Mesh, Task};
use goodput_model::Record;
use goodput_store::Figures;
use goodput_watch::Limit;
use jiff::Timestamp;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use tokio::time::sleep;

use crate::commands::fleet::places::BEAT;
use crate::commands::open_metrics::{Counters, Gauges, Label, Labels, gauges};

/// The metrics of a fleet; all clones share them.
#[derive(Clone)]
pub(in crate::commands::fleet) struct FleetMetrics {
    registry: Arc<Registry>,
    /// Those with an agent.
    sites: Arc<Vec<String>>,
    goodput: Gauges,
    smallest_round_trip: Gauges,
    lost: Gauges,
    verdict: Gauges,
    /// Of each pair, the labels of its last verdict, which go when the next one comes.
    verdicts: Arc<Mutex<HashMap<Labels, Labels>>>,
    up: Gauges,
    last_result: Gauges,
    tests: Counters,
    agent_up: Gauges,
    budget_left: Gauges,
    turn_tests: Gauge,
    turn_tests_done: Gauge,
}

impl FleetMetrics {
    /// No test was made yet.
    pub fn new(mesh: &Mesh) -> Self {
        let mut registry = Registry::with_prefix("goodput_fleet");
        let version = vec![("version", env!("CARGO_PKG_VERSION"))];
        registry.register("build", "Version of goodput", Info::new(version));
        let mut gauges = |name, help, unit| gauges(&mut registry, name, help, unit);
        let goodput = gauges("goodput", "Goodput of the last result", "bytes_per_second");
        let smallest_round_trip =
            gauges("smallest_round_trip", "Smallest round-trip time of the last result", "seconds");
        let last_result = gauges("last_result_timestamp", "When the last result began", "seconds");
        let lost = gauges("lost", "Share of the last result that was sent again or lost", "ratio");
        let budget_left = gauges("budget_left", "What the budget of the site has left", "bytes");
        let (up, verdict, agent_up) = <(Gauges, Gauges, Gauges)>::default();
        let (tests, turn_tests, turn_tests_done) = <(Counters, Gauge, Gauge)>::default();
        registry.register("up", "Whether the last test of the pair had a record", up.clone());
        let named = "The last verdict: 1 for the limit that it names";
        registry.register("verdict", named, verdict.clone());
        registry.register("tests", "Tests by outcome", tests.clone());
        registry.register("agent_up", "Whether the agent of the site runs", agent_up.clone());
        registry.register("turn_tests", "Tests of this turn of the mesh", turn_tests.clone());
        let done = "Tests of this turn that have an outcome";
        registry.register("turn_tests_done", done, turn_tests_done.clone());
        let with_agent = mesh.sites.iter().filter(|site| !site.is_foreign);
        Self {
            sites: Arc::new(with_agent.map(|site| site.name.clone()).collect()),
            registry: Arc::new(registry),
            verdicts: Arc::default(),
            goodput,
            smallest_round_trip,
            lost,
            verdict,
            up,
            last_result,
            tests,
            agent_up,
            budget_left,
            turn_tests,
            turn_tests_done,
        }
    }

    /// Says how far the turn is.
    pub fn turn(&self, done: usize, all: usize) {
        self.turn_tests.set(i64::try_from(all).unwrap_or(i64::MAX));
        self.turn_tests_done.set(i64::try_from(done).unwrap_or(i64::MAX));
    }

    /// Takes the outcome of a test; without a record, there is none.
    pub fn see(&self, task: &Task, record: Option<&Record>) {
        let labels = pair(task);
        // A count that begins at 0 shows its first growth.
        for (outcome, is_this) in [("record", record.is_some()), ("no-record", record.is_none())] {
            let mut labels = labels.clone();
            labels.push(("outcome", Label(outcome.into())));
            self.tests.get_or_create(&labels).inc_by(u64::from(is_this));
        }
        self.up.get_or_create(&labels).set(f64::from(u8::from(record.is_some())));
        self.set_verdict(&labels, record);
        let Some(record) = record else {
            for gauges in [&self.goodput, &self.smallest_round_trip, &self.lost] {
                gauges.remove(&labels);
            }
            return;
        };
        let figures = Figures::of(record);
        // The base unit of data is the byte (Prometheus, "Metric and label naming").
        let goodput = record.result.goodput_bits_per_s.0 / 8.0;
        self.goodput.get_or_create(&labels).set(goodput);
        set(&self.smallest_round_trip, &labels, figures.smallest_round_trip_s);
        set(&self.lost, &labels, figures.lost_share);
        let began = record.started.parse::<Timestamp>().ok().map(|at| at.as_second() as f64);
        set(&self.last_result, &labels, began);
    }

    /// Replaces the verdict of a pair.
    fn set_verdict(&self, pair: &Labels, record: Option<&Record>) {
        let mut verdicts = self.verdicts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = verdicts.remove(pair) {
            self.verdict.remove(&last);
        }
        let Some(record) = record else { return };
        let limit = Limit::of(record);
        let name = limit.limiter.map_or(limit.rule, |limiter| limiter.id());
        let more = [("limit", Label(name)), ("end", Label(limit.end.to_string()))];
        let labels: Labels = pair.iter().cloned().chain(more).collect();
        self.verdict.get_or_create(&labels).set(1.0);
        verdicts.insert(pair.clone(), labels);
    }

    /// Sees which agents run, and what they say of themselves. Never ends.
    pub async fn watch<T>(&self, agents: &Keys) -> T {
        loop {
            for site in self.sites.iter() {
                let Ok(word) = goodput_fleet::word(site) else { continue };
                self.see_agent(site, agents.entry(&word).await.ok());
            }
            sleep(BEAT).await;
        }
    }

    /// Takes what the bus says of the agent of a site; none: it does not answer.
    fn see_agent(&self, site: &str, known: Option<Option<Entry>>) {
        let labels = vec![("site", Label(site.into()))];
        let is_up = known.as_ref().map(|entry| f64::from(u8::from(entry.is_some())));
        set(&self.agent_up, &labels, is_up);
        let said = known.flatten().and_then(|entry| Announcement::read(&entry.value).ok());
        let left = said.and_then(|said| said.limits.left);
        set(&self.budget_left, &labels, left.map(|bytes| bytes.0 as f64));
    }

    /// All metrics as OpenMetrics text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a String can't fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

/// The labels of a pair.
fn pair(task: &Task) -> Labels {
    let label = |name: &str| Label(name.into());
    vec![("sender", label(task.sender())), ("receiver", label(task.receiver()))]
}

fn set(gauges: &Gauges, labels: &Labels, value: Option<f64>) {
    match value {
        Some(value) => {
            gauges.get_or_create(labels).set(value);
        }
        None => {
            gauges.remove(labels);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_fleet::{FORMAT, Limits};
    use goodput_model::{Bytes, Verdict};
    use std::collections::BTreeSet;
    use std::path::Path;

    const RECORD: &str = include_str!("../../../report/example/record.json");

    #[test]
    fn a_pair_has_its_last_result_and_without_one_it_has_no_goodput() {
        let text = "[site.a]\ntarget = \"a\"\n[site.b]\n";
        let mesh = Mesh::parse("x", text).unwrap();
        let task = goodput_fleet::task_between(&mesh, "t", "a", "b").unwrap();
        let record = goodput_store::read_record(RECORD).unwrap();
        let metrics = FleetMetrics::new(&mesh);
        metrics.see(&task, Some(&record));
        let text = metrics.text();
        for line in [
            "goodput_fleet_up{sender=\"a\",receiver=\"b\"} 1.0",
            "goodput_fleet_tests_total{sender=\"a\",receiver=\"b\",outcome=\"record\"} 1",
            "goodput_fleet_tests_total{sender=\"a\",receiver=\"b\",outcome=\"no-record\"} 0",
        ] {
            assert!(text.lines().any(|other| other == line), "{line}\n{text}");
        }
        assert!(text.contains("goodput_fleet_goodput_bytes_per_second{sender=\"a\""), "{text}");
        let verdict = "verdict{sender=\"a\",receiver=\"b\",limit=\"shaper-burst\",end=";
        assert!(text.contains(verdict), "{text}");
        let other = Verdict { limit: "policer".into(), ..record.verdict.clone() };
        metrics.see(&task, Some(&Record { verdict: other, ..record }));
        let text = metrics.text();
        assert!(text.contains("limit=\"policer\"") && !text.contains("shaper-burst"), "{text}");
        metrics.see(&task, None);
        let text = metrics.text();
        assert!(!text.contains("limit=") && !text.contains("lost_ratio{"), "{text}");
        assert!(text.contains("goodput_fleet_up{sender=\"a\",receiver=\"b\"} 0.0"), "{text}");
        assert!(!text.contains("bytes_per_second{"), "{text}");
    }

    /// The names of a fleet's metrics in a text.
    fn names(text: &str) -> BTreeSet<String> {
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        words.filter(|word| word.starts_with("goodput_fleet_")).map(Into::into).collect()
    }

    #[test]
    fn the_dashboard_and_the_alert_rules_name_only_metrics_that_there_are() {
        let mesh = Mesh::parse("x", "[site.a]\ntarget = \"a\"\n[site.b]\n").unwrap();
        let task = goodput_fleet::task_between(&mesh, "t", "a", "b").unwrap();
        let metrics = FleetMetrics::new(&mesh);
        metrics.see(&task, Some(&goodput_store::read_record(RECORD).unwrap()));
        for gauges in [&metrics.agent_up, &metrics.budget_left] {
            set(gauges, &vec![("site", Label("a".into()))], Some(1.0));
        }
        let there = names(&metrics.text());
        let packaging = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging");
        for (file, fewest) in [("grafana/goodput.json", 7), ("prometheus/goodput.rules.yml", 3)] {
            let named = names(&std::fs::read_to_string(packaging.join(file)).unwrap());
            let missing: Vec<_> = named.difference(&there).collect();
            assert!(named.len() >= fewest && missing.is_empty(), "{file}: {missing:?}");
        }
    }

    #[test]
    fn what_an_agent_has_left_is_absent_without_a_budget_and_while_it_is_away() {
        let mesh = Mesh::parse("x", "[site.a]\ntarget = \"a\"\n[site.b]\n").unwrap();
        let metrics = FleetMetrics::new(&mesh);
        metrics.turn(1, 2);
        let record = goodput_store::read_record(RECORD).unwrap();
        let agent = |left| Announcement {
            format: FORMAT,
            site: "a".into(),
            session: "s".into(),
            host: record.ends.near.value().unwrap().host.clone(),
            since: record.started.clone(),
            trusts: None,
            heeds: None,
            limits: Limits {
                max_duration_s: 60.0,
                max_rate: None,
                left,
                accepts: None,
                logs_in: Vec::new(),
            },
        };
        let entry = |left| {
            let value = serde_json::to_vec(&agent(left)).unwrap();
            Some(Some(Entry { value, revision: 1, written_s: 0.0 }))
        };
        let has = |line: &str| metrics.text().lines().any(|other| other == line);
        metrics.see_agent("a", entry(Some(Bytes(7))));
        assert!(has("goodput_fleet_budget_left_bytes{site=\"a\"} 7.0"), "{}", metrics.text());
        assert!(has("goodput_fleet_turn_tests 2") && has("goodput_fleet_turn_tests_done 1"));
        metrics.see_agent("a", entry(None));
        assert!(has("goodput_fleet_agent_up{site=\"a\"} 1.0"));
        assert!(!metrics.text().contains("budget_left_bytes{"), "{}", metrics.text());
        metrics.see_agent("a", Some(None));
        assert!(has("goodput_fleet_agent_up{site=\"a\"} 0.0"));
        metrics.see_agent("a", None);
        assert!(!metrics.text().contains("agent_up{"), "{}", metrics.text());
    }
}
