//! The history on a thread of its own. A database may be slow or away, and a file locked; whoever asks waits for the answer
//! alone, and all else goes on: a lease is renewed, a call answered, a signal heard.

use std::fs;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result, anyhow};
use goodput_kernel::parse::schedstat;
use goodput_store::Store;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

use crate::exit;

/// Questions that wait. Whoever asks one more waits until there is room: each of the few that ask waits for its answer.
const MOST_WAITING: usize = 16;
/// How long the end of a program waits until the file is closed. Whoever closes a file of SQLite last moves what its write-ahead
/// log has into the file; without that, a copy of the file alone is no history.
const CLOSING: Duration = Duration::from_secs(1);

/// What the thread does for one question.
type Question = Box<dyn FnOnce(&mut Kept) + Send>;

/// The history, which is asked from asynchronous code. All clones ask the same thread, which ends with them.
#[derive(Clone)]
pub struct HistoryThread {
    worker: Arc<Worker>,
    openings: Arc<AtomicUsize>,
    delay: Arc<Mutex<Delay>>,
    /// How many questions had an answer that was no error.
    answered: watch::Receiver<u64>,
}

/// The thread. Dropping it lets the thread do what was asked, and close the history.
struct Worker {
    /// `None` once it is to end.
    ask: Option<mpsc::Sender<Question>>,
    /// Says that it has ended.
    ended: Mutex<Receiver<()>>,
}

impl Worker {
    async fn take(&self, question: Question) -> Result<()> {
        let ask = self.ask.as_ref().ok_or_else(has_ended)?;
        ask.send(question).await.map_err(|_| has_ended())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.ask = None;
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        // A history that is away or locked does not hold up the end; what waits for it is kept elsewhere.
        let _ = ended.recv_timeout(CLOSING);
    }
}

/// What the history cost those who asked it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Delay {
    /// How long answers took, without the time in which their thread waited for a CPU.
    pub took: Duration,
    /// Why the newest one that was none could not be given.
    pub why: Option<String>,
}

/// What the thread has.
struct Kept {
    open: Box<dyn Fn() -> Result<Store> + Send>,
    store: Option<Store>,
    openings: Arc<AtomicUsize>,
    answered: watch::Sender<u64>,
}

impl HistoryThread {
    /// Begins. The first question opens the history by `open`, and so does the first one after it failed or was moved away.
    ///
    /// # Errors
    /// The system has no room for a thread.
    pub fn begin(open: impl Fn() -> Result<Store> + Send + 'static) -> Result<Self> {
        let (ask, mut asked) = mpsc::channel::<Question>(MOST_WAITING);
        let openings = Arc::new(AtomicUsize::new(0));
        let (tell, answered) = watch::channel(0);
        let mut kept = Kept {
            open: Box::new(open),
            store: None,
            openings: Arc::clone(&openings),
            answered: tell,
        };
        let (end, ended) = channel::<()>();
        let work = move || {
            while let Some(question) = asked.blocking_recv() {
                question(&mut kept);
            }
            drop(kept);
            drop(end);
        };
        let thread = thread::Builder::new().name("history".into()).spawn(work);
        thread.context("can't start the thread that uses the history")?;
        let worker = Arc::new(Worker { ask: Some(ask), ended: Mutex::new(ended) });
        Ok(Self { worker, openings, delay: Arc::default(), answered })
    }

    /// Asks, and waits for the answer. If this is dropped while it waits for room in the queue, nothing was asked; after
    /// that, what it asks is done all the same.
    ///
    /// # Errors
    /// Those of the question, and why the history can't be opened.
    pub async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Store) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (tell, told) = oneshot::channel();
        let question = Box::new(move |kept: &mut Kept| {
            let (began, waited) = (Instant::now(), waited_for_cpu());
            let answer = kept.store().and_then(question);
            let took = began.elapsed().saturating_sub(waited_for_cpu().saturating_sub(waited));
            if answer.is_ok() {
                kept.answered.send_modify(|questions| *questions += 1);
            }
            let _ = tell.send((answer, took));
        });
        self.worker.take(question).await?;
        let (answer, took) = told.await.map_err(|_| has_ended())?;
        self.note(took, answer.as_ref().err());
        answer
    }

    /// Closes it until the next question: somebody needs the file for himself.
    ///
    /// # Errors
    /// The thread has ended.
    pub async fn close(&self) -> Result<()> {
        let (tell, told) = oneshot::channel();
        let close = Box::new(move |kept: &mut Kept| {
            kept.store = None;
            let _ = tell.send(());
        });
        self.worker.take(close).await?;
        told.await.map_err(|_| has_ended())
    }

    /// Waits for `work`, which asks this history, for as long as the history answers someone every so often: who waits behind many
    /// others is not late for that. None: for this long, it has answered nobody.
    pub async fn patiently<T>(
        &self,
        patience: Duration,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        let mut work = pin!(work);
        let mut answered = self.answered.clone();
        loop {
            answered.mark_unchanged();
            let another = timeout(patience, answered.changed());
            tokio::select! {
                biased;
                done = &mut work => return Some(done),
                another = another => match another {
                    Ok(Ok(())) => {}
                    Err(_) => return None,
                    // The thread has ended, and `work` hears why.
                    Ok(Err(_)) => return Some(work.await),
                },
            }
        }
    }

    /// What the history has cost since the last call. Who is late can say so.
    pub fn take_delay(&self) -> Delay {
        std::mem::take(&mut *self.delay.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn note(&self, took: Duration, why: Option<&Error>) {
        let mut delay = self.delay.lock().unwrap_or_else(PoisonError::into_inner);
        delay.took += took;
        delay.why = why.map(exit::in_words).or(delay.why.take());
    }

    /// Opens it, if it is not open.
    ///
    /// # Errors
    /// Why that can't be.
    pub async fn open(&self) -> Result<()> {
        self.ask(|_| Ok(())).await
    }

    /// How often it was opened. After another time, the numbers of its records may be those of another one.
    pub fn openings(&self) -> usize {
        self.openings.load(Ordering::Relaxed)
    }
}

impl Kept {
    fn store(&mut self) -> Result<&Store> {
        let is_fit = |store: &Store| store.is_in_place() && !store.has_failed();
        let store = match self.store.take().filter(is_fit) {
            Some(store) => store,
            None => {
                let store = (self.open)()?;
                self.openings.fetch_add(1, Ordering::Relaxed);
                store
            }
        };
        Ok(self.store.insert(store))
    }
}

/// How long the calling thread was ready to run but waited for a CPU, since it began: a busy host is no slow history. Zero if the
/// kernel does not count it.
fn waited_for_cpu() -> Duration {
    let counted = fs::read_to_string("/proc/thread-self/schedstat").ok();
    let counted = counted.and_then(|text| schedstat::parse(&text).ok());
    counted.map_or(Duration::ZERO, |counted| Duration::from_nanos(counted.waiting_ns))
}

fn has_ended() -> Error {
    anyhow!(
        "the thread that uses the history has ended; this is a bug in goodput, please report it"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::{Future, poll_fn};
    use std::task::Poll;
    use tokio::runtime::{Builder, Runtime};

    fn runtime() -> Runtime {
        Builder::new_current_thread().enable_all().build().unwrap()
    }

    #[test]
    fn the_last_one_who_leaves_closes_the_file_which_is_whole_then() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history.db");
        let opened = file.clone();
        runtime().block_on(async {
            let history = HistoryThread::begin(move || Ok(Store::open(&opened)?)).unwrap();
            history.open().await.unwrap();
            drop(history.clone());
            history.open().await.unwrap();
        });
        let copy = folder.path().join("copy.db");
        fs::copy(&file, &copy).unwrap();
        assert_eq!(Store::open(&copy).unwrap().list(1).unwrap().len(), 0);
        assert!(!file.with_extension("db-wal").exists());
    }

    #[test]
    fn others_go_on_while_the_history_is_slow() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history.db");
        let (go_on, wait) = channel::<()>();
        let answer = runtime().block_on(async {
            let history = HistoryThread::begin(move || Ok(Store::open(&file)?)).unwrap();
            let slow = history.ask(move |store| {
                wait.recv()?;
                Ok(store.list(1)?.len())
            });
            // A history that held this thread up would never be told to go on.
            let (answer, ()) = tokio::join!(slow, async { go_on.send(()).unwrap() });
            answer.unwrap()
        });
        assert_eq!(answer, 0);
    }

    #[test]
    fn who_hears_nothing_is_late_and_who_waits_behind_others_that_are_answered_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history.db");
        runtime().block_on(async {
            let history = HistoryThread::begin(move || Ok(Store::open(&file)?)).unwrap();
            let (go_on, wait) = channel::<()>();
            let mut slow = pin!(history.ask(move |_| Ok(wait.recv()?)));
            let waits = poll_fn(|now| Poll::Ready(slow.as_mut().poll(now).is_pending())).await;
            assert!(waits, "for this test");
            let late = history.patiently(Duration::from_millis(1), history.open()).await;
            assert!(late.is_none(), "it answers nobody");
            go_on.send(()).unwrap();
            slow.await.unwrap();
            let long = Duration::from_secs(3600);
            let all = (0..4 * MOST_WAITING).map(|_| history.patiently(long, history.open()));
            let answers = futures_util::future::join_all(all).await;
            assert!(answers.into_iter().all(|answer| answer.is_some_and(|answer| answer.is_ok())));
        });
    }

    #[test]
    fn it_is_opened_by_the_first_question_that_can() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history/history.db");
        // A file where its directory should be.
        fs::write(folder.path().join("history"), "").unwrap();
        let named = file.clone();
        runtime().block_on(async {
            let history = HistoryThread::begin(move || Ok(Store::open(&named)?)).unwrap();
            let why = history.open().await.unwrap_err().to_string();
            assert!(why.contains("history"), "{why}");
            fs::remove_file(folder.path().join("history")).unwrap();
            history.open().await.unwrap();
            assert_eq!(history.openings(), 1);
            fs::remove_file(&file).unwrap();
            assert!(history.ask(|store| Ok(store.is_in_place())).await.unwrap(), "a new one");
            assert_eq!(history.openings(), 2);
        });
    }

    #[test]
    fn while_it_is_closed_another_has_the_file_for_itself() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history.db");
        let named = file.clone();
        runtime().block_on(async {
            let history = HistoryThread::begin(move || Ok(Store::open(&named)?)).unwrap();
            history.open().await.unwrap();
            history.close().await.unwrap();
            assert!(!folder.path().join("history.db-wal").exists(), "nobody has it open");
            let old = goodput_store::Old::Before("2026".into());
            assert_eq!(Store::make_room(file.as_path(), &old).unwrap(), 0);
            history.open().await.unwrap();
            assert_eq!(history.openings(), 2);
        });
    }

    #[test]
    fn what_it_cost_and_why_is_known_until_it_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history.db");
        runtime().block_on(async {
            let history = HistoryThread::begin(move || Ok(Store::open(&file)?)).unwrap();
            history.open().await.unwrap();
            assert_eq!(history.take_delay().why, None);
            let wait = Duration::from_millis(20);
            let failing = move |_: &Store| {
                thread::sleep(wait);
                Err::<(), _>(anyhow!("it is locked"))
            };
            history.ask(failing).await.unwrap_err();
            history.open().await.unwrap();
            let delay = history.take_delay();
            assert!(delay.took >= wait, "{delay:?}");
            assert_eq!(delay.why.as_deref(), Some("it is locked"));
            assert_eq!(history.take_delay(), Delay::default());
        });
    }

    #[test]
    fn what_was_asked_is_done_although_nobody_waits() {
        let (done, was_done) = channel();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history.db");
        runtime().block_on(async {
            let history = HistoryThread::begin(move || Ok(Store::open(&file)?)).unwrap();
            let mut ask = Box::pin(history.ask(move |_| Ok(done.send(())?)));
            poll_fn(|now| Poll::Ready(ask.as_mut().poll(now).is_ready())).await;
            drop(ask);
            history.open().await.unwrap();
        });
        was_done.try_recv().unwrap();
    }
}
