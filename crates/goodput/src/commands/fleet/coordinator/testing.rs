//! The tests of a turn: each task is put into its agent's queue unless the bus has an outcome, which is then waited for.
//! While the bus is away, everything is tried again: nothing here happens twice.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use futures_util::future::join_all;
use goodput_bus::Seed;
use goodput_engine::Interrupt;
use goodput_fleet::places::of_task;
use goodput_fleet::{
    End, Mesh, Outcome, Sealed, TASK_LIFE_S, Task, Tasks, UnreadableWish, Wanted, opening,
};
use tokio::time::sleep;

use super::agents::{Agents, patience_with, word};
use super::demand::{Asked, Demand};
use super::results::Results;
use crate::commands::fleet::fence::Fence;
use crate::commands::fleet::held::Held;
use crate::commands::fleet::places::{BEAT, EXPIRY, Places, STORED};
use crate::commands::fleet::trouble::Trouble;
use crate::screen;
use crate::speaker::now;

/// How often the time is looked at before a window: this host may sleep meanwhile.
const LOOK: Duration = Duration::from_secs(60);
/// Longest reason for giving a task up, characters: agents can put anything into it, and NATS takes only so much.
const MAX_REASON_CHARS: usize = 1000;
/// Who gives tasks up.
const COORDINATOR: &str = "the coordinator";

/// How the tests of a turn are made.
pub(in crate::commands::fleet) struct Testing<'a> {
    pub places: &'a Places,
    pub held: &'a Held<'a>,
    /// Between this coordinator and others.
    pub fence: Fence<'a>,
    /// Signs tasks; none: they are not signed.
    pub signer: Option<&'a Seed>,
    pub mesh: &'a Mesh,
    pub results: &'a Results<'a>,
    /// What someone asks for in between.
    pub demand: &'a Demand,
    pub interrupt: &'a Interrupt,
    /// What the agents say of themselves.
    pub agents: Agents<'a>,
    /// What all tests that go on have to wait for.
    pub trouble: RefCell<Trouble>,
}

/// The outcome of a task.
pub(in crate::commands::fleet) struct Found {
    pub outcome: Vec<u8>,
    /// It was there before this coordinator could ask for it.
    pub is_old: bool,
}

impl Testing<'_> {
    /// Makes all tests: one round after the other, the pairs of a round at the same time. `false`: the user ended it.
    pub async fn test(&self, tasks: &Tasks<'_>) -> Result<bool> {
        self.results.begin(tasks.count(), tasks.began_s());
        for round in tasks.rounds() {
            if !self.serve_demand().await? || !self.wait_for_window().await? {
                return Ok(false);
            }
            for pair in join_all(round.iter().map(|tests| self.pair(tests))).await {
                if !pair? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Waits until a round may begin, and says until when. `false`: the user ended it.
    async fn wait_for_window(&self) -> Result<bool> {
        let mut said = None;
        loop {
            let Some((wait_s, window)) = opening(self.mesh, self.held.now_s()) else {
                return Ok(!self.interrupt.is_raised());
            };
            if said.replace(window) != Some(window) {
                let (now, opens) = (now(), window.opens_at());
                screen::line(format_args!("{now}  waiting until {opens} UTC (window {window})"))?;
            }
            if !self.idle(Duration::from_secs_f64(wait_s).min(LOOK)).await? {
                return Ok(false);
            }
        }
    }

    /// Waits, or makes a test that someone asks for meanwhile. `false`: the user ended it.
    pub async fn idle(&self, wait: Duration) -> Result<bool> {
        let asked = tokio::select! {
            () = sleep(wait) => return Ok(true),
            () = self.interrupt.raised() => return Ok(false),
            asked = self.demand.next() => asked,
        };
        self.on_demand(asked).await.map(|made| made.is_some())
    }

    /// Makes the tests that someone has asked for by now. `false`: the user ended it.
    async fn serve_demand(&self) -> Result<bool> {
        while let Some(asked) = self.demand.now() {
            if self.on_demand(asked).await?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Makes a test that someone asks for. None: the user ended it.
    pub async fn on_demand(&self, asked: Asked) -> Result<Option<()>> {
        if let Some((task, why)) = self.wanted(&asked.body) {
            let Some(found) = self.outcome(&task, why.as_deref()).await? else { return Ok(None) };
            match why.filter(|_| !found.is_old) {
                Some(why) => self.results.add_refused(&task, &why)?,
                None => tokio::select! {
                    added = self.results.add_wanted(&task, &found.outcome, found.is_old) => added?,
                    () = self.interrupt.raised() => return Ok(None),
                },
            }
        }
        asked.done().await;
        Ok(Some(()))
    }

    /// The task of a wish, and why it is not made, if it is not: whoever asks waits at the near site that he knows. None
    /// if nobody knows where that is.
    fn wanted(&self, wish: &[u8]) -> Option<(Task, Option<String>)> {
        let wanted = match Wanted::read(wish) {
            Ok(wanted) => wanted,
            Err(UnreadableWish { why, unmade }) => {
                screen::say(format_args!("goodput: a wish for a test is refused: {why}"));
                return Some((*unmade?, Some(format!("the coordinator refuses the wish: {why}"))));
            }
        };
        let why = match wanted.task(self.mesh) {
            Ok(task) if task.near == wanted.near => return Some((task, None)),
            Ok(_) => "the coordinator has another mesh file".into(),
            Err(why) => why,
        };
        Some((wanted.unmade(), Some(why)))
    }

    /// Makes the tests of a pair, one after the other.
    async fn pair(&self, tests: &[Task]) -> Result<bool> {
        for task in tests {
            let Some(found) = self.outcome(task, None).await? else { return Ok(false) };
            tokio::select! {
                added = self.results.add(task, &found.outcome, self.held.now_s()) => added?,
                () = self.interrupt.raised() => return Ok(false),
            }
            if !found.is_old {
                tokio::select! {
                    () = sleep(Duration::from_secs_f64(self.mesh.pause_s)) => {}
                    () = self.interrupt.raised() => return Ok(false),
                }
            }
        }
        Ok(true)
    }

    /// The outcome of a task; none, if the user ended the wait. It is not made if there is a `reason`.
    async fn outcome(&self, task: &Task, reason: Option<&str>) -> Result<Option<Found>> {
        let mut was_away = false;
        loop {
            let tried = tokio::select! {
                tried = self.tried(task, reason, was_away) => tried,
                () = self.interrupt.raised() => return Ok(None),
            };
            match tried {
                Ok(found) => {
                    // An earlier try may have asked for it.
                    let is_old = found.is_old && !was_away;
                    return Ok(Some(Found { is_old, ..found }));
                }
                Err(why) => {
                    // Its tasks would be refused from now on. While the bus is away, nobody knows.
                    if matches!(self.fence.is_ours().await, Ok(false)) {
                        self.fence.check().await?;
                    }
                    let (sender, receiver) = (task.sender(), task.receiver());
                    let passed = self.trouble.borrow_mut().pass(why);
                    passed.with_context(|| format!("the test {sender} → {receiver}"))?;
                }
            }
            was_away = true;
            sleep(BEAT).await;
        }
    }

    async fn tried(&self, task: &Task, reason: Option<&str>, was_away: bool) -> Result<Found> {
        let place = place(task)?;
        if let Some(outcome) = self.places.outcomes.get(&place).await? {
            return Ok(Found { outcome, is_old: true });
        }
        if let Some(why) = reason {
            let outcome = self.given_up(task, why.into()).await?;
            return Ok(Found { outcome, is_old: false });
        }
        // Whoever is not sure of the lease may have a successor, who decides.
        self.held.wait_until_sure().await;
        self.agents.wait_for_all().await?;
        let mut fit = self.agents.fit(task).await?;
        if fit.is_err() && was_away {
            // The names of agents expire while the bus is away, and come back with them.
            sleep(2 * EXPIRY).await;
            fit = self.agents.fit(task).await?;
        }
        // What an agent has begun is its own.
        let is_begun = self.places.begun.entry(&place).await?.is_some();
        let outcome = match fit {
            Err(why) if !is_begun => self.given_up(task, why).await?,
            fit => self.carried_out(&fit.unwrap_or_else(|_| task.clone())).await?,
        };
        Ok(Found { outcome, is_old: false })
    }

    /// The task as it goes over the bus.
    fn sealed(&self, task: &Task) -> Result<Sealed> {
        let expires_s = self.held.now_s() + TASK_LIFE_S;
        let granted = Task { expires_s, token: self.fence.token, ..task.clone() };
        let mut sealed = Sealed::of(&granted).map_err(|why| anyhow!(why))?;
        if let Some(signer) = self.signer {
            sealed.signature = Some(signer.sign(&sealed.signed_bytes())?);
        }
        Ok(sealed)
    }

    async fn carried_out(&self, task: &Task) -> Result<Vec<u8>> {
        let outcomes = &self.places.outcomes;
        let place = place(task)?;
        let mut heard = outcomes.hear(&place).await?;
        // Whoever is not sure of the lease may have a successor.
        self.held.wait_until_sure().await;
        self.fence.check().await?;
        // What another coordinator put there is dropped for its token, and must not stand in the way of this.
        let name = format!("{}@{}", task.id, self.fence.token);
        self.places.tasks.put(&word(&task.near)?, &name, &self.sealed(task)?).await?;
        let patience = patience_with(task);
        let began = Instant::now();
        while began.elapsed() < patience {
            tokio::select! {
                // What is heard may be refused: only the stream says which outcome is the first.
                _ = heard.next() => sleep(STORED).await,
                () = sleep(BEAT) => {}
            }
            if let Some(outcome) = outcomes.get(&place).await? {
                return Ok(outcome);
            }
        }
        let (near, seconds) = (&task.near, patience.as_secs());
        self.given_up(task, format!("the agent {near} gave no answer within {seconds} s")).await
    }

    /// Gives a task up, unless it has an outcome meanwhile. An agent that takes the task later finds this one.
    async fn given_up(&self, task: &Task, why: String) -> Result<Vec<u8>> {
        self.fence.check().await?;
        let why = why.chars().take(MAX_REASON_CHARS).collect();
        let (outcomes, place) = (&self.places.outcomes, place(task)?);
        outcomes.put_once(&place, &Outcome::new(&task.id, COORDINATOR, End::Reason(why))).await?;
        let found = outcomes.get(&place).await?;
        found.ok_or_else(|| anyhow!("the outcome of {} is gone", task.id))
    }
}

/// Where the outcome of a task is.
fn place(task: &Task) -> Result<String> {
    Ok(of_task(&word(&task.near)?, &task.id))
}
