//! What the coordinator knows of its fleet, for Prometheus. Names and units follow its conventions, as those of a watch do.
//!
//! What is unknown is absent: a pair without a result has no goodput, rather than one of 0.
//!
//! ```text
//! outcome ──▶ pairs: the newest of each, sites, which pairs are shown ──▶ series ──▶ text ◀── registry: agents, turn
//! ```

mod pairs;
mod series;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::{StreamExt, stream};
use goodput_bus::{Entry, Keys};
use goodput_fleet::{Announcement, Mesh, Task};
use goodput_model::Record;
use jiff::Timestamp;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use tokio::time::sleep;

use self::pairs::Pairs;
use crate::commands::fleet::places::BEAT;
use crate::commands::open_metrics::{Gauges, Label, gauges, set};

/// What all names begin with.
const PREFIX: &str = "goodput_fleet";

/// Agents that are looked at in the same moment: one after the other, a thousand far away would take minutes.
const AT_ONCE: usize = 64;

/// The metrics of a fleet; all clones share them.
#[derive(Clone)]
pub(in crate::commands::fleet) struct FleetMetrics {
    registry: Arc<Registry>,
    /// Those with an agent.
    sites: Arc<Vec<String>>,
    pairs: Arc<Mutex<Pairs>>,
    agent_up: Gauges,
    budget_left: Gauges,
    turn_tests: Gauge,
    turn_tests_done: Gauge,
}

impl FleetMetrics {
    /// No test was made yet.
    pub fn new(mesh: &Mesh) -> Self {
        let mut registry = Registry::with_prefix(PREFIX);
        let version = vec![("version", env!("CARGO_PKG_VERSION"))];
        registry.register("build", "Version of goodput", Info::new(version));
        let help = "What the budget of the site has left";
        let budget_left = gauges(&mut registry, "budget_left", help, "bytes");
        let (agent_up, turn_tests, turn_tests_done) = <(Gauges, Gauge, Gauge)>::default();
        registry.register("agent_up", "Whether the agent of the site runs", agent_up.clone());
        registry.register("turn_tests", "Tests of this turn of the mesh", turn_tests.clone());
        let done = "Tests of this turn that have an outcome";
        registry.register("turn_tests_done", done, turn_tests_done.clone());
        let with_agent = mesh.sites.iter().filter(|site| !site.is_foreign);
        let all = mesh.sites.iter().map(|site| site.name.clone()).collect();
        Self {
            sites: Arc::new(with_agent.map(|site| site.name.clone()).collect()),
            registry: Arc::new(registry),
            pairs: Arc::new(Mutex::new(Pairs::of(all))),
            agent_up,
            budget_left,
            turn_tests,
            turn_tests_done,
        }
    }

    /// Forgets all outcomes.
    pub fn begin_anew(&self) {
        let mut pairs = self.pairs();
        *pairs = pairs.none_tested();
    }

    /// Says how far the turn is.
    pub fn turn(&self, done: usize, all: usize) {
        self.turn_tests.set(i64::try_from(all).unwrap_or(i64::MAX));
        self.turn_tests_done.set(i64::try_from(done).unwrap_or(i64::MAX));
    }

    /// Takes the outcome of a test; without a record, there is none.
    pub fn see(&self, task: &Task, record: Option<&Record>) {
        let pair = [task.sender(), task.receiver()];
        self.pairs().see(pair, record, Timestamp::now());
    }

    fn pairs(&self) -> MutexGuard<'_, Pairs> {
        self.pairs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sees which agents run, and what they say of themselves. Never ends.
    pub async fn watch<T>(&self, agents: &Keys) -> T {
        loop {
            let sites = stream::iter(self.sites.iter());
            sites
                .for_each_concurrent(AT_ONCE, |site| async move {
                    let Ok(word) = goodput_fleet::word(site) else { return };
                    self.see_agent(site, agents.entry(&word).await.ok());
                })
                .await;
            sleep(BEAT).await;
        }
    }

    /// Takes what the bus says of the agent of a site; none: it does not answer.
    fn see_agent(&self, site: &str, known: Option<Option<Entry>>) {
        let labels = vec![("site", Label::of(site))];
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
        let _ = encode_registry(&mut text, &self.registry);
        // A copy, so that no test waits until the text is made.
        let pairs = self.pairs().clone();
        series::write(&pairs, &mut text);
        let _ = encode_eof(&mut text);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_fleet::{FORMAT, Limits};
    use goodput_model::{Bytes, EndName, Place, Verdict};
    use std::collections::BTreeSet;
    use std::path::Path;

    const RECORD: &str = include_str!("../../../../report/example/record.json");

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
        let verdict = "verdict{sender=\"a\",receiver=\"b\",limit=\"shaper-burst\",end=\"sender\"}";
        assert!(text.contains(verdict), "{text}");
        let other = Verdict { limit: "policer".into(), ..record.verdict.clone() };
        metrics.see(&task, Some(&Record { verdict: other, ..record }));
        let text = metrics.text();
        assert!(text.contains("limit=\"policer\"") && !text.contains("shaper-burst"), "{text}");
        metrics.see(&task, None);
        let again = FleetMetrics::new(&mesh);
        again.see(&task, None);
        again.begin_anew();
        assert!(!again.text().contains("goodput_fleet_up{"), "{}", again.text());
        let text = metrics.text();
        assert!(!text.contains("limit=") && !text.contains("lost_ratio{"), "{text}");
        assert!(text.contains("goodput_fleet_up{sender=\"a\",receiver=\"b\"} 0.0"), "{text}");
        assert!(!text.contains("bytes_per_second{"), "{text}");
    }

    #[test]
    fn a_part_of_a_test_has_no_goodput_and_is_counted_as_a_part() {
        let mesh = Mesh::parse("x", "[site.a]\ntarget = \"a\"\n[site.b]\n").unwrap();
        let task = goodput_fleet::task_between(&mesh, "t", "a", "b").unwrap();
        let metrics = FleetMetrics::new(&mesh);
        let record = goodput_store::read_record(RECORD).unwrap();
        metrics.see(&task, Some(&record));
        let incomplete = Some("the budget of a was used up".into());
        metrics.see(&task, Some(&Record { incomplete, ..record }));
        let text = metrics.text();
        for line in [
            "goodput_fleet_up{sender=\"a\",receiver=\"b\"} 1.0",
            "goodput_fleet_tests_total{sender=\"a\",receiver=\"b\",outcome=\"record\"} 1",
            "goodput_fleet_tests_total{sender=\"a\",receiver=\"b\",outcome=\"part\"} 1",
            "goodput_fleet_outcomes_total{outcome=\"part\"} 1",
            "goodput_fleet_pairs_without_record 0",
        ] {
            assert!(text.lines().any(|other| other == line), "{line}\n{text}");
        }
        assert!(!text.contains("limit=") && !text.contains("bytes_per_second{"), "{text}");
    }

    /// `a` sends in both tests; in the second one, `b` calls.
    #[test]
    fn the_end_of_a_limit_is_the_sender_or_the_receiver_whoever_calls() {
        let mesh = Mesh::parse("x", "[site.a]\ntarget = \"a\"\n[site.b]\n").unwrap();
        let task = goodput_fleet::task_between(&mesh, "t", "a", "b").unwrap();
        let record = goodput_store::read_record(RECORD).unwrap();
        let ends = [(EndName::Near, Place::Near), (EndName::Far, Place::Far)];
        for (sender, end) in ends {
            let mut record = record.clone();
            (record.verdict.sender, record.verdict.end) = (sender, end);
            let metrics = FleetMetrics::new(&mesh);
            metrics.see(&task, Some(&record));
            let text = metrics.text();
            assert!(text.contains("limit=\"shaper-burst\",end=\"sender\"} 1"), "{text}");
            assert!(!text.contains("end=\"near\"") && !text.contains("end=\"far\""), "{text}");
        }
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
            set(gauges, &vec![("site", Label::of("a"))], Some(1.0));
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
