//! What a host knew at one instant, as named facts, and how facts changed between two instants.
//!
//! Names are `area.name`, with the unit as a suffix if there is one: `link.rx_dropped`, `qdisc.rate_bits_per_s`,
//! `sysctl.net.ipv4.tcp_rmem`. The areas are the ids of the kernel sources. Facts of `link`, `qdisc`, `offload` and
//! `route` are about the device and route that the measured path uses.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize};

use crate::known::Missing;

/// Why a fact is missing that a host has not set, unlike one that could not be read.
pub const NOT_SET: &str = "not set on the route";

/// One fact about a host.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Fact {
    /// A counter or a whole-numbered gauge.
    Count(u64),
    /// A measured quantity.
    Real(f64),
    /// A name, a mode, or a kernel setting as the kernel prints it.
    Text(String),
}

/// The facts of one host at one instant, and the reasons for missing ones.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Snapshot {
    /// Facts that were read, by name.
    pub facts: BTreeMap<String, Fact>,
    /// Why facts are missing, by area or by full name.
    pub missing: BTreeMap<String, String>,
}

impl Snapshot {
    /// Adds one fact.
    pub fn put(&mut self, name: impl Into<String>, fact: impl Into<Fact>) {
        self.facts.insert(name.into(), fact.into());
    }

    /// Records why an area or a single fact is missing.
    pub fn lacks(&mut self, name: impl Into<String>, why: impl Into<String>) {
        self.missing.insert(name.into(), why.into());
    }

    /// A fact by name, or why it is missing.
    pub fn get(&self, name: &str) -> Result<&Fact, Missing> {
        self.facts.get(name).ok_or_else(|| self.why_missing(name))
    }

    /// A whole number by name, or why it is missing.
    pub fn count(&self, name: &str) -> Result<u64, Missing> {
        match self.get(name)? {
            Fact::Count(count) => Ok(*count),
            other => Err(Missing::because(format!("{name} is {other:?}, not a count"))),
        }
    }

    /// Any number by name, or why it is missing.
    pub fn number(&self, name: &str) -> Result<f64, Missing> {
        match self.get(name)? {
            Fact::Count(count) => Ok(*count as f64),
            Fact::Real(real) => Ok(*real),
            Fact::Text(text) => Err(Missing::because(format!("{name} is {text:?}, not a number"))),
        }
    }

    /// A text by name, or why it is missing.
    pub fn text(&self, name: &str) -> Result<&str, Missing> {
        match self.get(name)? {
            Fact::Text(text) => Ok(text),
            other => Err(Missing::because(format!("{name} is {other:?}, not a text"))),
        }
    }

    /// By how much the counter `name` grew from `self` to `later`. A counter that ran backwards was reset in
    /// between; the growth is then missing.
    pub fn grown(&self, later: &Self, name: &str) -> Result<u64, Missing> {
        let (from, to) = (self.count(name)?, later.count(name)?);
        to.checked_sub(from)
            .ok_or_else(|| Missing::because(format!("{name} was reset during the measurement")))
    }

    fn why_missing(&self, name: &str) -> Missing {
        let area = name.split('.').next().unwrap_or(name);
        let why = self.missing.get(name).or_else(|| self.missing.get(area));
        Missing::because(match why {
            Some(why) => format!("{name}: {why}"),
            None => format!("this host does not report {name}"),
        })
    }
}

impl<'de> Deserialize<'de> for Fact {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FactVisitor)
    }
}

/// Reads one number or text, and refuses anything that would have to be held in memory first.
struct FactVisitor;

impl Visitor<'_> for FactVisitor {
    type Value = Fact;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a number or a text")
    }

    fn visit_u64<E>(self, count: u64) -> Result<Fact, E> {
        Ok(Fact::Count(count))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Fact, E> {
        Ok(u64::try_from(number).map_or(Fact::Real(number as f64), Fact::Count))
    }

    fn visit_f64<E>(self, real: f64) -> Result<Fact, E> {
        Ok(Fact::Real(real))
    }

    fn visit_str<E>(self, text: &str) -> Result<Fact, E> {
        Ok(Fact::Text(text.into()))
    }

    fn visit_string<E>(self, text: String) -> Result<Fact, E> {
        Ok(Fact::Text(text))
    }
}

impl From<u64> for Fact {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<f64> for Fact {
    fn from(real: f64) -> Self {
        Self::Real(real)
    }
}

impl From<&str> for Fact {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Fact {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reset_counter_is_missing_rather_than_huge() {
        let (mut before, mut after) = (Snapshot::default(), Snapshot::default());
        before.put("link.rx_dropped", 9u64);
        after.put("link.rx_dropped", 3u64);
        let why = before.grown(&after, "link.rx_dropped").unwrap_err();
        assert_eq!(why.to_string(), "link.rx_dropped was reset during the measurement");
    }

    #[test]
    fn a_missing_area_explains_each_of_its_facts() {
        let mut snapshot = Snapshot::default();
        snapshot.lacks("qdisc", "not permitted");
        let why = snapshot.count("qdisc.drops").unwrap_err();
        assert_eq!(why.to_string(), "qdisc.drops: not permitted");
    }
}
