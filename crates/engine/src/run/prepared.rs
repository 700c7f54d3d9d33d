//! What one end prepares for a measurement before its flows arrive.

use goodput_kernel::Context;
use goodput_model::{EndName, Plan, Snapshot};

use crate::error::EngineError;
use crate::run::affinity::Affinity;
use crate::run::movers::Movers;
use crate::run::observe::{in_time, observe};
use crate::run::storage::OpenFiles;

/// Everything about an end's share of a measurement that stays the same while it runs.
pub struct Prepared {
    /// What was agreed.
    pub plan: Plan,
    /// Which end this is.
    pub end: EndName,
    /// The files that it reads and writes.
    pub stores: OpenFiles,
    /// The CPUs of its flows.
    pub affinity: Affinity,
    /// How they move payload.
    pub movers: Movers,
    /// This host, on the path to the peer.
    pub context: Context,
    /// Whether this end observes its host: if the plan says so and someone will read the result.
    pub observes: bool,
}

impl Prepared {
    /// The facts of this host before payload moves, unless they take too long.
    pub async fn look(&self) -> Result<Snapshot, EngineError> {
        in_time(self.look_again()).await
    }

    /// The present facts of this host.
    pub async fn look_again(&self) -> Result<Snapshot, EngineError> {
        observe(self.observes, self.context.clone()).await
    }
}
