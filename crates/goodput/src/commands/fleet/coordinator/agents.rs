//! What the agents say of themselves: whether a task fits them, and whether they heed this coordinator.

use std::time::{Duration, Instant};

use anyhow::Result;
use futures_util::future::join_all;
use goodput_fleet::{Announcement, Mesh, SSH, Task, fitted};
use tokio::sync::OnceCell;
use tokio::time::sleep;

use crate::commands::fleet::agent::beside;
use crate::commands::fleet::places::{BEAT, DELIVERED_AGAIN, EXPIRY, Places, word};

/// How long the agents may take to be there that were started with this coordinator: one that was killed waits for its own
/// name.
const START: Duration = EXPIRY.saturating_add(BEAT);
/// How long it may take until an agent has a task: one that is started again gets it once more.
const AGAIN: Duration = START.saturating_add(DELIVERED_AGAIN);
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

    /// How long any test of this mesh may take; one that someone asks for in between may be longer.
    fn longest(&self) -> Duration {
        let by_ssh = self.mesh.sites.iter().any(|site| site.by_ssh.is_some());
        patience(self.mesh.length_s, by_ssh)
    }

    /// Not for ever: the tests of an agent that never heeds this coordinator are given up.
    async fn wait_for(&self, site: &str) -> Result<()> {
        let asked = Instant::now();
        while let Some(Ok(agent)) = self.said(site).await?
            && !agent.heeds(self.token)
            && asked.elapsed() < self.longest()
        {
            sleep(NEXT_LOOK).await;
        }
        Ok(())
    }

    /// What the agent of a site says of itself, if there is one and it can be read.
    async fn said(&self, site: &str) -> Result<Option<Result<Announcement, Unread>>> {
        let entry = self.places.agents.entry(&word(site)?).await?;
        Ok(entry.map(|entry| {
            let is_one = Announcement::is_one(&entry.value);
            Announcement::read(&entry.value).map_err(|why| Unread { why, is_one })
        }))
    }

    /// The task as both agents can carry it out, or why they can't.
    pub async fn fit(&self, task: &Task) -> Result<Result<Task, String>> {
        let mut agents = Vec::new();
        let with_agent = |site: &&String| !self.mesh.is_foreign(site);
        for site in [&task.near, &task.far].into_iter().filter(with_agent) {
            match self.agent(site, patience_with(task)).await? {
                Ok(agent) => agents.push(agent),
                Err(why) => return Ok(Err(why)),
            }
        }
        let fitted = fitted(task, &agents);
        let unfit = agents.iter().find_map(|agent| agent.unfit(&fitted, self.signer.as_deref()));
        Ok(unfit.map_or(Ok(fitted), Err))
    }

    /// What the agent of a site says of itself, once it heeds this coordinator, for which it has at least this time; or why
    /// it can't be in a test.
    async fn agent(&self, site: &str, at_least: Duration) -> Result<Result<Announcement, String>> {
        let (asked, most) = (Instant::now(), self.longest().max(at_least));
        loop {
            let why = match self.said(site).await? {
                // It may write for its own site only, so it may also not speak for another one.
                Some(Ok(agent)) if agent.site != site => {
                    Some(format!("the agent of {site} says that it is {}", agent.site))
                }
                Some(Ok(agent)) if agent.heeds(self.token) => return Ok(Ok(agent)),
                Some(Ok(_)) if asked.elapsed() < most => None,
                Some(Ok(_)) => Some(format!("the agent {site} still heeds an earlier coordinator")),
                // Its agent puts its own there again, or it expires.
                Some(Err(Unread { is_one: false, .. })) if asked.elapsed() < EXPIRY => None,
                Some(Err(Unread { why, .. })) => {
                    let bucket = self.places.agents.bucket();
                    Some(format!("what the agent {site} says of itself (bucket {bucket}): {why}"))
                }
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

/// What an agent has said and this version can't read.
struct Unread {
    why: String,
    /// An agent has said it, of whatever version.
    is_one: bool,
}

/// How long a test of this length may take, from the task to the outcome: what its agent allows itself, once it has it.
/// `by_ssh`: a server is started by SSH for it.
fn patience(length_s: f64, by_ssh: bool) -> Duration {
    AGAIN + Duration::from_secs_f64(length_s) + beside(by_ssh)
}

/// The same of a task.
pub(super) fn patience_with(task: &Task) -> Duration {
    patience(task.length_s, task.target.starts_with(SSH))
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_remote::FarServer;

    #[test]
    fn a_host_by_ssh_has_the_time_that_its_login_may_take() {
        let text = "[site.a]\n[site.b]\ntarget = \"b\"\n[site.x]\nssh = \"me@x\"\n";
        let mesh = Mesh::parse("x", text).unwrap();
        let task = |far| goodput_fleet::task_between(&mesh, "t", "a", far).unwrap();
        let [by_agent, by_ssh] = ["b", "x"].map(|far| patience_with(&task(far)));
        let own = Duration::from_secs_f64(mesh.length_s);
        assert!(by_ssh > own + AGAIN + FarServer::START_TIME + FarServer::END_TIME);
        assert!(by_agent > own + AGAIN && by_agent < by_ssh);
    }
}
