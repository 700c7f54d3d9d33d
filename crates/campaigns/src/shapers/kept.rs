//! What is kept of a test, and how the estimators of this tree judge it again.

use std::path::Path;

use anyhow::{Context, Result};
use goodput_shaping::Train;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::draw::Drawn;
use super::judged::Judged;
use super::report::{Outcome, summary, words};
use crate::kept;

/// One line.
#[derive(Serialize, Deserialize)]
pub struct Kept {
    /// What was drawn.
    pub drawn: Drawn,
    /// Why there is no record, if there is none.
    failed: Option<String>,
    /// The test in the record.
    shaping: Value,
    /// How long TCP was measured, seconds.
    seconds: Value,
    /// When the datagrams of the train were sent and came.
    train: Option<Value>,
    /// Whether the computed bucket gives the rate.
    enough: Option<bool>,
}

impl Kept {
    /// What to keep of a record.
    pub fn of(drawn: Drawn, record: &Value, train: Option<Value>, enough: Option<bool>) -> Self {
        let failed = record["failed"].as_str().map(Into::into);
        let seconds = record["plan"]["length"]["seconds"].clone();
        Self { drawn, failed, shaping: record["shaping"].clone(), seconds, train, enough }
    }

    /// As much of the record as is judged.
    pub fn record(&self) -> Value {
        let length = json!({ "length": { "seconds": self.seconds } });
        json!({ "failed": self.failed, "shaping": self.shaping, "plan": length })
    }

    /// What it shows, by a record.
    pub fn outcome(&self, record: &Value) -> Outcome {
        let judged = Judged::of(&self.drawn, record);
        Outcome { planted: self.drawn.planted(), judged, enough: self.enough }
    }

    /// The same, with what the train shows to this tree.
    fn again(&self) -> Result<Value> {
        let mut record = self.record();
        if let Some(train) = &self.train {
            let train = Train::deserialize(train).context("the times of a train can't be read")?;
            // What a second flow showed is not kept.
            let shared = record.pointer("/shaping/train/queue/between_flows").cloned();
            let mut seen = match goodput_shaping::shaping(&train) {
                Ok(seen) => serde_json::to_value(seen).context("an estimate has no JSON")?,
                Err(why) => json!({ "missing": why.to_string() }),
            };
            let now = seen.pointer_mut("/queue/between_flows");
            if let (Some(now), Some(shared)) = (now, shared) {
                *now = shared;
            }
            record["shaping"]["train"] = seen;
        }
        Ok(record)
    }
}

/// Judges every line of a file again.
pub fn again(file: &Path) -> Result<()> {
    let mut all = Vec::new();
    for kept in kept::read::<Kept>(file)? {
        let record = kept.again()?;
        let outcome = kept.outcome(&record);
        println!("{}", words(&kept.drawn, &record, &outcome));
        all.push(outcome);
    }
    print!("{}", summary(&all));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::planted::Kernel;
    use super::*;

    #[test]
    fn what_is_kept_is_judged_again() {
        let drawn = Drawn::of(Kernel::Own, 1, 1);
        let arrival = |n: u64| json!([n, n * 30_280, n * 121_120]);
        let times: Vec<Value> = (0..200).map(arrival).collect();
        let record = json!({ "shaping": { "train": { "kind": "none" } },
            "plan": { "length": { "seconds": 4.0 } } });
        let kept = Kept::of(drawn.clone(), &record, None, Some(true));
        let line = serde_json::to_string(&kept).unwrap();
        let read: Kept = serde_json::from_str(&line).unwrap();
        assert_eq!((&read.drawn, read.enough), (&drawn, Some(true)));
        assert_eq!(read.again().unwrap()["shaping"], record["shaping"], "no times were kept");
        let bad = Kept::of(drawn, &record, Some(json!({ "arrivals": times })), None);
        assert!(bad.again().unwrap_err().to_string().contains("can't be read"));
    }
}
