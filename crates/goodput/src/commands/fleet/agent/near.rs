//! One test, from the near end: the far agent opens a server, this one measures with it, and the server is closed. A
//! server that is no goodput stands open, or is started by SSH for this test.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use goodput_engine::{Credentials, EngineError, Interrupt, Listener, OwnKey, Servers, Target};
use goodput_fleet::{Answer, Call, FORMAT, Farewell, Invitation, Sealed, Task, places};
use goodput_model::{Bytes, Record};
use goodput_remote::FarServer;
use goodput_wire::keys::{PrivateKey, PublicKey};
use goodput_wire::session::ServerIs;
use tokio::time::{sleep, timeout};

use super::by_ssh;
use super::calls::OPEN;
use super::here::Here;
use super::listener::BEGIN;
use super::metered::{Metered, Most};
use super::purse::Pace;
use super::target::{self, Far};
use crate::commands::fleet::places::word;
use crate::commands::fleet::saving;
use crate::commands::spent::Note;
use crate::far_end::of_started;

/// What the measurement may take beside its length: to connect, and for both ends to report.
const BESIDE: Duration = Duration::from_secs(40);
/// What a question may be on its way beside that.
const WAY: Duration = Duration::from_secs(2);

/// What a task may take beside the length of its test, once its agent has it: the server is opened, `by_ssh` or by another
/// agent, its client measures, the server is closed, and the record is saved.
pub(in crate::commands::fleet) fn beside(by_ssh: bool) -> Duration {
    let [open, close] = match by_ssh {
        true => [FarServer::START_TIME, FarServer::END_TIME],
        false => [OPEN + WAY, BEGIN + WAY],
    };
    open + BESIDE + close + saving::PATIENCE
}

/// The one server that has this key.
struct Invited(PublicKey);

impl Servers for Invited {
    fn find(&self, _: &Target) -> Result<ServerIs, EngineError> {
        Ok(ServerIs::Known { key: self.0, by: "the far agent's answer".into() })
    }

    fn remember(&self, _: &Target, _: PublicKey) {}
}

/// A server that waits for this test.
struct Opened {
    target: Target,
    credentials: Credentials,
    /// What the test may cost the far site.
    most: Option<Bytes>,
    /// A server that was started by SSH.
    started: Option<FarServer>,
}

/// Measures as the task says. An interrupt ends it early with what was measured so far.
pub(super) async fn carry_out(
    here: &Here<'_>,
    (task, sealed): (&Task, &Sealed),
    interrupt: &Interrupt,
    listener: &mut Listener<'_>,
) -> Result<Record> {
    let left = here.admit(task).await?;
    let far = target::of(task)?;
    let is_agent = matches!(far, Far::Agent(..));
    let note = here.begin(task, left).await?;
    let (cost, outcome) = match open(here, task, sealed, (far, interrupt)).await {
        Ok(opened) => {
            let test = Metered::new(task, least((left, &task.near), (opened.most, &task.far)));
            let outcome = tokio::select! {
                outcome = measured(&test, task, &opened, interrupt, listener) => outcome,
                never = mark(here, note.as_ref(), &test) => never,
            };
            if let Some(server) = opened.started {
                by_ssh::end(server).await;
            }
            (Some(test.bytes()), outcome)
        }
        Err(why) => (None, Err(why)),
    };
    here.settle(note, cost.unwrap_or(Bytes(0))).await;
    if is_agent {
        // Also without an answer: it may only have been lost.
        close(here, task, cost.map(|cost| cost.0)).await;
    }
    outcome
}

/// Notes from time to time what the test costs, for the case that this agent is killed: it would count with all that it could
/// cost. Never ends.
async fn mark<T>(here: &Here<'_>, note: Option<&Note>, test: &Metered<'_>) -> T {
    let Some(note) = note else { return std::future::pending().await };
    let mut pace = Pace::default();
    loop {
        sleep(pace.next_look()).await;
        if let Some(bytes) = pace.until_the_next(test.bytes()) {
            here.mark(note, bytes).await;
        }
    }
}

/// What both sites pay for, and whose budget ends first; absent: anything.
fn least(near: (Option<Bytes>, &str), far: (Option<Bytes>, &str)) -> Option<Most> {
    let both = [near, far].into_iter();
    let with_budget =
        both.filter_map(|(bytes, site)| Some(Most { bytes: bytes?, site: site.into() }));
    with_budget.min_by_key(|most| most.bytes.0)
}

/// Measures with this server.
async fn measured(
    test: &Metered<'_>,
    task: &Task,
    opened: &Opened,
    interrupt: &Interrupt,
    listener: &mut Listener<'_>,
) -> Result<Record> {
    let run = test.run(&opened.target, &opened.credentials, interrupt, listener);
    let outcome = timeout(Duration::from_secs_f64(task.length_s) + BESIDE, run).await;
    let beside_s = BESIDE.as_secs();
    outcome.with_context(|| format!("the test took {beside_s} s longer than its length"))?
}

/// Has a server listen. That of an agent will prove the key that the agent names.
async fn open(
    here: &Here<'_>,
    task: &Task,
    sealed: &Sealed,
    (far, interrupt): (Far, &Interrupt),
) -> Result<Opened> {
    match far {
        Far::Agent(target, _) => invited(here, task, sealed, target).await,
        Far::Server(target) => {
            let credentials = Credentials::default();
            Ok(Opened { target, credentials, most: None, started: None })
        }
        Far::BySsh(address, asked) => {
            let server = by_ssh::start(&address, &here.access, asked, interrupt).await?;
            let (target, credentials) = of_started(&task.target, &server)?;
            Ok(Opened { target, credentials, most: None, started: Some(server) })
        }
    }
}

/// Has the far agent listen.
async fn invited(here: &Here<'_>, task: &Task, sealed: &Sealed, target: Target) -> Result<Opened> {
    let own = PrivateKey::of(rand::random())?;
    let (sealed, key) = (sealed.clone(), own.public().to_string());
    let invitation = Invitation { format: FORMAT, sealed, key, can_be_asked: true };
    match ask(here, task, &Call::Open(invitation), OPEN).await? {
        Answer::Listening { port, key, most_bytes } => {
            let key = key.parse().context("the far agent's key can't be read")?;
            let servers = Arc::new(Invited(key));
            let own = OwnKey { key: Arc::new(own), asked: true, servers };
            Ok(Opened {
                target: Target { port, ..target },
                credentials: Credentials { key: Some(own), ..Credentials::default() },
                most: most_bytes.map(Bytes),
                started: None,
            })
        }
        Answer::Refused(why) => bail!(why),
        Answer::Closed | Answer::Continues(_) => {
            bail!("the agent {} gave an unexpected answer to this call", task.far)
        }
    }
}

/// Without an answer, the server closes by itself.
async fn close(here: &Here<'_>, task: &Task, bytes: Option<u64>) {
    let farewell = Farewell { task: task.id.clone(), bytes };
    if let Err(why) = ask(here, task, &Call::Close(farewell), BEGIN).await {
        tracing::debug!("the server of {} closes by itself: {why:#}", task.far);
    }
}

/// Asks the far agent, which may take so long.
async fn ask(here: &Here<'_>, task: &Task, call: &Call, patience: Duration) -> Result<Answer> {
    let word = word(&task.far)?;
    let subject = places::call(&word, &here.word);
    let asked = here.places.bus.ask(&subject, call, patience + WAY).await;
    let answer = match asked {
        Err(why) if why.is_away() => bail!(not_answered(&task.far, patience + WAY)),
        asked => asked?,
    };
    let Some(answer) = answer else { bail!("no agent {} is connected", task.far) };
    Answer::read(&answer)
        .map_err(|why| anyhow!("the answer of the agent {} can't be read: {why}", task.far))
}

/// What is said of a far agent that is not heard. Whoever asks it can't tell where that ends, but has NATS in this moment: the
/// task came from there.
fn not_answered(far: &str, patience: Duration) -> String {
    format!(
        "the agent {far} did not answer within {} s: it has ended, or NATS does not reach it",
        patience.as_secs()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smaller_budget_ends_a_test_and_has_the_name_of_its_site() {
        let most = |near, far| least((near, "a"), (far, "b")).map(|most| (most.bytes, most.site));
        assert_eq!(most(None, None), None);
        assert_eq!(most(Some(Bytes(7)), None), Some((Bytes(7), "a".into())));
        assert_eq!(most(Some(Bytes(7)), Some(Bytes(5))), Some((Bytes(5), "b".into())));
    }
}
