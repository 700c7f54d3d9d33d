//! What the agents say of themselves: whether a task fits them, and whether they heed this coordinator.

use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use futures_util::future::join_all;
use goodput_fleet::{Announcement, Mesh, Task, fitted};
use tokio::sync::OnceCell;
use tokio::time::sleep;

use crate::commands::fleet::places::{BEAT, EXPIRY, Places};

/// How long a test may take beside its length, from the task to the outcome: longer than its agent allows itself, and
/// than it takes to start the agent again.
const BESIDE: Duration = Duration::from_secs(90);
/// How long the agents may take to be there that were started with this coordinator: one that was killed waits for its own
/// name.
const START: Duration = EXPIRY.saturating_add(BEAT);
/// How often it is looked for them.
const NEXT_LOOK: Duration = Duration::from_millis(300);

/// The agents of a mesh, as the coordinator sees them.
pub(in crate::commands::fleet) struct Agents<'a> {
    places: &'a Places,
    mesh: &'a Mesh,
    /// The public key that signs the tasks.
    signer: Option<String>,
    /// The token of this coordinator.
    token: u64,
    /// When this coordinator began.
    began: Instant,
    /// Filled once none of them is in a test of an earlier coordinator.
    are_free: OnceCell<()>,
}

impl<'a> Agents<'a> {
    /// As the coordinator with this token sees them, which begins now; `signer` is the public key of its signatures.
    pub fn new(places: &'a Places, mesh: &'a Mesh, signer: Option<String>, token: u64) -> Self {
        Self { places, mesh, signer, token, began: Instant::now(), are_free: OnceCell::new() }
    }

    /// Waits until none is in a test of an earlier coordinator, or begins one: a line or a server that sites share would
    /// be in two tests, and an agent that is called in a test of another one refuses.
    pub async fn wait_for_all(&self) -> Result<()> {
        let all = || async {
            let sites = self.mesh.sites.iter().filter(|site| !site.is_foreign);
            let heed = join_all(sites.map(|site| self.wait_for(&site.name))).await;
            heed.into_iter().collect()
        };
        self.are_free.get_or_try_init(all).await.copied()
    }

    /// Not for ever: the tests of an agent that never heeds this coordinator are given up.
    async fn wait_for(&self, site: &str) -> Result<()> {
        let asked = Instant::now();
        while let Some(Ok(agent)) = self.said(site).await?
            && !agent.heeds(self.token)
            && asked.elapsed() < patience(self.mesh.length_s)
        {
            sleep(NEXT_LOOK).await;
        }
        Ok(())
    }

    /// What the agent of a site says of itself, if there is one and it can be read.
    async fn said(&self, site: &str) -> Result<Option<Result<Announcement, String>>> {
        let entry = self.places.agents.entry(&word(site)?).await?;
        Ok(entry.map(|entry| Announcement::read(&entry.value)))
    }

    /// The task as both agents can carry it out, or why they can't.
    pub async fn fit(&self, task: &Task) -> Result<Result<Task, String>> {
        let mut agents = Vec::new();
        let with_agent = |site: &&String| !self.mesh.is_foreign(site);
        for site in [&task.near, &task.far].into_iter().filter(with_agent) {
            match self.agent(site, task.length_s).await? {
                Ok(agent) => agents.push(agent),
                Err(why) => return Ok(Err(why)),
            }
        }
        let fitted = fitted(task, &agents);
        let unfit = agents.iter().find_map(|agent| agent.unfit(&fitted, self.signer.as_deref()));
        Ok(unfit.map_or(Ok(fitted), Err))
    }

    /// What the agent of a site says of itself, once it heeds this coordinator; or why it can't be in a test of this length.
    async fn agent(&self, site: &str, length_s: f64) -> Result<Result<Announcement, String>> {
        let asked = Instant::now();
        loop {
            let why = match self.said(site).await? {
                // It may write for its own site only, so it may also not speak for another one.
                Some(Ok(agent)) if agent.site != site => {
                    Some(format!("the agent of {site} says that it is {}", agent.site))
                }
                Some(Ok(agent)) if agent.heeds(self.token) => return Ok(Ok(agent)),
                Some(Ok(_)) if asked.elapsed() < patience(length_s) => None,
                Some(Ok(_)) => Some(format!("the agent {site} still heeds an earlier coordinator")),
                Some(Err(why)) => Some(format!("what the agent {site} says of itself: {why}")),
                None if self.began.elapsed() < START => None,
                None => Some(format!("no agent {site} is connected")),
            };
            if let Some(why) = why {
                return Ok(Err(why));
            }
            sleep(NEXT_LOOK).await;
        }
    }
}

/// How long a test of this length may take, from the task to the outcome.
pub(super) fn patience(length_s: f64) -> Duration {
    Duration::from_secs_f64(length_s) + BESIDE
}

pub(super) fn word(site: &str) -> Result<String> {
    goodput_fleet::word(site).map_err(|why| anyhow!(why))
}
