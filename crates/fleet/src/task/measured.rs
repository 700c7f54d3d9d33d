//! Whether a record is that of a task: whoever may publish outcomes of one site can put any record there, also one of
//! another pair, or one that names other sites.

use goodput_model::{Kind, Record, Sites};

use super::message::{End, Outcome};
use super::single::Task;

impl Outcome {
    /// How the task has ended.
    ///
    /// # Errors
    /// It is the outcome of another task, or a record that another site than the near one has made.
    pub fn of(self, task: &Task) -> Result<End, String> {
        let Self { task: id, by, end, .. } = self;
        if id != task.id {
            return Err(format!("the outcome of this task is one of another task ({id:?})"));
        }
        if matches!(end, End::Record(_)) && by != task.near {
            return Err(format!("the record of this task is by {by:?}, and not by {}", task.near));
        }
        Ok(end)
    }
}

impl Task {
    /// The record as the one of this task, with its sites.
    ///
    /// # Errors
    /// What it says of its test is not what the task asked for.
    pub fn record(&self, record: Record) -> Result<Record, String> {
        let own = Sites { near: self.near.clone(), far: self.far.clone() };
        match self.differs(&record, &own) {
            Some(what) => Err(format!("the record of this task is one of another test: {what}")),
            None => Ok(Record { sites: Some(own), ..record }),
        }
    }

    fn differs(&self, record: &Record, own: &Sites) -> Option<String> {
        if record.kind != Kind::Test {
            return Some("it is of no single test".into());
        }
        if let Some(sites) = record.sites.as_ref().filter(|sites| *sites != own) {
            let Sites { near, far } = sites;
            return Some(format!("{near:?} has tested with {far:?}"));
        }
        if record.target != self.target {
            let (said, asked) = (&record.target, &self.target);
            return Some(format!("its target is {said:?}, and not {asked:?}"));
        }
        let senders = self.direction.senders();
        let sent = || record.result.directions.iter().all(|one| senders.contains(&one.sender));
        let is_turned = record.plan.direction != self.direction || !sent();
        is_turned.then(|| format!("not {} alone has sent", self.sender()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::single::tests::task;
    use super::*;
    use goodput_model::{Direction, EndName};

    fn record() -> Record {
        let json = include_str!("../../../goodput/src/report/example/record.json");
        Record::from_json(json).unwrap()
    }

    fn asked() -> Task {
        Task { target: record().target, ..task() }
    }

    #[test]
    fn a_record_of_a_task_has_the_sites_of_the_task() {
        let own = Sites { near: "a".into(), far: "b".into() };
        for sites in [None, Some(own.clone())] {
            let taken = asked().record(Record { sites, ..record() }).unwrap();
            assert_eq!(taken, Record { sites: Some(own.clone()), ..record() });
        }
    }

    #[test]
    fn a_record_that_says_something_else_than_its_task_is_refused() {
        let changed = |change: fn(&mut Record)| {
            let mut record = record();
            change(&mut record);
            asked().record(record).unwrap_err()
        };
        type Case = (fn(&mut Record), &'static str);
        let cases: [Case; 5] = [
            (
                |record| record.sites = Some(Sites { near: "b".into(), far: "c".into() }),
                "\"b\" has tested with \"c\"",
            ),
            (|record| record.target = "c".into(), "its target is \"c\", and not \"nas\""),
            (|record| record.plan.direction = Direction::Reverse, "not a alone has sent"),
            (|record| record.result.directions[0].sender = EndName::Far, "not a alone has sent"),
            (|record| record.kind = Kind::Compare, "no single test"),
        ];
        for (change, words) in cases {
            let why = changed(change);
            assert!(why.contains(words), "{why}");
        }
    }

    #[test]
    fn an_outcome_is_that_of_its_task_and_a_record_is_by_the_near_site() {
        let reason = || End::Reason("busy".into());
        assert_eq!(Outcome::new("t-1", "the coordinator", reason()).of(&task()), Ok(reason()));
        let why = Outcome::new("t-2", "a", reason()).of(&task()).unwrap_err();
        assert!(why.contains("another task (\"t-2\")"), "{why}");
        let record = || End::Record(serde_json::json!({}));
        assert_eq!(Outcome::new("t-1", "a", record()).of(&task()), Ok(record()));
        let why = Outcome::new("t-1", "c", record()).of(&task()).unwrap_err();
        assert!(why.contains("by \"c\", and not by a"), "{why}");
    }
}
