//! The newest results of a server, for its metrics: what this end saw of them. A result is worked out when someone reads it, so
//! that clients who measure often cost no more than those who measure now and then.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use goodput_engine::conclude_at_least;
use goodput_engine::measurement::Measurement;
use goodput_engine::serve::{Served, Watcher, What};
use goodput_model::{BitRate, Direction, EndName, Place, Record, Verdict};
use goodput_store::Figures;
use goodput_watch::Limit;
use jiff::Timestamp;

/// One direction of a measurement, as far as this end knows it.
#[derive(Debug, Clone, PartialEq)]
pub struct LastResult {
    /// The end that sent; the near end is this server.
    pub sender: EndName,
    /// When the measurement began.
    pub began: Timestamp,
    /// Goodput, unless only the client knows it.
    pub goodput: Option<BitRate>,
    /// Its numbers.
    pub figures: Figures,
    /// The limit, where it is, and its probability if it was computed; absent if this end can't say what took the time.
    pub verdict: Option<(String, Place, Option<f64>)>,
}

/// A measurement that nobody has read yet.
struct Waiting {
    began: Timestamp,
    measurement: Box<Measurement>,
}

/// What clients measured last. All clones share it.
#[derive(Clone, Default)]
pub struct LastResults {
    newest: Arc<Mutex<Newest>>,
    /// Held while results are worked out: clients do not wait for this.
    reading: Arc<Mutex<()>>,
}

/// At most one measurement of each direction is kept, however many there are.
#[derive(Default)]
struct Newest {
    /// When the measurements that go on began.
    began: HashMap<u64, Timestamp>,
    /// In the order in which they ended.
    waiting: Vec<Waiting>,
    results: Vec<LastResult>,
}

impl LastResults {
    /// A watcher that sees what happens, and passes it on.
    pub fn watching(&self, next: Option<Watcher>) -> Watcher {
        let results = self.clone();
        Watcher::new(move |served| {
            if let Served::Measurement { number, what } = &served {
                results.see(*number, what);
            }
            if let Some(next) = &next {
                next.tell(served);
            }
        })
    }

    fn see(&self, number: u64, what: &What) {
        let mut newest = self.newest();
        match what {
            What::Began { .. } => {
                newest.began.insert(number, Timestamp::now());
            }
            What::Sampled(_) => {}
            What::Ended(measurement) => {
                let began = newest.began.remove(&number).unwrap_or_else(Timestamp::now);
                let direction = measurement.plan.direction;
                newest.waiting.retain(|other| other.measurement.plan.direction != direction);
                newest.waiting.push(Waiting { began, measurement: measurement.clone() });
            }
            What::BrokenOff => {
                newest.began.remove(&number);
            }
        }
    }

    /// The newest result of each direction; none before the first. None of them began later than `now`: if the clock was ahead
    /// and was set back since, it began before it was set.
    pub fn read(&self, now: Timestamp) -> Vec<LastResult> {
        let _alone = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = std::mem::take(&mut self.newest().waiting);
        let mut results = self.newest().results.clone();
        for Waiting { began, measurement } in waiting {
            let direction = measurement.plan.direction;
            let record = conclude_at_least(*measurement, "", "").record;
            for sender in senders(direction) {
                results.retain(|other| other.sender != *sender);
                results.push(LastResult::of(&record, *sender, began));
            }
        }
        for result in &mut results {
            result.began = result.began.min(now);
        }
        self.newest().results.clone_from(&results);
        results
    }

    fn newest(&self) -> MutexGuard<'_, Newest> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn senders(direction: Direction) -> &'static [EndName] {
    match direction {
        Direction::Send => &[EndName::Near],
        Direction::Reverse => &[EndName::Far],
        Direction::Both => &[EndName::Near, EndName::Far],
    }
}

impl LastResult {
    fn of(record: &Record, sender: EndName, began: Timestamp) -> Self {
        let measured = record.result.directions.iter().find(|one| one.sender == sender);
        Self {
            sender,
            began,
            goodput: measured.map(|one| one.goodput_bits_per_s),
            figures: Figures::of_sender(record, sender),
            verdict: verdict(record, sender),
        }
    }
}

fn verdict(record: &Record, sender: EndName) -> Option<(String, Place, Option<f64>)> {
    let verdicts = [Some(&record.verdict), record.verdict_reverse.as_ref()];
    let verdict = verdicts.into_iter().flatten().find(|verdict| verdict.sender == sender)?;
    if verdict.limit == Verdict::NO_LIMIT && verdict.account.value().is_none() {
        return None;
    }
    let limit = Limit::of_verdict(verdict);
    let mut findings = record.findings.iter();
    let found = findings.find(|found| found.rule == limit.rule && found.end == limit.end);
    let probability = found.and_then(|found| found.probability.value().copied());
    let name = limit.limiter.map_or(limit.rule, |limiter| limiter.id());
    Some((name, limit.end, probability))
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = include_str!("../report/example/record.json");

    #[test]
    fn what_an_end_does_not_know_is_absent() {
        let mut record = Record::from_json(EXAMPLE).unwrap();
        let sender = record.verdict.sender;
        let began = Timestamp::UNIX_EPOCH;
        let whole = LastResult::of(&record, sender, began);
        let main = record.result.directions.iter().find(|one| one.sender == sender).unwrap();
        assert_eq!(whole.goodput, Some(main.goodput_bits_per_s));
        assert_eq!(whole.figures, Figures::of(&record));
        let (limit, end, probability) = whole.verdict.unwrap();
        assert_eq!((limit, end), (record.verdict.limit.clone(), record.verdict.end));
        assert_eq!(probability, record.findings[0].probability.value().copied());
        let other = LastResult::of(&record, sender.other(), began);
        assert_eq!((other.goodput, other.verdict), (None, None));
        record.verdict.limit = Verdict::NO_LIMIT.into();
        record.verdict.account = goodput_model::Known::missing("the test says so");
        assert_eq!(LastResult::of(&record, sender, began).verdict, None);
    }
}
