//! What the coordinator knows of its fleet, for Prometheus. Names and units follow its conventions, as those of a watch do.
//!
//! What is unknown is absent: a pair without a result has no goodput, rather than one of 0.

use std::sync::Arc;

use goodput_bus::Keys;
use goodput_fleet::{Mesh, Task};
use goodput_model::Record;
use jiff::Timestamp;
use prometheus_client::encoding::text::encode;
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
    up: Gauges,
    last_result: Gauges,
    tests: Counters,
    agent_up: Gauges,
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
        let (up, tests, agent_up) = (Gauges::default(), Counters::default(), Gauges::default());
        registry.register("up", "Whether the last test of the pair had a record", up.clone());
        registry.register("tests", "Tests by outcome", tests.clone());
        registry.register("agent_up", "Whether the agent of the site runs", agent_up.clone());
        let with_agent = mesh.sites.iter().filter(|site| !site.is_foreign);
        let sites = Arc::new(with_agent.map(|site| site.name.clone()).collect());
        let registry = Arc::new(registry);
        Self { registry, sites, goodput, smallest_round_trip, up, last_result, tests, agent_up }
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
        let Some(record) = record else {
            self.goodput.remove(&labels);
            self.smallest_round_trip.remove(&labels);
            return;
        };
        // The base unit of data is the byte (Prometheus, "Metric and label naming").
        let goodput = record.result.goodput_bits_per_s.0 / 8.0;
        self.goodput.get_or_create(&labels).set(goodput);
        set(&self.smallest_round_trip, &labels, smallest_round_trip_s(record));
        let began = record.started.parse::<Timestamp>().ok().map(|at| at.as_second() as f64);
        set(&self.last_result, &labels, began);
    }

    /// Sees which agents run. Never ends.
    pub async fn watch<T>(&self, agents: &Keys) -> T {
        loop {
            for site in self.sites.iter() {
                let Ok(word) = goodput_fleet::word(site) else { continue };
                let labels = vec![("site", Label(site.clone()))];
                let runs = agents.entry(&word).await.ok();
                let value = runs.map(|entry| f64::from(u8::from(entry.is_some())));
                set(&self.agent_up, &labels, value);
            }
            sleep(BEAT).await;
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

/// Of the end that sends, as the kernel has measured it.
fn smallest_round_trip_s(record: &Record) -> Option<f64> {
    Some(record.result.directions.first()?.min_rtt_us.value()? / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_has_its_last_result_and_without_one_it_has_no_goodput() {
        let text = "[site.a]\ntarget = \"a\"\n[site.b]\n";
        let mesh = Mesh::parse("x", text).unwrap();
        let task = goodput_fleet::task_between(&mesh, "t", "a", "b").unwrap();
        let json = include_str!("../../../report/example/record.json");
        let record = goodput_store::read_record(json).unwrap();
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
        metrics.see(&task, None);
        let text = metrics.text();
        assert!(text.contains("goodput_fleet_up{sender=\"a\",receiver=\"b\"} 0.0"), "{text}");
        assert!(!text.contains("bytes_per_second{"), "{text}");
    }
}
