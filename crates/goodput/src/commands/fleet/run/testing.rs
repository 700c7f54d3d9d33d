//! The tests of a turn: each task is put into its agent's queue unless the bus has an outcome, which is then waited for.
//! While the bus is away, everything is tried again: nothing here happens twice.

use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use futures_util::future::join_all;
use goodput_engine::Interrupt;
use goodput_fleet::{Announcement, End, Mesh, Outcome, Task, opens_in_s};
use tokio::time::sleep;

use super::results::Results;
use crate::commands::fleet::held::Held;
use crate::commands::fleet::places::{BEAT, EXPIRY, Places};
use crate::exit;

/// How long a test may take beside its length, from the task to the outcome: longer than its agent allows itself, and
/// than it takes to start the agent again.
const BESIDE: Duration = Duration::from_secs(90);
/// What the bus may take to store what it has already passed on.
const STORED: Duration = Duration::from_millis(50);
/// How often the time is looked at before a window: this host may sleep meanwhile.
const LOOK: Duration = Duration::from_secs(60);
/// Who gives tasks up.
const COORDINATOR: &str = "the coordinator";

/// How the tests of a turn are made.
pub(super) struct Testing<'a> {
    pub places: &'a Places,
    pub held: &'a Held<'a>,
    pub mesh: &'a Mesh,
    pub results: &'a Results<'a>,
    pub interrupt: &'a Interrupt,
}

/// The outcome of a task.
struct Found {
    outcome: Vec<u8>,
    /// It was there before this coordinator asked for it.
    is_old: bool,
}

impl Testing<'_> {
    /// Makes all tests: one round after the other, the pairs of a round at the same time. `false`: the user ended it.
    pub async fn test(&self, rounds: &[Vec<Vec<Task>>]) -> Result<bool> {
        let all = rounds.iter().flatten().map(Vec::len).sum();
        for round in rounds {
            if !self.wait_for_window().await {
                return Ok(false);
            }
            for pair in join_all(round.iter().map(|tests| self.pair(tests, all))).await {
                if !pair? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Waits until a round may begin. `false`: the user ended it.
    async fn wait_for_window(&self) -> bool {
        loop {
            let wait_s = opens_in_s(self.mesh, self.held.now_s());
            tokio::select! {
                // Without a wait, this comes first.
                biased;
                () = self.interrupt.raised() => return false,
                () = sleep(Duration::from_secs_f64(wait_s).min(LOOK)) => {}
            }
            if wait_s <= 0.0 {
                return true;
            }
        }
    }

    /// Makes the tests of a pair, one after the other.
    async fn pair(&self, tests: &[Task], all: usize) -> Result<bool> {
        for task in tests {
            let Some(found) = self.outcome(task).await? else { return Ok(false) };
            self.results.add(task, &found.outcome, found.is_old, all)?;
            if !found.is_old {
                tokio::select! {
                    () = sleep(Duration::from_secs_f64(self.mesh.pause_s)) => {}
                    () = self.interrupt.raised() => return Ok(false),
                }
            }
        }
        Ok(true)
    }

    /// The outcome of a task; none, if the user ended the wait.
    async fn outcome(&self, task: &Task) -> Result<Option<Found>> {
        let mut was_away = false;
        loop {
            let tried = tokio::select! {
                tried = self.tried(task, was_away) => tried,
                () = self.interrupt.raised() => return Ok(None),
            };
            match tried {
                Ok(found) => return Ok(Some(found)),
                Err(why) => tracing::warn!("{}; trying again", exit::in_words(&why)),
            }
            was_away = true;
            sleep(BEAT).await;
        }
    }

    async fn tried(&self, task: &Task, was_away: bool) -> Result<Found> {
        if let Some(outcome) = self.places.outcomes.get(&task.id).await? {
            return Ok(Found { outcome, is_old: true });
        }
        // Whoever is not sure of the lease may have a successor, who decides.
        self.held.wait_until_sure().await;
        let mut unfit = self.unfit(task).await?;
        if unfit.is_some() && was_away {
            // The names of agents expire while the bus is away, and come back with them.
            sleep(2 * EXPIRY).await;
            unfit = self.unfit(task).await?;
        }
        // What an agent has begun is its own.
        let is_begun = self.places.begun.entry(&task.id).await?.is_some();
        let outcome = match unfit.filter(|_| !is_begun) {
            Some(why) => self.given_up(task, why).await?,
            None => self.carried_out(task).await?,
        };
        Ok(Found { outcome, is_old: false })
    }

    /// Why the agents of a task can't carry it out, if they can't.
    async fn unfit(&self, task: &Task) -> Result<Option<String>> {
        for site in [&task.near, &task.far] {
            let Some(entry) = self.places.agents.entry(&word(site)?).await? else {
                return Ok(Some(format!("no agent {site} is connected")));
            };
            let unfit = match Announcement::read(&entry.value) {
                Ok(agent) => agent.unfit(task),
                Err(why) => Some(format!("what the agent {site} says of itself is {why}")),
            };
            if unfit.is_some() {
                return Ok(unfit);
            }
        }
        Ok(None)
    }

    async fn carried_out(&self, task: &Task) -> Result<Vec<u8>> {
        let outcomes = &self.places.outcomes;
        let mut heard = outcomes.hear(&task.id).await?;
        // Whoever is not sure of the lease may have a successor.
        self.held.wait_until_sure().await;
        self.places.tasks.put(&word(&task.near)?, &task.id, task).await?;
        let patience = Duration::from_secs_f64(task.length_s) + BESIDE;
        let began = Instant::now();
        while began.elapsed() < patience {
            tokio::select! {
                // What is heard may be refused: only the stream says which outcome is the first.
                _ = heard.next() => sleep(STORED).await,
                () = sleep(BEAT) => {}
            }
            if let Some(outcome) = outcomes.get(&task.id).await? {
                return Ok(outcome);
            }
        }
        let (near, seconds) = (&task.near, patience.as_secs());
        self.given_up(task, format!("the agent {near} gave no answer within {seconds} s")).await
    }

    /// Gives a task up, unless it has an outcome meanwhile. An agent that takes the task later finds this one.
    async fn given_up(&self, task: &Task, why: String) -> Result<Vec<u8>> {
        let outcomes = &self.places.outcomes;
        outcomes.put_once(&task.id, &Outcome::new(&task.id, COORDINATOR, End::Reason(why))).await?;
        let found = outcomes.get(&task.id).await?;
        found.ok_or_else(|| anyhow!("the outcome of {} is gone", task.id))
    }
}

fn word(site: &str) -> Result<String> {
    goodput_fleet::word(site).map_err(|why| anyhow!(why))
}
