//! The records of an agent on their way into the history. While it does not take them, they wait on this host's disk.

use std::path::Path;

use anyhow::Result;
use goodput_fleet::{End, Outcome};
use goodput_model::Record;
use goodput_store::read_record;
use tokio::time::sleep;

use super::trouble::Trouble;
use super::waiting::Waiting;
use crate::commands::fleet::in_history::keep;
use crate::commands::fleet::places::BEAT;
use crate::history_thread::HistoryThread;
use crate::{exit, screen};

/// Where records go.
pub(super) struct Saving {
    history: HistoryThread,
    waiting: Waiting,
}

impl Saving {
    /// For the agent whose files are in `folder`.
    pub fn open(history: HistoryThread, folder: &Path) -> Result<Self> {
        Ok(Self { history, waiting: Waiting::open(folder)? })
    }

    /// Saves the record of an outcome, if it has one. It may have been saved before.
    pub async fn save(&self, outcome: &Outcome) {
        let End::Record(record) = &outcome.end else { return };
        let saved = match read_record(&record.to_string()) {
            Ok(record) => self.save_or_wait(&outcome.task, record).await,
            Err(why) => Err(why.into()),
        };
        if let Err(why) = saved {
            let why = exit::in_words(&why);
            screen::say(format_args!("goodput: a record is not in this host's history: {why}"));
        }
    }

    /// If others wait, it waits behind them: the history was away a moment ago, and a test would be late for it.
    async fn save_or_wait(&self, task: &str, record: Record) -> Result<()> {
        if self.waiting.all()?.is_empty() {
            match self.add(task, record.clone()).await {
                Ok(()) => return Ok(()),
                Err(why) => screen::say(format_args!(
                    "goodput: records wait on this disk until the history takes them: {}",
                    exit::in_words(&why)
                )),
            }
        }
        self.waiting.keep(task, &record)
    }

    async fn add(&self, task: &str, record: Record) -> Result<()> {
        let task = task.to_owned();
        self.history.ask(move |history| keep(history, &task, &record).map(drop)).await
    }

    /// Saves what waits as soon as the history takes it. Never ends.
    pub async fn go_on<T>(&self) -> T {
        let mut trouble = Trouble::default();
        loop {
            match self.save_all().await {
                Ok(()) => trouble.is_over(),
                Err(why) => trouble.say(&why),
            }
            sleep(BEAT).await;
        }
    }

    /// Saves what waits, the oldest first. What can't be read is left, and named.
    async fn save_all(&self) -> Result<()> {
        let mut unreadable = Ok(());
        for waits in self.waiting.all()? {
            match self.waiting.read(&waits) {
                Ok(record) => {
                    self.add(&waits.task, record).await?;
                    self.waiting.remove(&waits)?;
                }
                Err(why) => unreadable = Err(why),
            }
        }
        unreadable
    }
}
