//! The records of an agent or a coordinator on their way into the history. While it does not take them, they wait on this
//! host's disk.

pub(in crate::commands::fleet) mod thin;
mod waiting;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Error, Result};
use goodput_fleet::{End, Outcome};
use goodput_model::Record;
use goodput_store::{StoreError, read_record};
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

use self::waiting::Waiting;
use crate::commands::fleet::in_history::keep;
use crate::commands::fleet::places::BEAT;
use crate::commands::fleet::trouble::Trouble;
use crate::history_thread::HistoryThread;
use crate::{exit, screen};

/// How long an outcome waits for a history that answers nobody.
pub(in crate::commands::fleet) const PATIENCE: Duration = BEAT.saturating_mul(2);

/// What becomes of records while the history is away.
const WAIT: &str = "records wait on this disk until the history takes them";

/// Where records go.
pub(in crate::commands::fleet) struct Saving {
    history: HistoryThread,
    waiting: Arc<Waiting>,
    /// It did not take the last record that it was asked to.
    is_away: Cell<bool>,
    /// The user knows that it is away.
    is_said: Cell<bool>,
    /// What is wrong with single records.
    trouble: RefCell<Trouble>,
}

impl Saving {
    /// For the agent or the coordinator whose files are in `folder`.
    pub fn open(history: HistoryThread, folder: &Path) -> Result<Self> {
        let waiting = Arc::new(Waiting::open(folder)?);
        let (is_away, is_said, trouble) = Default::default();
        Ok(Self { history, waiting, is_away, is_said, trouble })
    }

    /// Has what waits in the folder of another coordinator wait here.
    pub fn take_over(&self, folder: &Path) -> Result<()> {
        self.waiting.take_over(&Waiting::open(folder)?)
    }

    /// Opens the history, which may be away: that is said, and what is saved waits on disk.
    ///
    /// # Errors
    /// It can't be used, and waiting would not help.
    pub async fn begin(&self) -> Result<()> {
        match self.history.patiently(PATIENCE, self.history.open()).await {
            Some(Err(why)) if !may_come_back(&why) => return Err(why),
            Some(Err(why)) => self.is_gone(&why.context(WAIT)),
            Some(Ok(())) => {}
            None => self.is_gone(&late()),
        }
        Ok(())
    }

    /// Tries once more to save what waits, if anything does. Returns how many records still wait on disk.
    pub async fn end(&self) -> Result<usize> {
        if !self.waiting.all()?.is_empty() {
            // Why not was said.
            let _ = timeout(PATIENCE, self.save_all()).await;
        }
        Ok(self.waiting.all()?.len())
    }

    /// Notes that the history is away, and says so if the user does not know.
    fn is_gone(&self, why: &Error) {
        self.is_away.set(true);
        if !self.is_said.replace(true) {
            screen::say(format_args!("goodput: {}", exit::in_words(why)));
        }
    }

    /// Notes that it takes records, and says so if the user has heard that it was away.
    fn is_back(&self) {
        self.is_away.set(false);
        if self.is_said.replace(false) {
            screen::say("goodput: the history takes records again");
        }
    }

    /// Saves the record of an outcome, if it has one. It may have been saved before.
    pub async fn save(&self, outcome: &Outcome) {
        let End::Record(record) = &outcome.end else { return };
        match read_record(&record.to_string()) {
            Ok(record) => {
                self.save_record(&outcome.task, Arc::new(record)).await;
            }
            Err(why) => not_saved(&Error::from(why)),
        }
    }

    /// Saves the record of a task. Returns its number in the history, unless it waits: at once while the history is away,
    /// because the next test would be late for it.
    pub async fn save_record(&self, task: &str, record: Arc<Record>) -> Option<i64> {
        let mut why_not = None;
        if !self.is_away.get() {
            // One that is given up may be added all the same, and once.
            let added = self.history.patiently(PATIENCE, self.add(task, Arc::clone(&record)));
            match added.await.unwrap_or_else(|| Err(late())) {
                Ok(number) => return Some(number),
                Err(why) => {
                    self.is_away.set(!is_of_one_record(&why));
                    why_not = Some(why);
                }
            }
        }
        let (waiting, task) = (Arc::clone(&self.waiting), task.to_owned());
        let waits = spawn_blocking(move || waiting.keep(&task, &record)).await;
        if let Err(why) = waits.unwrap_or_else(|why| Err(why.into())) {
            not_saved(&why);
        }
        // Once it waits: until then, it would seem that all were saved.
        why_not.iter().for_each(|why| self.say(why));
        None
    }

    /// The record of a task that was saved before, or waits.
    ///
    /// # Errors
    /// Nobody knows whether there is one: the history gives no answer, or what waits can't be read.
    pub async fn record_of(&self, task: &str) -> Result<Option<Record>> {
        if let Some(waits) = self.waiting.all()?.into_iter().find(|waits| waits.task == task)
            && let Some(record) = self.waiting.read(&waits)?
        {
            return Ok(Some(record));
        }
        let of = task.to_owned();
        let read = self.history.ask(move |history| match history.with_key(&of)? {
            Some(id) => Ok(Some(history.get(id)?)),
            None => Ok(None),
        });
        let read = self.history.patiently(PATIENCE, read).await;
        let read = read.unwrap_or_else(|| Err(Error::msg(Late)));
        read.with_context(|| {
            format!("nobody knows whether the history has the record of the task {task}")
        })
    }

    /// Says why the history did not take a record. Only what may pass by itself will be over at some time.
    fn say(&self, why: &Error) {
        if may_come_back(why) || why.is::<Late>() {
            self.is_gone(why);
        } else {
            self.trouble.borrow_mut().say(why);
        }
    }

    async fn add(&self, task: &str, record: Arc<Record>) -> Result<i64> {
        let of = task.to_owned();
        let added = self.history.ask(move |history| keep(history, &of, &record)).await;
        added.map_err(|why| match is_of_one_record(&why) {
            true => why.context(format!(
                "the history does not take the record of the task {task}, which waits on this disk"
            )),
            false => why.context(WAIT),
        })
    }

    /// Saves what waits as soon as the history takes it. Never ends.
    pub async fn go_on<T>(&self) -> T {
        loop {
            self.look().await;
            sleep(BEAT).await;
        }
    }

    /// Saves what waits if the history takes it, and says what is new.
    async fn look(&self) {
        match self.save_all().await {
            Err(why) => self.say(&why),
            Ok(left) => {
                self.is_back();
                match left {
                    Some(why) => self.trouble.borrow_mut().say(&why),
                    None => self.trouble.borrow_mut().is_over(),
                }
            }
        }
    }

    /// Saves what waits, the oldest first. One that can't be saved for itself, or not be read, is left, and holds up no other:
    /// returns why the first one of these is left.
    ///
    /// # Errors
    /// The history takes none, or nobody knows what waits.
    async fn save_all(&self) -> Result<Option<Error>> {
        // If nothing waits, only this shows whether it is back.
        self.history.open().await.context(WAIT)?;
        let mut left = None;
        for waits in self.waiting.all()? {
            let saved = match self.waiting.read(&waits) {
                Ok(Some(record)) => match self.add(&waits.task, Arc::new(record)).await {
                    Ok(_) => self.waiting.remove(&waits),
                    Err(why) if !is_of_one_record(&why) => return Err(why),
                    Err(refused) => Err(refused),
                },
                unread => unread.map(drop),
            };
            left = left.or(saved.err());
        }
        self.is_away.set(false);
        Ok(left)
    }
}

/// The history has answered nobody for some time.
#[derive(Debug)]
struct Late;

impl fmt::Display for Late {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no answer within {} s", PATIENCE.as_secs())
    }
}

fn late() -> Error {
    Error::msg(Late).context(WAIT)
}

fn not_saved(why: &Error) {
    let why = exit::in_words(why);
    screen::say(format_args!("goodput: a record is not in this host's history: {why}"));
}

/// Whether it helps to wait for the history.
fn may_come_back(why: &Error) -> bool {
    why.chain().filter_map(|why| why.downcast_ref()).any(StoreError::may_pass)
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
            assert!(saving.save_all().await.unwrap().is_none());
            assert!(saving.waiting.all().unwrap().is_empty());
        });
    }

    #[test]
    fn a_file_that_can_t_be_read_does_not_mean_that_the_history_is_away() {
        let folder = tempfile::tempdir().unwrap();
        let (file, saving) = with_history(folder.path());
        // Whoever reads it gets an error of the system.
        fs::create_dir(folder.path().join("unsaved/7-t.json")).unwrap();
        saving.waiting.keep("t-1", &record("nas")).unwrap();
        run(async {
            saving.look().await;
            assert!(!saving.is_away.get() && !saving.is_said.get());
            assert_eq!(Store::open(&file).unwrap().list(9).unwrap().len(), 1, "the other");
            saving.say(&late());
            assert!(saving.is_away.get() && saving.is_said.get());
            saving.look().await;
            assert!(!saving.is_away.get() && !saving.is_said.get());
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
            let why = exit::in_words(&saving.save_all().await.unwrap().unwrap());
            assert!(why.contains("t-1") && why.contains("not this one"), "{why}");
            assert_eq!(saving.waiting.all().unwrap().len(), 1);
            saving.save(&outcome("t-3")).await;
            assert_eq!(Store::open(&file).unwrap().list(9).unwrap().len(), 2);
        });
    }

    #[test]
    fn a_history_that_is_away_at_first_is_waited_for_and_one_that_can_t_be_used_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (tell, told) = channel::<Error>();
        let file = folder.path().join("history.db");
        let open = move || told.try_recv().map_or_else(|_| Ok(Store::open(&file)?), Err);
        let saving = Saving::open(HistoryThread::begin(open).unwrap(), folder.path()).unwrap();
        run(async {
            tell.send(StoreError::NoHome.into()).unwrap();
            assert!(saving.begin().await.is_err());
            let busy = StoreError::Busy { doing: "open", path: "x".into(), holder: None };
            tell.send(busy.into()).unwrap();
            saving.begin().await.unwrap();
            assert!(saving.is_away.get() && saving.is_said.get());
            assert_eq!(saving.save_record("t-1", Arc::new(record("nas"))).await, None);
            assert_eq!(saving.waiting.all().unwrap().len(), 1);
            assert_eq!(saving.end().await.unwrap(), 0);
            saving.is_back();
            assert!(!saving.is_away.get() && !saving.is_said.get());
            assert!(saving.save_record("t-2", Arc::new(record("nas"))).await.is_some());
        });
    }

    #[test]
    fn the_record_of_a_task_is_found_in_the_history_and_while_it_waits() {
        let folder = tempfile::tempdir().unwrap();
        let (_file, saving) = with_history(folder.path());
        run(async {
            assert_eq!(saving.record_of("t-1").await.unwrap(), None);
            saving.save_record("t-1", Arc::new(record("nas"))).await;
            assert_eq!(saving.record_of("t-1").await.unwrap(), Some(record("nas")));
            saving.waiting.keep("t-2", &record("other")).unwrap();
            assert_eq!(saving.record_of("t-2").await.unwrap(), Some(record("other")));
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
            let why = exit::in_words(&saving.record_of("t-1").await.unwrap_err());
            assert!(why.contains("nobody knows") && why.contains("it is away"), "{why}");
            saving.save(&outcome("t-1")).await;
            assert!(saving.is_away.get());
            assert!(saving.record_of("t-1").await.unwrap().is_some(), "it waits here");
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
