//! The test of a task, which ends when it has cost what both sites may spend.

use std::time::Duration;

use anyhow::{Error, Result};
use goodput_engine::{Credentials, EngineError, Interrupt, Listener, Target};
use goodput_fleet::Task;
use goodput_model::{Bytes, Length, Plan, Record, Sites};

use crate::commands::measured;
use crate::commands::metered::{Ending, Limits, Metered as Test, Towards};

/// What a test may cost.
pub(super) struct Most {
    pub bytes: Bytes,
    /// The site whose budget has no more.
    pub site: String,
}

/// The test of a task, and what it has cost the line so far.
pub(super) struct Metered<'a> {
    task: &'a Task,
    most: Option<Most>,
    test: Test,
}

impl<'a> Metered<'a> {
    /// A test that may cost `most`; absent: anything.
    pub fn new(task: &'a Task, most: Option<Most>) -> Self {
        let plan = Plan {
            direction: task.direction,
            length: Length::Seconds(task.length_s),
            rate_bits_per_s: task.rate,
            rate_limit_of: task.rate_limit_of,
            ..Plan::standard()
        };
        Self { task, most, test: Test::new(plan) }
    }

    /// What it has cost.
    pub fn bytes(&self) -> Bytes {
        self.test.bytes()
    }

    /// Measures. An interrupt ends it early with what was measured so far.
    pub async fn run(
        &self,
        target: &Target,
        credentials: &Credentials,
        interrupt: &Interrupt,
        listener: &mut Listener<'_>,
    ) -> Result<Record> {
        let started = measured::now();
        let towards = Towards { target, credentials, text: &self.task.target, started: &started };
        let limits = Limits {
            bytes: self.most.as_ref().map(|most| (most.bytes, Ending::Budget)),
            time: None,
            report_patience: Duration::ZERO,
        };
        let measured = self.test.run(towards, limits, interrupt, listener).await;
        let Task { near, far, .. } = self.task.clone();
        let of_sites = |record| Record { sites: Some(Sites { near, far }), ..record };
        said(measured.map(of_sites), self.early(self.test.ended()))
    }

    /// Why the test is only a part, if what ended it was not its length.
    fn early(&self, ended: Option<Ending>) -> Option<String> {
        match (ended?, &self.most) {
            // It ends before the sample that would exceed the budget, so a shorter test may still fit.
            (Ending::Budget, Some(Most { site, bytes })) => Some(format!(
                "it would have cost more than the {bytes} that the budget of {site} had left (--budget of its own agent)"
            )),
            (Ending::User, _) => Some(format!("the agent {} was ended", self.task.near)),
            _ => None,
        }
    }
}

/// What came of a test that ended `early` for this reason. Whatever else is missing then, such as the report of a server that was
/// not asked to hurry, follows from that.
fn said(measured: Result<Record, EngineError>, early: Option<String>) -> Result<Record> {
    match (measured, early) {
        (Ok(record), Some(why)) => Ok(Record { incomplete: Some(why), ..record }),
        (Err(cause), Some(why)) => Err(Error::from(cause).context(why)),
        (measured, None) => Ok(measured?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_store::read_record;

    fn task() -> Task {
        let text = "[site.a]\n[site.x]\nserver = \"iperf3://x\"\n";
        let mesh = goodput_fleet::Mesh::parse("x", text).unwrap();
        goodput_fleet::task_between(&mesh, "t", "a", "x").unwrap()
    }

    #[test]
    fn a_test_that_a_budget_ends_says_so_whatever_its_server_does_then() {
        let task = task();
        let most = |site: &str| Some(Most { bytes: Bytes(7_000_000), site: site.into() });
        let test = Metered::new(&task, most("a"));
        let early = test.early(Some(Ending::Budget));
        let of_budget = "it would have cost more than the 7 MB that the budget of a had left";
        assert!(early.as_ref().is_some_and(|why| why.starts_with(of_budget)), "{early:?}");
        assert_eq!(test.early(Some(Ending::Plan)), None, "what comes after its own end is nothing");
        assert_eq!(test.early(Some(Ending::User)).as_deref(), Some("the agent a was ended"));
        let json = include_str!("../../../report/example/record.json");
        let without_report = Record {
            incomplete: Some("iperf3://x: no report within 3 s of the end".into()),
            ..read_record(json).unwrap()
        };
        let record = said(Ok(without_report.clone()), early.clone()).unwrap();
        assert_eq!(record.incomplete, early);
        assert_eq!(said(Ok(without_report.clone()), None).unwrap(), without_report);
        let why = said(Err(EngineError::Interrupted), early).unwrap_err();
        assert!(why.to_string().starts_with(of_budget), "{why:#}");
    }
}
