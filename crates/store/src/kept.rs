//! What is kept of a record: its JSON, and beside it what a list shows.

use goodput_model::answer::listed_goodput;
use goodput_model::{BitRate, Record, answer};
use serde_json::Value;

use crate::error::{RecordError, StoreError};
use crate::figures::Figures;
use crate::outline::outline;

/// The columns of a record.
#[derive(Debug)]
pub(crate) struct Kept<'a> {
    pub record: &'a Record,
    /// The record itself.
    pub json: String,
    /// The same without its detail; none: it is no single test.
    pub outline: Option<String>,
    pub kind: String,
    pub transport: String,
    pub direction: String,
    pub goodput: BitRate,
    pub answer: Option<String>,
    /// The site of a fleet, or the host; none if neither is known.
    pub measured_by: Option<&'a str>,
    pub figures: Figures,
}

impl<'a> Kept<'a> {
    /// # Errors
    /// It could not be read back, which is a bug.
    pub fn of(record: &'a Record) -> Result<Self, StoreError> {
        let unkeepable = |source| StoreError::Unkeepable { source };
        let json = record.to_readable_json().map_err(RecordError::from).map_err(unkeepable)?;
        let outline = outline(record).map(|outline| outline.to_readable_json()).transpose();
        let outline = outline.map_err(RecordError::from).map_err(unkeepable)?;
        let kind = serde_json::to_value(record.kind).map_err(RecordError::from);
        let kind = text(kind.map_err(unkeepable)?);
        let of_plan = |value: serde_json::Result<Value>| value.map(text).unwrap_or_default();
        let transport = of_plan(serde_json::to_value(record.plan.transport));
        let direction = of_plan(serde_json::to_value(record.plan.direction));
        let (goodput, answer) = (listed_goodput(record), answer(record));
        let (figures, measured_by) = (Figures::of(record), measured_by(record));
        Ok(Self {
            record,
            json,
            outline,
            kind,
            transport,
            direction,
            goodput,
            answer,
            measured_by,
            figures,
        })
    }
}

/// Who measured: in a database that many share, and among hosts that are called alike, the name of the site says more.
fn measured_by(record: &Record) -> Option<&str> {
    let site = record.sites.as_ref().map(|sites| sites.near.as_str());
    let host = || record.ends.near.value().map(|end| end.host.name.as_str());
    site.or_else(host).filter(|name| !name.is_empty())
}

fn text(value: Value) -> String {
    value.as_str().map(str::to_owned).unwrap_or_default()
}

/// A record that was added unless it was there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Added {
    /// Its number.
    pub id: i64,
    /// Whether it was not there.
    pub is_new: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read_record;

    #[test]
    fn the_site_that_measured_says_more_than_its_host() {
        let mut record = read_record(include_str!("../tests/golden/v1/test.json")).unwrap();
        let host = record.ends.near.value().unwrap().host.name.clone();
        assert_eq!(Kept::of(&record).unwrap().measured_by, Some(host.as_str()));
        let [near, far] = ["berlin", "paris"].map(String::from);
        record.sites = Some(goodput_model::Sites { near, far });
        assert_eq!(Kept::of(&record).unwrap().measured_by, Some("berlin"));
        (record.sites, record.ends.near) = (None, goodput_model::Known::missing("x"));
        assert_eq!(Kept::of(&record).unwrap().measured_by, None);
    }

    #[test]
    fn a_comparison_is_listed_by_its_baseline_and_not_by_the_first_run() {
        let mut record = read_record(include_str!("../tests/golden/v1/compare.json")).unwrap();
        let base = record.comparison.as_ref().unwrap().arms[0].goodput_bits_per_s.clone();
        record.result.goodput_bits_per_s = BitRate(1.0);
        assert_eq!(Kept::of(&record).unwrap().goodput, *base.value().unwrap());
    }
}
