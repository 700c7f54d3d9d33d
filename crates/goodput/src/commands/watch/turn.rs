//! One test at a time on this host: watches of the same user take turns.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use goodput_engine::Interrupt;
use tokio::time::sleep;

/// Name of the file that a testing watch locks, where the history usually is.
const LOCK: &str = "watch.lock";
/// Longest time between two looks at the lock; each time is random, so that two that wait don't wait for each other.
const LOOK: Duration = Duration::from_secs(2);

/// The right to test, which one watch at a time has.
pub struct HostTurn(Arc<File>);

/// Has the right until it is dropped.
pub struct Held(Arc<File>);

impl HostTurn {
    /// Opens the file of the lock.
    pub fn open() -> Result<Self> {
        Self::at(&goodput_store::default_path()?.with_file_name(LOCK))
    }

    fn at(path: &Path) -> Result<Self> {
        // The history itself may be elsewhere.
        if let Some(folder) = path.parent() {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
            made.with_context(|| format!("can't make {}", folder.display()))?;
        }
        let file =
            OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path);
        Ok(Self(Arc::new(file.with_context(|| format!("can't make {}", path.display()))?)))
    }

    /// Waits for the right, at most as long as `patience`; `None` without it.
    pub async fn take(&self, patience: Duration, interrupt: &Interrupt) -> Result<Option<Held>> {
        let began = Instant::now();
        loop {
            match self.0.try_lock() {
                Ok(()) => return Ok(Some(Held(Arc::clone(&self.0)))),
                Err(TryLockError::WouldBlock) if began.elapsed() < patience => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(why)) => return Err(why).context("can't lock watch.lock"),
            }
            tokio::select! {
                () = sleep(LOOK.mul_f64(rand::random())) => {}
                () = interrupt.raised() => return Ok(None),
            }
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Err(why) = self.0.unlock() {
            tracing::debug!("can't unlock {LOCK}: {why}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_watches_of_a_user_never_test_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let [one, other] = [(); 2].map(|()| HostTurn::at(&folder.path().join(LOCK)).unwrap());
        let (_raise, interrupt) = goodput_engine::interrupt();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let take =
            |host: &HostTurn| runtime.block_on(host.take(Duration::ZERO, &interrupt)).unwrap();
        let held = take(&one);
        assert!(held.is_some());
        assert!(take(&other).is_none());
        drop(held);
        assert!(take(&other).is_some());
    }
}
