//! The budget of an agent: bytes in any 24 hours. The history of its host keeps what was spent, over restarts.

use std::time::Duration;

use anyhow::{Context, Result};
use goodput_fleet::Left;
use goodput_model::Bytes;

use crate::commands::fleet::places::BEAT;
use crate::commands::spent::{Note, of_last_day};
use crate::history_thread::HistoryThread;

/// What an agent may spend.
#[derive(Clone)]
pub(super) struct Purse {
    history: HistoryThread,
    /// Under which its tests are in the history.
    name: String,
    limit: Bytes,
}

impl Purse {
    /// The budget of a site.
    pub fn new(history: HistoryThread, site: &str, limit: Bytes) -> Self {
        Self { history, name: format!("fleet agent {site}"), limit }
    }

    /// What is left now.
    ///
    /// # Errors
    /// The history can't be read, so nobody knows what was spent.
    pub async fn left(&self) -> Result<Left> {
        let spent = of_last_day(&self.history, &self.name).await.with_context(|| {
            format!("nobody knows what the budget of {} has left, so no test is made", self.name)
        })?;
        Ok(Left::of(self.limit, spent))
    }

    /// Notes that a test begins, which may cost `most`: what it has cost if nobody says otherwise.
    ///
    /// # Errors
    /// The history can't be written, so the budget would not count the test.
    pub async fn begin(&self, most: Bytes) -> Result<Note> {
        let note = Note::begin(&self.history, &self.name, most).await;
        note.with_context(|| {
            format!("the budget of {} can't count the test, so it is not made", self.name)
        })
    }

    /// Notes what the test costs at most for the moment.
    pub async fn mark(&self, note: &Note, bytes: Bytes) {
        note.mark(&self.history, bytes).await;
    }

    /// Notes what the test did cost.
    pub async fn settle(&self, note: Note, bytes: Bytes) {
        note.settle(&self.history, bytes).await;
    }
}

/// Time to the first look at what a test has cost. The next ones are each twice as far, up to [`BEAT`].
const FIRST_LOOK: Duration = Duration::from_millis(500);

/// How fast a test has cost something, from one look to the next. They are close together at first: until one has shown
/// something, a test whose agent is killed counts with all that it could cost.
#[derive(Debug)]
pub(super) struct Pace {
    before: u64,
    /// Between two looks, at most, bytes per second.
    largest: f64,
    /// From the last look to the next one.
    step: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self { before: 0, largest: 0.0, step: FIRST_LOOK }
    }
}

impl Pace {
    /// Time from this look to the next one.
    pub fn next_look(&self) -> Duration {
        self.step
    }

    /// What a test that has cost `bytes` costs at most until the next look: it may become twice as fast. None while nothing is
    /// known of how fast it is.
    pub fn until_the_next(&mut self, bytes: Bytes) -> Option<Bytes> {
        let since = bytes.0.saturating_sub(self.before) as f64;
        self.largest = self.largest.max(since / self.step.as_secs_f64());
        self.before = self.before.max(bytes.0);
        if self.largest == 0.0 {
            return None;
        }
        self.step = BEAT.min(2 * self.step);
        let next = (2.0 * self.largest * self.step.as_secs_f64()) as u64;
        Some(Bytes(self.before.saturating_add(next)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_store::Store;

    #[test]
    fn a_task_with_a_rate_is_expected_to_cost_at_least_what_a_watch_expects() {
        let text = "[site.a]\n[site.b]\ntarget = \"b\"\n";
        let mesh = goodput_fleet::Mesh::parse("x", text).unwrap();
        let task = goodput_fleet::task_between(&mesh, "t", "a", "b").unwrap();
        for (length_s, rate) in [(0.2, 1e6), (10.0, 1e9), (3600.0, 1e11)] {
            let paced = goodput_fleet::Task {
                length_s,
                rate: Some(goodput_model::BitRate(rate)),
                ..task.clone()
            };
            let payload = Bytes((rate * length_s / 8.0) as u64);
            let (most, expected) = (paced.most_bytes().unwrap(), goodput_watch::cost_of(payload));
            assert!(most >= expected, "{most} {expected}");
        }
    }

    #[test]
    fn a_killed_test_counts_with_what_it_had_cost_and_twice_its_pace() {
        let mut pace = Pace::default();
        let looks = [0, 0, 100, 400, 450].map(|bytes| {
            let cost = pace.until_the_next(Bytes(bytes)).map(|bytes| bytes.0);
            (cost, pace.next_look().as_millis())
        });
        let first = [(None, 500), (None, 500), (Some(500), 1000)];
        assert_eq!(looks[..3], first, "until something is known, it is looked at often");
        assert_eq!(looks[3..], [(Some(400 + 2 * 300 * 2), 2000), (Some(450 + 2 * 300 * 3), 3000)]);
    }

    #[test]
    fn a_history_that_can_t_be_used_is_a_reason_and_no_empty_purse() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history.db");
        let opened = file.clone();
        let history = HistoryThread::begin(move || Ok(Store::open(&opened)?)).unwrap();
        let purse = Purse::new(history, "b", Bytes(1000));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            purse.begin(Bytes(300)).await.unwrap();
            assert_eq!(
                purse.left().await.unwrap().bytes(),
                Bytes(700),
                "what nobody settles is spent"
            );
            let note = purse.begin(Bytes(700)).await.unwrap();
            assert_eq!(purse.left().await.unwrap().bytes(), Bytes(0));
            purse.mark(&note, Bytes(200)).await;
            assert_eq!(purse.left().await.unwrap().bytes(), Bytes(500), "if it is killed now");
            purse.settle(note, Bytes(100)).await;
            assert_eq!(purse.left().await.unwrap().bytes(), Bytes(600));
            rusqlite::Connection::open(&file).unwrap().execute_batch("DROP TABLE spent").unwrap();
            for why in [purse.left().await.map(drop), purse.begin(Bytes(1)).await.map(drop)] {
                let why = format!("{:#}", why.unwrap_err());
                assert!(why.contains("the budget of fleet agent b"), "{why}");
                assert!(why.contains("spent"), "{why}");
            }
        });
    }
}
