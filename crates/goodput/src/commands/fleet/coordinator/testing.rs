//! The tests of a turn: each task is put into its agent's queue unless the bus has an outcome, which is then waited for.
//! While the bus is away, everything is tried again: nothing here happens twice.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use futures_util::future::join_all;
use goodput_bus::{Published, Seed};
use goodput_engine::Interrupt;
use goodput_fleet::places::of_task;
use goodput_fleet::{
    End, Mesh, Outcome, Sealed, TASK_LIFE_S, Task, Tasks, UnreadableWish, Wanted, has_window,
    opening,
};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::sleep;

use super::agents::{Agents, patience_with};
use super::demand::{Asked, Demand};
use super::printed::Printed;
use super::results::Results;
use crate::commands::fleet::fence::Fence;
use crate::commands::fleet::held::Held;
use crate::commands::fleet::places::{BEAT, EXPIRY, Places, STORED, word};
use crate::commands::fleet::trouble::Trouble;
use crate::screen;
use crate::speaker::now;

/// How often the time is looked at while something is waited for.
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
    /// For outcomes that are at hand.
    pub room: Semaphore,
    /// How far the outcomes of the turn are printed.
    pub printed: Printed<'a>,
}

/// Outcomes that are at hand at the same time, each with its record. Hundreds may end at once, and a history may be slow: the
/// others are left on the bus.
const MOST_AT_HAND: usize = 16;

/// An outcome that is at hand, as it came.
struct AtHand<'a> {
    outcome: Published,
    _room: SemaphorePermit<'a>,
}

/// The outcome of a task.
struct Found<'a> {
    at_hand: AtHand<'a>,
    /// It was there before this coordinator could ask for it.
    pub is_old: bool,
}

impl Testing<'_> {
    /// Room for outcomes.
    pub fn room() -> Semaphore {
        Semaphore::new(MOST_AT_HAND)
    }

    /// Makes all tests: one round after the other, the pairs of a round at the same time. `false`: the user ended it.
    pub async fn test(&self, tasks: &Tasks<'_>) -> Result<bool> {
        self.results.begin(tasks.count(), tasks.began_s());
        for round in tasks.rounds() {
            let mut left: Vec<&[Task]> = round.iter().map(Vec::as_slice).collect();
            while !left.is_empty() {
                if !self.serve_demand().await? || !self.wait_for_window().await? {
                    return Ok(false);
                }
                let pairs = join_all(left.into_iter().map(|tests| self.pair(tests))).await;
                let Some(rest) = pairs.into_iter().collect::<Result<Option<Vec<_>>>>()? else {
                    return Ok(false);
                };
                left = rest.into_iter().filter(|tests| !tests.is_empty()).collect();
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
            if !self.idle(wait_s).await? {
                return Ok(false);
            }
        }
    }

    /// Waits for this long, seconds, but not longer than until the time is looked at again; or makes a test that someone asks for
    /// meanwhile. `false`: the user ended it.
    pub async fn idle(&self, wait_s: f64) -> Result<bool> {
        let asked = tokio::select! {
            () = sleep(until_the_next_look(wait_s)) => return Ok(true),
            () = self.interrupt.raised() => return Ok(false),
            asked = self.demand.next() => asked,
        };
        self.on_demand(asked).await.map(|made| made.is_some())
    }

    /// Makes the tests that someone has asked for by now. `false`: the user ended it.
    async fn serve_demand(&self) -> Result<bool> {
        loop {
            let asked = tokio::select! {
                asked = self.demand.now() => asked,
                () = self.interrupt.raised() => return Ok(false),
            };
            let Some(asked) = asked else { return Ok(true) };
            if self.on_demand(asked).await?.is_none() {
                return Ok(false);
            }
        }
    }

    /// Makes a test that someone asks for. None: the user ended it.
    pub async fn on_demand(&self, asked: Asked) -> Result<Option<()>> {
        if let Some((task, why)) = self.wanted(&asked.body) {
            let Some(found) = self.outcome(&task, why.as_deref()).await? else { return Ok(None) };
            match why.filter(|_| !found.is_old) {
                Some(why) => self.results.add_refused(&task, &why)?,
                None => tokio::select! {
                    added = self.results.add_wanted(&task, &found.at_hand.outcome.body, found.is_old) => added?,
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

    /// Makes the tests of a pair, one after the other, until there is no window for the next one: those that are left. None: the
    /// user ended it.
    async fn pair<'t>(&self, tests: &'t [Task]) -> Result<Option<&'t [Task]>> {
        for (number, task) in tests.iter().enumerate() {
            // The one before may have taken longer than it should.
            if number > 0 && !has_window(self.mesh, self.held.now_s()) {
                return Ok(Some(&tests[number..]));
            }
            let Some(found) = self.outcome(task, None).await? else { return Ok(None) };
            let Published { body, stored_s } = &found.at_hand.outcome;
            let is_printed = self.printed.was_before(*stored_s);
            let added = async {
                self.results.add(task, body, self.held.now_s(), is_printed).await?;
                self.printed.note(*stored_s).await;
                anyhow::Ok(())
            };
            tokio::select! {
                added = added => added?,
                () = self.interrupt.raised() => return Ok(None),
            }
            let is_old = found.is_old;
            drop(found);
            if !is_old {
                tokio::select! {
                    () = sleep(Duration::from_secs_f64(self.mesh.pause_s)) => {}
                    () = self.interrupt.raised() => return Ok(None),
                }
            }
        }
        Ok(Some(&[]))
    }

    /// The outcome of a task; none, if the user ended the wait. It is not made if there is a `reason`.
    async fn outcome(&self, task: &Task, reason: Option<&str>) -> Result<Option<Found<'_>>> {
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

    /// The outcome at this place of the bus, once there is room for one.
    async fn at_hand(&self, place: &str) -> Result<Option<AtHand<'_>>> {
        let room = self.room.acquire().await?;
        let outcome = self.places.outcomes.get(place).await?;
        Ok(outcome.map(|outcome| AtHand { outcome, _room: room }))
    }

    async fn tried(&self, task: &Task, reason: Option<&str>, was_away: bool) -> Result<Found<'_>> {
        let place = place(task)?;
        if let Some(at_hand) = self.at_hand(&place).await? {
            return Ok(Found { at_hand, is_old: true });
        }
        if let Some(why) = reason {
            let at_hand = self.given_up(task, why.into()).await?;
            return Ok(Found { at_hand, is_old: false });
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
        let at_hand = match fit {
            Err(why) if !is_begun => self.given_up(task, why).await?,
            fit => self.carried_out(&fit.unwrap_or_else(|_| task.clone())).await?,
        };
        Ok(Found { at_hand, is_old: false })
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

    async fn carried_out(&self, task: &Task) -> Result<AtHand<'_>> {
        let place = place(task)?;
        let mut heard = self.places.outcomes.hear(&place).await?;
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
            if let Some(at_hand) = self.at_hand(&place).await? {
                return Ok(at_hand);
            }
        }
        let (near, seconds) = (&task.near, patience.as_secs());
        self.given_up(task, format!("the agent {near} gave no answer within {seconds} s")).await
    }

    /// Gives a task up, unless it has an outcome meanwhile. An agent that takes the task later finds this one, and one that has
    /// begun it is found here, unless a copy of the streams was behind.
    async fn given_up(&self, task: &Task, why: String) -> Result<AtHand<'_>> {
        self.fence.check().await?;
        let why = why.chars().take(MAX_REASON_CHARS).collect();
        let (outcomes, place) = (&self.places.outcomes, place(task)?);
        let outcome = Outcome::new(&task.id, COORDINATOR, End::Reason(why));
        if outcomes.put_once(&place, &outcome).await? {
            match self.places.begun.entry(&place).await {
                Ok(Some(_)) => screen::say(format_args!("goodput: {}", perhaps_begun(task))),
                Ok(None) => {}
                Err(why) => tracing::debug!("{why}"),
            }
        }
        let found = self.at_hand(&place).await?;
        found.ok_or_else(|| anyhow!("the outcome of {} is gone", task.id))
    }
}

/// How long to wait for something in so many seconds. Each minute at least, the time is looked at: this host may have slept
/// meanwhile, and a server's clock may have been set.
fn until_the_next_look(wait_s: f64) -> Duration {
    Duration::try_from_secs_f64(wait_s).map_or(LOOK, |wait| wait.min(LOOK))
}

/// A test that is given up, and that its agent may measure all the same.
fn perhaps_begun(task: &Task) -> String {
    let (near, pair) = (&task.near, format!("{} → {}", task.sender(), task.receiver()));
    format!(
        "the agent {near} may just have begun the test {pair}, which was given up; if so, only the history of {near} gets its record"
    )
}

/// Where the outcome of a task is.
fn place(task: &Task) -> Result<String> {
    Ok(of_task(&word(&task.near)?, &task.id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_was_given_up_and_may_have_begun_is_said() {
        let mesh = Mesh::parse("x", "[site.a]\n[site.b]\ntarget = \"b\"\n").unwrap();
        let task = goodput_fleet::task_between(&mesh, "t", "a", "b").unwrap();
        let said = perhaps_begun(&task);
        assert!(said.contains("the agent a may just have begun the test a → b"), "{said}");
    }

    #[test]
    fn the_time_is_looked_at_each_minute_however_long_is_waited() {
        assert_eq!(until_the_next_look(2.5), Duration::from_millis(2500));
        for long in [60.0, 3600.0, 1e300, f64::INFINITY] {
            assert_eq!(until_the_next_look(long), LOOK, "{long}");
        }
    }
}
