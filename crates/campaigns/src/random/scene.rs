//! Writes a scenario.

use toml::{Table, Value};

use super::path::Path;

/// A scenario under construction.
#[derive(Debug)]
pub struct Scene {
    file: Table,
    link: Table,
    faults: Vec<Value>,
    client: Vec<Value>,
    /// Names of the links: that of the path, and one without properties.
    links: (&'static str, Option<&'static str>),
    reverse: bool,
}

impl Scene {
    /// A path with nothing wrong.
    pub fn healthy(name: &str, path: &Path) -> Self {
        let mut expect = Table::new();
        expect.insert("healthy".into(), true.into());
        let mut limits: Vec<Value> =
            ["none", "path-rate", "sender-cpu", "receiver-cpu"].map(Value::from).into();
        limits.extend(["queue-too-long", "shaper-rate"].map(Value::from));
        expect.insert("limit".into(), limits.into());
        Self::new(name, "A path with nothing wrong.", expect, path)
    }

    /// A path for a fault that one of `rules` names, at this end if that is judged.
    pub fn faulty(name: &str, title: &str, rules: &[&str], end: Option<&str>, path: &Path) -> Self {
        let mut expect = Table::new();
        let rules = rules.iter().map(|rule| Value::from(*rule)).collect::<Vec<_>>();
        expect.insert("limit".into(), rules.into());
        if let Some(end) = end {
            expect.insert("end".into(), end.into());
        }
        Self::new(name, title, expect, path)
    }

    fn new(name: &str, title: &str, expect: Table, path: &Path) -> Self {
        let text = |text: &str| Value::from(text);
        let file = [("name", text(name)), ("title", text(title)), ("expect", expect.into())];
        let mut scene = Self {
            file: file.into_iter().map(|(key, value)| (key.into(), value)).collect(),
            link: Table::new(),
            faults: Vec::new(),
            client: Vec::new(),
            links: ("path", None),
            reverse: path.reverse,
        };
        scene.load(path);
        scene
    }

    fn load(&mut self, path: &Path) {
        if let Some(rate) = path.rate {
            self.link("rate", &bits(rate));
        }
        if path.round_trip_s > 0.0 {
            self.link("delay", &micros(path.round_trip_s / 2.0));
        }
        self.client(&["--congestion", path.congestion, "--flows", &path.flows.to_string()]);
        if path.reverse {
            self.client(&["--reverse"]);
        }
        let mut run = Table::new();
        run.insert("ipv6".into(), path.ipv6.into());
        self.file.insert("run".into(), run.into());
    }

    /// A limit that what is planted may have as well.
    pub fn may_be(&mut self, rule: &str) {
        let limits = self.file.get_mut("expect").and_then(|expect| expect.get_mut("limit"));
        if let Some(limits) = limits.and_then(Value::as_array_mut) {
            limits.push(rule.into());
        }
    }

    /// A property of the link, in both directions.
    pub fn link(&mut self, property: &str, value: &str) {
        self.link.insert(property.into(), value.into());
    }

    /// A property of the link with a number, in both directions.
    pub fn link_number(&mut self, property: &str, value: f64) {
        self.link.insert(property.into(), value.into());
    }

    /// The rate in the direction of the acknowledgements.
    pub fn rate_of_acknowledgements(&mut self, rate: f64) {
        let there = self.link.remove("rate");
        let (to_far, to_near) = match self.reverse {
            true => (Some(bits(rate).into()), there),
            false => (there, Some(Value::from(bits(rate)))),
        };
        if let Some(rate) = to_far {
            self.link.insert("rate".into(), rate);
        }
        if let Some(rate) = to_near {
            let back: Table = [("rate".to_owned(), rate)].into_iter().collect();
            self.link.insert("back".into(), back.into());
        }
    }

    /// Puts a router between the hosts; the link is the one towards the router.
    pub fn route(&mut self) {
        self.links = ("near-router", Some("router-far"));
    }

    /// The same, and the link is the one behind the router: a cable without properties leads there.
    pub fn route_by_cable(&mut self) {
        self.links = ("router-far", Some("near-router"));
    }

    /// A fault of a kind, with its properties.
    pub fn fault<const N: usize>(&mut self, kind: &str, host: &str, more: [(&str, Value); N]) {
        let fixed = [("kind", kind.into()), ("host", host.into())];
        let table: Table =
            fixed.into_iter().chain(more).map(|(key, value)| (key.to_owned(), value)).collect();
        self.faults.push(table.into());
    }

    /// More arguments for the client.
    pub fn client(&mut self, arguments: &[&str]) {
        self.client.extend(arguments.iter().map(|argument| Value::from(*argument)));
    }

    /// The scenario as a file.
    pub fn into_toml(mut self) -> String {
        let (path, cable) = self.links;
        let cable = cable.map(|name| (name.to_owned(), Table::new().into()));
        let links: Table = [(path.to_owned(), self.link.into())].into_iter().chain(cable).collect();
        self.file.insert("link".into(), links.into());
        if !self.faults.is_empty() {
            self.file.insert("fault".into(), self.faults.into());
        }
        if let Some(run) = self.file.get_mut("run").and_then(Value::as_table_mut) {
            run.insert("client".into(), self.client.into());
        }
        self.file.to_string()
    }
}

/// A rate as scenarios spell it.
pub fn bits(rate: f64) -> String {
    format!("{rate:.0}bit")
}

/// A time as scenarios spell it.
pub fn micros(seconds: f64) -> String {
    format!("{:.0}us", seconds * 1e6)
}
