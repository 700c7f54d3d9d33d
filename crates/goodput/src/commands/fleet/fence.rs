//! The fence between a coordinator and its successor. A host that was suspended does not know it: it wakes up in the middle
//! of a line, with a lease that is another one's by now. So each coordinator first writes a key, whose revision is the
//! token of all that it does then. Agents refuse tasks with an older token, and the turn is written only over the revision
//! that was read.

use anyhow::{Result, bail};
use goodput_bus::{BusError, Keys};
use goodput_fleet::places::FENCE;

use super::held::Held;

/// What a coordinator says that is none any more.
pub(super) const TAKEN_OVER: &str =
    "another coordinator has taken over meanwhile; this one was out of reach for too long";

/// The fence of this coordinator.
pub(super) struct Fence<'a> {
    turns: &'a Keys,
    /// Newer coordinators have a higher one.
    pub token: u64,
}

impl<'a> Fence<'a> {
    /// Raises the fence for the process that holds the lease. It is read before the lease is renewed, and written only
    /// over what was read: so whoever lost the lease in between can't raise it over its successor's.
    pub async fn raise(turns: &'a Keys, held: &Held<'_>, session: &str) -> Result<Self> {
        loop {
            let last = turns.entry(FENCE).await?;
            if !held.renew().await? {
                bail!(TAKEN_OVER);
            }
            let raised = match last {
                None => turns.create(FENCE, &session).await?,
                Some(last) => turns.update(FENCE, &session, last.revision).await?,
            };
            if let Some(token) = raised {
                return Ok(Self { turns, token });
            }
        }
    }

    /// Whether no other coordinator has raised it since, as far as this copy of the stream knows; it may be behind.
    pub async fn is_ours(&self) -> Result<bool, BusError> {
        Ok(self.turns.entry(FENCE).await?.is_none_or(|newest| newest.revision <= self.token))
    }
}
