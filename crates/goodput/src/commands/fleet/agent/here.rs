//! What all parts of an agent know, and what it takes part in.

use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::Arc;

use anyhow::{Result, bail};
use goodput_bus::{BusError, Public};
use goodput_fleet::places::FENCE;
use goodput_fleet::{Left, Limits, Role, Sealed, Task, Unreadable};
use goodput_model::Bytes;
use goodput_remote::Access;
use tokio::sync::Mutex;

use super::called::Called;
use super::heed::Heed;
use super::purse::Purse;
use crate::commands::fleet::held::Held;
use crate::commands::fleet::places::Places;
use crate::commands::fleet::saving::Saving;
use crate::commands::spent::Note;

/// This agent.
pub(super) struct Here<'a> {
    /// Its site.
    pub site: String,
    /// The word of its site on the bus.
    pub word: String,
    /// Tells it apart from others of the same name.
    pub session: String,
    /// What it takes part in, apart from what is left of the budget.
    pub limits: Limits,
    /// Its budget; none: without one.
    pub purse: Option<Purse>,
    /// How it logs in to hosts without an agent.
    pub access: Access,
    /// Where its records go.
    pub saving: &'a Saving,
    /// The key whose signature a task needs; none: it takes any task.
    pub trust: Option<Public>,
    /// The bus.
    pub places: &'a Places,
    /// Its name, and the clock of the bus.
    pub held: &'a Held<'a>,
    /// The newest coordinator that it knows of.
    pub heed: Heed,
    /// The tasks that it was called for.
    pub called: Called,
    /// The tasks that this process has begun to measure, and whose outcome is not published.
    pub measuring: RefCell<HashSet<String>>,
    /// The right to be in a test: it is in one at a time.
    pub turn: Arc<Mutex<()>>,
}

impl Here<'_> {
    /// The limits as they are now, to be announced.
    ///
    /// # Errors
    /// Nobody knows what is left of the budget.
    pub async fn limits(&self) -> Result<Limits> {
        let left = self.left().await?.map(|left| left.bytes());
        Ok(Limits { left, ..self.limits.clone() })
    }

    async fn left(&self) -> Result<Option<Left>> {
        match &self.purse {
            Some(purse) => Ok(Some(purse.left().await?)),
            None => Ok(None),
        }
    }

    /// What is left of the budget, for a task in which this agent takes part; none: it has no budget.
    ///
    /// # Errors
    /// The task is beyond its limits, or nobody knows what is left of the budget.
    pub async fn admit(&self, task: &Task) -> Result<Option<Bytes>> {
        let left = self.left().await?;
        let of_budget = || left.as_ref().and_then(|left| left.refuse(&self.site, task));
        match self.limits.refuse(&self.site, task).or_else(of_budget) {
            Some(why) => bail!(why),
            None => Ok(left.map(|left| left.bytes())),
        }
    }

    /// Notes what a test may cost at most, if there is a budget, of which this is `left`.
    ///
    /// # Errors
    /// The budget would not count it.
    pub async fn begin(&self, task: &Task, left: Option<Bytes>) -> Result<Option<Note>> {
        match self.purse.as_ref().zip(left) {
            Some((purse, left)) => purse.begin(task.most_bytes().unwrap_or(left)).await.map(Some),
            None => Ok(None),
        }
    }

    /// Notes what a test that goes on costs at most for the moment.
    pub async fn mark(&self, note: &Note, bytes: Bytes) {
        if let Some(purse) = &self.purse {
            purse.mark(note, bytes).await;
        }
    }

    /// Notes what a test did cost.
    pub async fn settle(&self, note: Option<Note>, bytes: Bytes) {
        if let Some((purse, note)) = self.purse.as_ref().zip(note) {
            purse.settle(note, bytes).await;
        }
    }

    /// The task in a message, if it is for this site and signed as it must be.
    pub fn opened(&self, sealed: &Sealed, role: Role) -> Result<Task, Unreadable> {
        if let Some(trust) = &self.trust {
            // Who has not signed must not be able to end a task of that name, so it has no id.
            let unsigned =
                |why: &str| Unreadable { id: None, why: format!("{why} (--trust {trust})") };
            sealed
                .check(|bytes, signature| trust.has_signed(bytes, signature))
                .map_err(unsigned)?;
        }
        Task::read(sealed.task.as_bytes(), role, &self.site, self.held.now_s())
    }

    /// Asks who coordinates. A copy of the stream may be behind, and then knows only of one that was seen before.
    pub async fn look(&self) -> Result<(), BusError> {
        if let Some(entry) = self.places.turns.entry(FENCE).await? {
            self.heed.see(entry.revision, entry.written_s);
        }
        Ok(())
    }

    /// Whether a coordinator gave it out that has a successor, who gives it out again.
    pub async fn is_stale(&self, task: &Task) -> Result<bool, BusError> {
        self.look().await?;
        Ok(self.heed.is_after(task.token))
    }
}
