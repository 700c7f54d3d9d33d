//! Ending early, by Ctrl-C or an embedder: the measurement stops, and keeps what was measured so far.

use tokio::sync::watch;

/// Raises an [`Interrupt`].
pub struct Raise(watch::Sender<bool>);

/// Raised at most once. All clones share the state.
#[derive(Clone)]
pub struct Interrupt(watch::Receiver<bool>);

/// An interrupt and what raises it.
pub fn interrupt() -> (Raise, Interrupt) {
    let (raise, interrupt) = watch::channel(false);
    (Raise(raise), Interrupt(interrupt))
}

impl Raise {
    /// Raises the interrupt.
    pub fn raise(&self) {
        self.0.send_replace(true);
    }
}

impl Interrupt {
    /// Whether it was raised.
    pub fn is_raised(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until it is raised; for ever if nobody can raise it any more.
    pub async fn raised(&self) {
        if self.0.clone().wait_for(|raised| *raised).await.is_err() {
            std::future::pending().await
        }
    }
}
