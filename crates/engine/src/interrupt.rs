//! Ending early, by Ctrl-C or an embedder: the measurement stops, and keeps what was measured so far.

use tokio::sync::watch;

use crate::error::EngineError;

/// What raised an interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    Asked,
    TimeLimit,
}

/// Raises an [`Interrupt`].
pub struct Raise(watch::Sender<Option<Why>>);

/// Raised at most once. All clones share the state.
#[derive(Clone)]
pub struct Interrupt(watch::Receiver<Option<Why>>);

/// An interrupt and what raises it.
pub fn interrupt() -> (Raise, Interrupt) {
    let (raise, interrupt) = watch::channel(None);
    (Raise(raise), Interrupt(interrupt))
}

impl Raise {
    /// Raises the interrupt.
    pub fn raise(&self) {
        self.0.send_replace(Some(Why::Asked));
    }

    /// Raises the interrupt because the available time is over.
    pub fn raise_at_time_limit(&self) {
        self.0.send_replace(Some(Why::TimeLimit));
    }
}

impl Interrupt {
    /// Whether it was raised.
    pub fn is_raised(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// How what it ends came to its end, in words.
    pub fn in_words(&self) -> &'static str {
        match *self.0.borrow() {
            Some(Why::TimeLimit) => "ended by the time limit",
            Some(Why::Asked) | None => "interrupted",
        }
    }

    /// Waits until it is raised; for ever if nobody can raise it any more.
    pub async fn raised(&self) {
        if self.0.clone().wait_for(Option::is_some).await.is_err() {
            std::future::pending().await
        }
    }
}

/// Does `work` until the interrupt is raised. `work` is then dropped wherever it waits, which it must bear.
///
/// # Errors
/// Those of `work`, and [`EngineError::Interrupted`].
pub(crate) async fn unless_raised<T>(
    interrupt: &Interrupt,
    work: impl Future<Output = Result<T, EngineError>>,
) -> Result<T, EngineError> {
    tokio::select! {
        done = work => done,
        () = interrupt.raised() => Err(EngineError::Interrupted),
    }
}
