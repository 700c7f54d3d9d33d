//! The gate at which the flows of a measurement wait, so that all start together.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::stop::{Phase, Stop};

/// How often a waiting flow checks whether it was stopped before it began. The gate itself opens at once.
const STOP_CHECK: Duration = Duration::from_millis(20);

/// Shut until it is opened, then open for good.
#[derive(Debug, Default)]
pub struct Gate {
    open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    /// Lets all flows go.
    pub fn open(&self) {
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.opened.notify_all();
    }

    /// Waits until the gate is open or `stop` ends the measurement.
    pub(crate) fn wait(&self, stop: &Stop) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        while !*open && stop.phase() == Phase::Run {
            let woken = self.opened.wait_timeout(open, STOP_CHECK);
            open = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
