//! `packaging/`: the alert rules and the dashboard, with Debian's Prometheus and the metrics of a real watch.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use goodput_testing::{in_namespace, skip, wait_for};
use serde_json::Value;

use crate::common::{Home, Server, stderr, stdout};
use crate::watching::{SMALL, Watch, once, plant_a_change};

/// In a network of its own, so that nobody else's Prometheus has its port.
const PROMETHEUS: &str = "127.0.0.1:9090";
const SERVER: &str = "127.0.0.1:7489";
const WATCH: &str = "127.0.0.1:7490";

fn packaging(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(name)
}

/// Whether Debian's Prometheus is here.
pub fn has_prometheus() -> bool {
    let there = Command::new("promtool").arg("--version").output().is_ok();
    if !there {
        skip("promtool (package prometheus)");
    }
    there
}

/// Asks it, with this as its input. It must have no complaint.
pub fn promtool(arguments: &[&str], input: &str) {
    let mut child = Command::new("promtool")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool can be started");
    let mut stdin = child.stdin.take().expect("stdin is piped");
    stdin.write_all(input.as_bytes()).expect("promtool reads");
    drop(stdin);
    let output = child.wait_with_output().expect("promtool ends");
    let said = format!("{}{}", stdout(&output), stderr(&output));
    // It also has complaints that are no failure.
    assert!(
        output.status.success() && stderr(&output).is_empty(),
        "{arguments:?}: {said}\n{input}"
    );
}

#[test]
fn the_alert_rules_are_valid_and_fire_when_they_should() {
    if !has_prometheus() {
        return;
    }
    let path = |name: &str| packaging(name).to_str().expect("it has a plain name").to_owned();
    promtool(&["check", "rules", &path("prometheus/goodput.rules.yml")], "");
    promtool(&["test", "rules", &path("prometheus/goodput.rules.test.yml")], "");
}

/// A running Prometheus; ended with the test.
struct Prometheus(Child);

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Prometheus {
    /// Scrapes the server and the watch, and evaluates the rules.
    fn start(home: &Home) -> Self {
        let rules = packaging("prometheus/goodput.rules.yml");
        let rules = rules.canonicalize().expect("the rules are there");
        let config = format!(
            "global: {{scrape_interval: 250ms, scrape_timeout: 250ms, evaluation_interval: 250ms}}\n\
             rule_files: [{rules:?}]\n\
             scrape_configs:\n  - job_name: goodput\n    static_configs: [{{targets: [{SERVER:?}, {WATCH:?}]}}]\n"
        );
        let config = home.file("prometheus.yml", &config);
        promtool(&["check", "config", config.to_str().expect("it has a plain name")], "");
        let log = std::fs::File::create(home.path().join("prometheus.log"));
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", home.path().join("tsdb").display()))
            .arg(format!("--web.listen-address={PROMETHEUS}"))
            .stdin(Stdio::null())
            .stderr(log.expect("the home is writable"))
            .spawn();
        Self(child.expect("prometheus can be started"))
    }

    /// What the query gives now; none if Prometheus does not answer yet.
    fn ask(query: &str) -> Option<Vec<Value>> {
        let url = format!("http://{PROMETHEUS}/api/v1/query");
        let query = format!("query={query}");
        let output = Command::new("curl")
            .args(["--silent", "--noproxy", "*", "--get", "--data-urlencode", &query, &url])
            .output();
        let answer = stdout(&output.expect("curl can be started"));
        let answer: Value = serde_json::from_str(&answer).ok()?;
        assert_eq!(answer["status"], "success", "{query}: {answer}");
        Some(answer["data"]["result"].as_array().expect("a list of results").clone())
    }

    /// Waits until the query gives something.
    fn wait_for(query: &str) -> Vec<Value> {
        let mut found = Vec::new();
        wait_for(query, || {
            found = Self::ask(query).unwrap_or_default();
            !found.is_empty()
        });
        found
    }
}

/// The metrics there, in the format that promtool reads.
fn metrics(address: &str) -> String {
    let url = format!("http://{address}/metrics");
    let output = Command::new("curl").args(["--silent", "--fail", "--noproxy", "*", &url]).output();
    stdout(&output.expect("curl can be started"))
}

/// The names of goodput's metrics in a text.
fn names(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|word| word.starts_with("goodput_")).map(Into::into).collect()
}

/// Every query of the dashboard, with what Grafana puts into it.
fn queries_of_the_dashboard() -> Vec<String> {
    fn collect(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                found.extend(fields.get("expr").and_then(Value::as_str).map(Into::into));
                fields.values().for_each(|value| collect(value, found));
            }
            Value::Array(values) => values.iter().for_each(|value| collect(value, found)),
            _ => {}
        }
    }
    let text = std::fs::read_to_string(packaging("grafana/goodput.json")).expect("it is there");
    let mut found = Vec::new();
    collect(&serde_json::from_str(&text).expect("the dashboard is JSON"), &mut found);
    found.iter().map(|q| q.replace("$target", ".*").replace("$__rate_interval", "1m")).collect()
}

/// The result of the query, a number, as bits per second of an event.
fn number(results: &[Value]) -> f64 {
    let value = results[0]["value"][1].as_str().expect("a sample is text");
    value.parse().expect("a sample is a number")
}

#[test]
fn prometheus_reads_a_watch_and_a_server_and_every_panel_has_data() {
    if !has_prometheus() {
        return;
    }
    in_namespace(|| {
        let up = Command::new("ip").args(["link", "set", "lo", "up"]).status();
        assert!(up.is_ok_and(|status| status.success()));
        let (far, home) = (Home::new(), Home::new());
        let server = Server::start(&far, &["--metrics", SERVER]);
        assert!(once(&home, &[&server.address], &[]).status.success());
        plant_a_change(&home);
        let prometheus = Prometheus::start(&home);
        let options = ["--every", "1s", "--metrics", WATCH];
        let mut watch =
            Watch::start(&home, &[&[&server.address[..]], &SMALL[..], &options].concat());
        let mut rates = Vec::new();
        while watch.event_with(&mut rates)["event"] != "changed" {}

        let scraped = [SERVER, WATCH].map(metrics);
        scraped.iter().for_each(|text| promtool(&["check", "metrics"], text));
        let exported = stdout(&home.run(&["history", "export", "--openmetrics"]));
        promtool(&["check", "metrics"], &exported);
        let there = names(&scraped.concat());
        for query in queries_of_the_dashboard().iter().filter(|query| !query.contains("> 0")) {
            // Whether a verdict has a probability depends on what limits this machine.
            match names(query).is_subset(&there) || query.contains("__name__") {
                true => drop(Prometheus::wait_for(query)),
                false => drop(Prometheus::ask(query).expect("Prometheus answers by now")),
            }
        }
        let goodput = number(&Prometheus::wait_for("goodput_watch_goodput_bytes_per_second * 8"));
        // The event of this result may still be on its way.
        let is_it = |rate: &f64| (goodput / rate - 1.0).abs() < 1e-9;
        while !rates.iter().any(is_it) {
            assert!(rates.len() < 1000, "{goodput} is none of {rates:?}");
            watch.event_with(&mut rates);
        }
        let change = number(&Prometheus::wait_for("goodput_watch_last_change_ratio"));
        assert!(change < 0.01, "{change}");
        drop(prometheus);
        assert_eq!(watch.end(), Some(0));
    });
}
