//! The fence between a coordinator and its successor. A host that was suspended does not know it: it wakes up in the middle
//! of a line, with a lease that is another one's by now. So each coordinator first writes a key, whose revision is the
//! token of all that it does then. Agents refuse tasks with an older token, and the turn is written only over the revision
//! that was read.

use anyhow::{Error, Result, bail};
use goodput_bus::{BusError, Entry, Keys};
use goodput_fleet::places::FENCE;

use super::held::{Held, Lost};

/// What a coordinator says that is none any more.
const TAKEN_OVER: &str =
    "another coordinator has taken over meanwhile; this one was out of reach for too long";

/// Why a coordinator is none any more. It stands by then.
pub(super) fn taken_over() -> Error {
    Error::msg(Lost(TAKEN_OVER.into()))
}

/// The fence of this coordinator.
pub(super) struct Fence<'a> {
    turns: &'a Keys,
    /// Newer coordinators have a higher one.
    pub token: u64,
    /// Whether another one has raised it before.
    pub has_predecessor: bool,
}

impl<'a> Fence<'a> {
    /// Raises the fence for the process that holds the lease. It is read before the lease is renewed, and written only
    /// over what was read: so whoever lost the lease in between can't raise it over its successor's.
    pub async fn raise(turns: &'a Keys, held: &Held<'_>, session: &str) -> Result<Self> {
        loop {
            let last = turns.entry(FENCE).await?;
            if !held.renew().await? {
                return Err(taken_over());
            }
            let raised = match &last {
                None => turns.create(FENCE, &session).await?,
                Some(last) => turns.update(FENCE, &session, last.revision).await?,
            };
            if let Some(token) = raised {
                return Ok(Self { turns, token, has_predecessor: last.is_some() });
            }
        }
    }

    /// Whether no other coordinator has raised it since, as far as this copy of the stream knows; it may be behind.
    pub async fn is_ours(&self) -> Result<bool, BusError> {
        Ok(self.newer().await?.is_none())
    }

    async fn newer(&self) -> Result<Option<Entry>, BusError> {
        let newest = self.turns.entry(FENCE).await?;
        Ok(newest.filter(|newest| newest.revision > self.token))
    }

    /// Ends a coordinator that is none any more. Agents heed whoever has raised the fence, also if that was no coordinator.
    pub async fn check(&self) -> Result<()> {
        match self.newer().await? {
            None => Ok(()),
            Some(newer) if is_of_coordinator(&newer) => Err(taken_over()),
            Some(_) => bail!(
                "the key {FENCE} of the bucket {} was written by something that is no coordinator of goodput; find who else \
                 writes there, and start the coordinator again",
                self.turns.bucket()
            ),
        }
    }
}

/// Whether a coordinator has written this: its session.
fn is_of_coordinator(entry: &Entry) -> bool {
    let session = serde_json::from_slice::<String>(&entry.value);
    session.is_ok_and(|text| !text.is_empty() && text.chars().all(|c| c.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_coordinator_is_known_by_its_session() {
        let entry = |value: &str| Entry { value: value.into(), revision: 1, written_s: 0.0 };
        assert!(is_of_coordinator(&entry("\"00ff00ff00ff00ff\"")));
        for garbage in ["", "poison", "7", "\"\"", "\"poison\""] {
            assert!(!is_of_coordinator(&entry(garbage)), "{garbage}");
        }
    }
}
