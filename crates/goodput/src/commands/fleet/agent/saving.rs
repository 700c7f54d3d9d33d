//! The records of an agent on their way into the history. While it does not take them, they wait on this host's disk.

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Error, Result, anyhow};
use goodput_fleet::{End, Outcome};
use goodput_model::Record;
use goodput_store::{StoreError, read_record};
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

use super::waiting::Waiting;
use crate::commands::fleet::in_history::keep;
use crate::commands::fleet::places::BEAT;
use crate::commands::fleet::trouble::Trouble;
use crate::history_thread::HistoryThread;
use crate::{exit, screen};

/// How long an outcome waits for the history.
pub(super) const PATIENCE: Duration = BEAT.saturating_mul(2);

/// What becomes of records while the history is away.
const WAIT: &str = "records wait on this disk until the history takes them";

/// Where records go.
pub(super) struct Saving {
    history: HistoryThread,
    waiting: Arc<Waiting>,
    /// It did not take the last record that it was asked to.
    is_away: Cell<bool>,
    trouble: RefCell<Trouble>,
}

impl Saving {
    /// For the agent whose files are in `folder`.
    pub fn open(history: HistoryThread, folder: &Path) -> Result<Self> {
        let waiting = Arc::new(Waiting::open(folder)?);
        Ok(Self { history, waiting, is_away: Cell::default(), trouble: RefCell::default() })
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
            let task = &outcome.task;
            screen::say(format_args!(
                "goodput: the record of the task {task} is not in this host's history: {why}"
            ));
        }
    }

    /// While the history is away, it waits at once: a test would be late for it.
    async fn save_or_wait(&self, task: &str, record: Record) -> Result<()> {
        // One that is given up may be added all the same, and once.
        if !self.is_away.get() && self.added(task, &record).await {
            return Ok(());
        }
        let (waiting, task) = (Arc::clone(&self.waiting), task.to_owned());
        spawn_blocking(move || waiting.keep(&task, &record)).await?
    }

    /// Whether it is in the history soon. Otherwise says why, once with [`Self::go_on`].
    async fn added(&self, task: &str, record: &Record) -> bool {
        let late = |_| {
            self.is_away.set(true);
            Err(anyhow!("no answer within {} s", PATIENCE.as_secs()).context(WAIT))
        };
        let added = timeout(PATIENCE, self.add(task, record.clone())).await.unwrap_or_else(late);
        if let Err(why) = &added {
            self.trouble.borrow_mut().say(why);
        }
        added.is_ok()
    }

    async fn add(&self, task: &str, record: Record) -> Result<()> {
        let of = task.to_owned();
        let added = self.history.ask(move |history| keep(history, &of, &record).map(drop)).await;
        let is_of_this = added.as_ref().is_err_and(is_of_one_record);
        self.is_away.set(added.is_err() && !is_of_this);
        added.with_context(|| match is_of_this {
            true => format!(
                "the history does not take the record of the task {task}, which waits on this disk"
            ),
            false => WAIT.into(),
        })
    }

    /// Saves what waits as soon as the history takes it. Never ends.
    pub async fn go_on<T>(&self) -> T {
        loop {
            match self.save_all().await {
                Ok(()) => self.trouble.borrow_mut().is_over(),
                Err(why) => self.trouble.borrow_mut().say(&why),
            }
            sleep(BEAT).await;
        }
    }

    /// Saves what waits, the oldest first. One that can't be saved for itself is left, and holds up no other.
    async fn save_all(&self) -> Result<()> {
        let mut left = Ok(());
        for waits in self.waiting.all()? {
            let saved = match self.waiting.read(&waits) {
                Ok(Some(record)) => match self.add(&waits.task, record).await {
                    Ok(()) => self.waiting.remove(&waits),
                    Err(why) if self.is_away.get() => return Err(why),
                    refused => refused,
                },
                unread => unread.map(drop),
            };
            left = left.and(saved);
        }
        // Also if nothing waits any more: the next one finds out.
        self.is_away.set(false);
        left
    }
}

/// Whether the history may take others.
fn is_of_one_record(why: &Error) -> bool {
    why.chain().filter_map(|why| why.downcast_ref()).any(StoreError::is_of_one_record)
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_store::Store;
    use std::fs;
    use std::path::PathBuf;
    use std::sync::mpsc::channel;
    use tokio::runtime::Builder;

    const JSON: &str = include_str!("../../../report/example/record.json");

    fn record(target: &str) -> Record {
        Record { target: target.into(), ..read_record(JSON).unwrap() }
    }

    fn outcome(task: &str) -> Outcome {
        Outcome::new(task, "a", End::Record(serde_json::from_str(JSON).unwrap()))
    }

    /// A history in a folder, and what goes into it.
    fn with_history(folder: &Path) -> (PathBuf, Saving) {
        let file = folder.join("history.db");
        drop(Store::open(&file).unwrap());
        let opened = file.clone();
        let history = HistoryThread::begin(move || Ok(Store::open(&opened)?)).unwrap();
        (file, Saving::open(history, folder).unwrap())
    }

    fn run(test: impl Future<Output = ()>) {
        Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
    }

    #[test]
    fn a_file_that_is_no_record_holds_nothing_up() {
        let folder = tempfile::tempdir().unwrap();
        let (file, saving) = with_history(folder.path());
        fs::write(folder.path().join("unsaved/7-t.json"), "{").unwrap();
        run(async {
            saving.save(&outcome("t-1")).await;
            assert_eq!(Store::open(&file).unwrap().list(9).unwrap().len(), 1, "it waits for none");
            saving.save_all().await.unwrap();
            assert!(saving.waiting.all().unwrap().is_empty());
        });
    }

    #[test]
    fn a_record_that_is_refused_for_itself_holds_up_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let (file, saving) = with_history(folder.path());
        let db = rusqlite::Connection::open(&file).unwrap();
        db.execute_batch(
            "CREATE TRIGGER refuse BEFORE INSERT ON records WHEN NEW.target = 'bad'
             BEGIN SELECT RAISE(ABORT, 'not this one'); END",
        )
        .unwrap();
        for (task, target) in [("t-1", "bad"), ("t-2", "good")] {
            saving.waiting.keep(task, &record(target)).unwrap();
        }
        run(async {
            let why = exit::in_words(&saving.save_all().await.unwrap_err());
            assert!(why.contains("t-1") && why.contains("not this one"), "{why}");
            assert_eq!(saving.waiting.all().unwrap().len(), 1);
            saving.save(&outcome("t-3")).await;
            assert_eq!(Store::open(&file).unwrap().list(9).unwrap().len(), 2);
        });
    }

    #[test]
    fn a_record_waits_on_disk_for_a_history_that_can_t_be_opened() {
        let folder = tempfile::tempdir().unwrap();
        let (is_back, back) = channel::<()>();
        let file = folder.path().join("history.db");
        let opened = file.clone();
        let open = move || match back.try_recv() {
            Ok(()) => Ok(Store::open(&opened)?),
            Err(_) => anyhow::bail!("it is away"),
        };
        let saving = Saving::open(HistoryThread::begin(open).unwrap(), folder.path()).unwrap();
        run(async {
            saving.save(&outcome("t-1")).await;
            assert!(saving.is_away.get());
            assert!(saving.save_all().await.is_err());
            is_back.send(()).unwrap();
            saving.save(&outcome("t-2")).await;
            assert_eq!(saving.waiting.all().unwrap().len(), 2, "it was known to be away");
            saving.save_all().await.unwrap();
            assert!(!saving.is_away.get() && saving.waiting.all().unwrap().is_empty());
            assert_eq!(Store::open(&file).unwrap().list(9).unwrap().len(), 1, "the same record");
        });
    }
}
