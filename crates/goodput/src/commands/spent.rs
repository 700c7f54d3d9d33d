//! What tests cost, in the history: so the budget holds over restarts, whether a test had a result, failed, or was ended
//! with the watch or the agent itself.

use anyhow::Result;
use goodput_model::Bytes;
use goodput_store::Store;
use jiff::{SignedDuration, Timestamp};

use crate::commands::{measured, timed};
use crate::exit;
use crate::history_thread::HistoryThread;

/// A day of the budget.
const DAY: SignedDuration = SignedDuration::from_hours(24);

/// A running test, which is in the history with what it may cost.
pub struct Note {
    target: String,
    started: String,
    /// Its number; none if the history could not be written.
    number: Option<i64>,
}

impl Note {
    /// Notes that a test of `target` begins, which may cost `most`. If this process is killed, this is what it has spent.
    ///
    /// # Errors
    /// The history can't be written.
    pub async fn begin(history: &HistoryThread, target: &str, most: Bytes) -> Result<Self> {
        let Self { target, started, .. } = Self::unkept(target);
        let spend = move |store: &Store| {
            let number = Some(store.spend(&target, &started, most.0)?);
            Ok(Self { target, started, number })
        };
        history.ask(spend).await
    }

    /// The same without the history, for whoever counts by itself, too.
    pub fn unkept(target: &str) -> Self {
        Self { target: target.into(), started: measured::now(), number: None }
    }

    /// Notes what the test costs at most for the moment. If this process is killed, this is what it has spent.
    pub async fn mark(&self, history: &HistoryThread, bytes: Bytes) {
        let Some(number) = self.number else { return };
        let mark = move |store: &Store| Ok(store.settle(number, bytes.0)?);
        if let Err(why) = history.ask(mark).await {
            tracing::debug!(
                "{}: the budget counts more than this test costs: {why:#}",
                self.target
            );
        }
    }

    /// Notes what the test did cost. A full disk must not end the watch: it may have room again for the next test.
    pub async fn settle(self, history: &HistoryThread, bytes: Bytes) {
        let name = self.target.clone();
        let settle = move |store: &Store| match self.number {
            Some(number) => Ok(store.settle(number, bytes.0)?),
            None => Ok(store.spend(&self.target, &self.started, bytes.0).map(drop)?),
        };
        if let Err(why) = history.ask(settle).await {
            let why = exit::in_words(&why);
            timed::say(format_args!(
                "{name}: after a restart, the budget won't count the {bytes} of this test: {why}"
            ));
        }
    }
}

/// How long ago the tests of `target` in the last 24 hours were, in seconds, and what each cost. One from the future, by a
/// clock that was set back, counts as new.
///
/// # Errors
/// The history can't be read.
pub async fn of_last_day(history: &HistoryThread, target: &str) -> Result<Vec<(f64, Bytes)>> {
    let now = Timestamp::now();
    let from = now.saturating_sub(DAY).map(|from| from.to_string()).unwrap_or_default();
    let target = target.to_owned();
    let spent = history.ask(move |store| Ok(store.spent(&target, &from)?)).await?;
    let spent = spent.into_iter().map(|(started, bytes)| {
        let age = started.parse::<Timestamp>().map(|at| now.duration_since(at).as_secs_f64());
        (age.unwrap_or_default().max(0.0), Bytes(bytes))
    });
    Ok(spent.collect())
}
