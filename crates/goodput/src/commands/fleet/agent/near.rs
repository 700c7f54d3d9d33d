//! One test, from the near end: the far agent opens a server, this one measures with it, and the server is closed.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use goodput_engine::{Client, Credentials, EngineError, Interrupt, Listener, OwnKey};
use goodput_engine::{Servers, Target, conclude, measure};
use goodput_fleet::{Answer, Call, FORMAT, Invitation, Task};
use goodput_model::{Length, Plan, Record};
use goodput_wire::keys::{PrivateKey, PublicKey};
use goodput_wire::protocols::goodput::PROTOCOL;
use goodput_wire::session::ServerIs;
use tokio::time::timeout;

use super::here::Here;
use crate::commands::fleet::places::calls_of;
use crate::commands::measured;

/// What a test may take beside its length: to connect, and for both ends to report.
const BESIDE: Duration = Duration::from_secs(40);

/// The one server that has this key.
struct Invited(PublicKey);

impl Servers for Invited {
    fn find(&self, _: &Target) -> Result<ServerIs, EngineError> {
        Ok(ServerIs::Known { key: self.0, by: "the far agent's answer".into() })
    }

    fn remember(&self, _: &Target, _: PublicKey) {}
}

/// Measures as the task says. An interrupt ends it early with what was measured so far.
pub(super) async fn carry_out(
    here: &Here<'_>,
    task: &Task,
    interrupt: &Interrupt,
    listener: &mut Listener<'_>,
) -> Result<Record> {
    if task.length_s > here.max_duration_s {
        let (site, most) = (&here.site, here.max_duration_s);
        bail!("{site} takes part in tests of at most {most} s (--max-duration)");
    }
    let mut target: Target = task.target.parse()?;
    if target.protocol.id != PROTOCOL.id {
        bail!("{} is not a goodput server; agents test with each other only", task.target);
    }
    let own = PrivateKey::of(rand::random())?;
    let opened = open(here, task, &target, &own).await;
    if opened.is_err() {
        // Only its answer may have been lost.
        close(here, task).await;
    }
    let (port, key) = opened?;
    target.port = port;
    let own = OwnKey { key: Arc::new(own), asked: true, servers: Arc::new(Invited(key)) };
    let credentials = Credentials { key: Some(own), ..Credentials::default() };
    let run = timeout(
        Duration::from_secs_f64(task.length_s) + BESIDE,
        test(task, &target, &credentials, interrupt, listener),
    );
    let outcome = run.await;
    close(here, task).await;
    let beside_s = BESIDE.as_secs();
    outcome.with_context(|| format!("the test took {beside_s} s longer than its length"))?
}

async fn test(
    task: &Task,
    target: &Target,
    credentials: &Credentials,
    interrupt: &Interrupt,
    listener: &mut Listener<'_>,
) -> Result<Record> {
    let length = Length::Seconds(task.length_s);
    let plan = Plan { direction: task.direction, length, ..Plan::standard() };
    let started = measured::now();
    let mut client = Client::connect(target, &plan, credentials, interrupt, listener).await?;
    let measured = measure(&mut client, &plan, interrupt, listener).await;
    client.leave().await;
    Ok(conclude(measured?, &task.target, &started)?.record)
}

/// Has the far agent listen. Returns its port, and the key that its server will prove.
async fn open(
    here: &Here<'_>,
    task: &Task,
    target: &Target,
    own: &PrivateKey,
) -> Result<(u16, PublicKey)> {
    let invitation = Invitation {
        format: FORMAT,
        task: task.id.clone(),
        near: here.site.clone(),
        key: own.public().to_string(),
        port: names_port(target).then_some(target.port),
        length_s: task.length_s,
    };
    match ask(here, task, &Call::Open(invitation)).await? {
        Answer::Listening { port, key } => {
            Ok((port, key.parse().context("the far agent's key can't be read")?))
        }
        Answer::Refused(why) => bail!(why),
        Answer::Closed => bail!("the agent {} closed its server instead of opening it", task.far),
    }
}

/// Without an answer, the server closes by itself.
async fn close(here: &Here<'_>, task: &Task) {
    if let Err(why) = ask(here, task, &Call::Close(task.id.clone())).await {
        tracing::debug!("the server of {} closes by itself: {why:#}", task.far);
    }
}

async fn ask(here: &Here<'_>, task: &Task, call: &Call) -> Result<Answer> {
    let word = goodput_fleet::word(&task.far).map_err(|why| anyhow!(why))?;
    let answer = here.places.bus.ask(&calls_of(&word), call).await?;
    let Some(answer) = answer else { bail!("no agent {} is connected", task.far) };
    Answer::read(&answer).map_err(|why| anyhow!("the answer of the agent {} is {why}", task.far))
}

/// Whether the mesh file names the port of the far site. Without one, its agent takes any that is free.
fn names_port(target: &Target) -> bool {
    let text = target.text.split_once("://").map_or(&*target.text, |(_, rest)| rest);
    let text = text.trim_end_matches('/');
    text != target.host && text != format!("[{}]", target.host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_named_or_not() {
        for (text, named) in [
            ("b.example", false),
            ("b.example:7487", true),
            ("goodput://b:9/", true),
            ("[fe80::1]:7487", true),
            ("[fe80::1]", false),
            ("goodput://fe80::7487", false),
            ("192.0.2.1", false),
        ] {
            assert_eq!(names_port(&text.parse().unwrap()), named, "{text}");
        }
    }
}
