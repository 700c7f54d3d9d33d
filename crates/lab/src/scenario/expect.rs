//! What a scenario expects of the result.

use std::fmt;

use goodput_model::Place;
use goodput_model::units::BitRate;
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

use crate::amount;

/// The expected outcome; whatever is left out is not judged.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Expect {
    /// The rule that should be named as the limit, or one of several.
    #[serde(deserialize_with = "one_or_more")]
    pub limit: Vec<String>,
    /// Rules that should all be among the findings, one of them as the limit: for faults that limit at the same time.
    #[serde(deserialize_with = "one_or_more")]
    pub both: Vec<String>,
    /// Nothing is wrong: any finding outside `limit` is a false alarm.
    pub healthy: bool,
    /// A change of a setting of near or far removes the fault, so `goodput tune` should find it.
    pub fixable: bool,
    /// The end where this limit should be.
    pub end: Option<Place>,
    /// Rules that must not be among the findings.
    #[serde(deserialize_with = "one_or_more")]
    pub not: Vec<String>,
    /// Bounds of the goodput.
    pub goodput: Option<GoodputRange>,
}

/// Bounds of the goodput, either of which may be left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct GoodputRange {
    /// Not less than this.
    #[serde(deserialize_with = "amount::optional_rate")]
    pub min: Option<BitRate>,
    /// Not more than this.
    #[serde(deserialize_with = "amount::optional_rate")]
    pub max: Option<BitRate>,
}

impl Expect {
    pub(super) fn problem(&self) -> Option<String> {
        if !self.both.is_empty() && !self.limit.is_empty() {
            return Some("expect has limit and both: choose one".into());
        }
        if self.both.len() == 1 {
            return Some("expect.both needs at least two rules; for one, use limit".into());
        }
        if self.healthy && self.limit.is_empty() {
            return Some("expect.healthy needs limit: what may be named, like \"none\"".into());
        }
        let range = self.goodput?;
        let (min, max) = (range.min?, range.max?);
        (min > max).then(|| format!("expect.goodput: min {min} is more than max {max}"))
    }
}

fn one_or_more<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<String>, D::Error> {
    input.deserialize_any(Names)
}

struct Names;

impl<'de> Visitor<'de> for Names {
    type Value = Vec<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the id of a rule, or a list of them")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<Self::Value, E> {
        Ok(vec![name.into()])
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut names = Vec::new();
        while let Some(name) = list.next_element()? {
            names.push(name);
        }
        Ok(names)
    }
}
