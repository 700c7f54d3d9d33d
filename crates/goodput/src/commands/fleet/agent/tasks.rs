//! The tasks of this agent: each is measured once, and has one outcome, wherever the agent or the bus is interrupted.

use anyhow::Result;
use goodput_bus::Delivery;
use goodput_engine::{Event, Interrupt};
use goodput_fleet::places::{news, of_task};
use goodput_fleet::{Delivered, End, Outcome, Role, Sealed, Step, Task, Unreadable, step};
use serde::Serialize;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::sleep;

use super::fitting::fitting;
use super::here::Here;
use super::near;
use super::outbox::Outbox;
use crate::commands::fleet::places::{BEAT, DELIVERED_AGAIN};
use crate::commands::fleet::trouble::Trouble;
use crate::{exit, screen};

/// Room in a message beside the outcome: subject and headers, bytes.
const HEADERS_BYTES: usize = 1024;

/// Works until it is interrupted. While the bus is away, tries again.
///
/// # Errors
/// This agent has no right to its tasks.
pub(super) async fn work(here: &Here<'_>, outbox: &Outbox, interrupt: &Interrupt) -> Result<()> {
    let mut trouble = Trouble::default();
    while !interrupt.is_raised() {
        if let Err(why) = take(here, outbox, interrupt, &mut trouble).await {
            trouble.pass(why)?;
            tokio::select! {
                () = sleep(BEAT) => {}
                () = interrupt.raised() => {}
            }
        }
    }
    Ok(())
}

/// Takes one task after the other, until it is interrupted. Each that is dealt with ends the trouble before it.
async fn take(
    here: &Here<'_>,
    outbox: &Outbox,
    interrupt: &Interrupt,
    trouble: &mut Trouble,
) -> Result<()> {
    for outcome in outbox.left()? {
        if !hand_over(here, outbox, &outcome, interrupt).await? {
            return Ok(());
        }
    }
    let mut inbox = here.places.tasks.inbox(&here.word, DELIVERED_AGAIN).await?;
    while !interrupt.is_raised() {
        tokio::select! {
            delivery = inbox.next() => {
                deal_with(here, outbox, delivery?, interrupt).await?;
                trouble.is_over();
            }
            () = interrupt.raised() => {}
        }
    }
    Ok(())
}

/// Without an acknowledgement, as after an error, it is delivered again.
async fn deal_with(
    here: &Here<'_>,
    outbox: &Outbox,
    delivery: Delivery,
    interrupt: &Interrupt,
) -> Result<()> {
    let sealed = Sealed::read(delivery.body());
    let opened = sealed.map_err(|why| Unreadable { id: None, why });
    let opened = opened.and_then(|sealed| Ok((here.opened(&sealed, Role::Near)?, sealed)));
    let outcome = match opened {
        Ok((task, sealed)) => outcome(here, outbox, (&task, &sealed), &delivery, interrupt).await?,
        Err(Unreadable { id: Some(id), why }) => {
            screen::say(format_args!("goodput: the task {id} is refused: {why}"));
            Some(Outcome::new(&id, &here.site, End::Reason(why)))
        }
        Err(Unreadable { id: None, why }) => {
            screen::say(format_args!("goodput: a message is refused as a task: {why}"));
            return Ok(delivery.refuse().await?);
        }
    };
    if let Some(outcome) = outcome {
        // A full disk must not lose it: the bus may still take it.
        if let Err(why) = outbox.keep(&outcome) {
            screen::say(format_args!("goodput: {}", exit::in_words(&why)));
        }
        let is_handed_over = tokio::select! {
            handed = hand_over(here, outbox, &outcome, interrupt) => handed?,
            never = keep(&delivery) => never,
        };
        if !is_handed_over {
            return Ok(());
        }
    }
    Ok(delivery.done().await?)
}

/// The outcome of a task; none, if the bus has one, or if another coordinator gives it out again.
async fn outcome(
    here: &Here<'_>,
    outbox: &Outbox,
    (task, sealed): (&Task, &Sealed),
    delivery: &Delivery,
    interrupt: &Interrupt,
) -> Result<Option<Outcome>> {
    let place = of_task(&here.word, &task.id);
    let is_published = here.places.outcomes.get(&place).await?.is_some();
    let kept = outbox.read(&task.id)?;
    let is_new = !is_published && kept.is_none();
    let ended = |end| Some(Outcome::new(&task.id, &here.site, end));
    // Before it looks who coordinates, and until the end: what this agent says that it heeds is then true.
    let turn = tokio::select! {
        turn = here.turn.lock(), if is_new => Some(turn),
        () = interrupt.raised(), if is_new => None,
        never = keep(delivery), if is_new => never,
        else => None,
    };
    if is_new && turn.is_none() {
        return Ok(ended(End::Reason(format!("the agent {} was ended", here.site))));
    }
    if is_new && here.is_stale(task).await? {
        let (id, pair) = (&task.id, pair(task));
        tracing::info!("the task {id} ({pair}) is one of a coordinator that has a successor");
        return Ok(None);
    }
    let begun = if is_new { begins(here, task, &place).await? } else { Begun::Now };
    let is_published = is_published || begun == Begun::TakenBack;
    let is_begun = begun != Begun::Now;
    let seen = Delivered { is_published, is_kept: kept.is_some(), is_begun };
    let outcome = match step(seen) {
        Step::Acknowledge => None,
        Step::Publish => kept,
        // NATS may have dropped its outcome since, because there was no room for all.
        // An outcome is final: while nobody knows whether there is a record, the task is delivered again.
        Step::GiveUp => match here.saving.record_of(&task.id).await? {
            Some(record) => ended(End::Record(serde_json::to_value(&record)?)),
            None => ended(End::Reason(given_up(here, begun, &place))),
        },
        Step::Measure => ended(measured(here, (task, sealed), delivery, interrupt).await),
    };
    drop(turn);
    Ok(outcome)
}

/// Who has begun a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Begun {
    /// This process, now.
    Now,
    /// An agent of this name, or this one before.
    Before,
    /// Nobody knows: what the key has, no agent has written.
    Unknown,
    /// Nobody: it has an outcome meanwhile.
    TakenBack,
}

impl Begun {
    /// What a key says that was there before: the session of who has made it.
    fn by(value: &[u8], session: &str) -> Self {
        match serde_json::from_slice::<String>(value) {
            Ok(by) if by == session => Self::Now,
            Ok(_) => Self::Before,
            Err(_) => Self::Unknown,
        }
    }
}

/// Whether this process begins the task: whoever makes the key does. If only the answer was lost, the key is there, but
/// nothing was measured.
async fn begins(here: &Here<'_>, task: &Task, place: &str) -> Result<Begun> {
    let begun = &here.places.begun;
    if here.measuring.borrow().contains(&task.id) {
        return Ok(Begun::Before);
    }
    let who = match begun.create(place, &here.session).await? {
        Some(_) => Begun::Now,
        None => match begun.entry(place).await? {
            Some(entry) => Begun::by(&entry.value, &here.session),
            None => Begun::Before,
        },
    };
    if who == Begun::Now {
        // Whoever gives a task up or takes it back looks for the key after that: one of both sees the other, unless the copy of
        // the stream that answers is behind.
        if here.places.outcomes.get(place).await?.is_some() {
            return Ok(Begun::TakenBack);
        }
        here.measuring.borrow_mut().insert(task.id.clone());
    }
    Ok(who)
}

/// Why a task is not made that may have been begun.
fn given_up(here: &Here<'_>, begun: Begun, place: &str) -> String {
    let site = &here.site;
    if begun != Begun::Unknown {
        return format!("the agent {site} ended while it was in this test");
    }
    let bucket = here.places.begun.bucket();
    let why = format!(
        "nobody knows whether this test was begun: the key {place} of the bucket {bucket} has a value that no agent has \
         written; find who else writes there"
    );
    screen::say(format_args!("goodput: {why}"));
    why
}

/// `a → b`
fn pair(task: &Task) -> String {
    format!("{} → {}", task.sender(), task.receiver())
}

/// Measures, and says meanwhile that it does.
async fn measured(
    here: &Here<'_>,
    (task, sealed): (&Task, &Sealed),
    delivery: &Delivery,
    interrupt: &Interrupt,
) -> End {
    let (tell, told) = unbounded_channel();
    let mut listener = move |event: Event| {
        // The record has all samples.
        if !matches!(event, Event::Sampled { .. }) {
            let _ = tell.send(event);
        }
    };
    tracing::info!("the test {} begins ({})", task.id, pair(task));
    let work = async {
        let record = near::carry_out(here, (task, sealed), interrupt, &mut listener).await?;
        anyhow::Ok(serde_json::to_value(&record)?)
    };
    let done = tokio::select! {
        done = work => done,
        never = spread(here, task, told) => never,
        never = keep(delivery) => never,
    };
    done.map_or_else(|why| End::Reason(exit::in_words(&why)), End::Record)
}

/// How a test goes.
#[derive(Serialize)]
struct News<'a> {
    task: &'a str,
    by: &'a str,
    event: Event,
}

/// Tells whoever listens how the test goes. Never ends.
async fn spread<T>(here: &Here<'_>, task: &Task, mut told: UnboundedReceiver<Event>) -> T {
    let subject = news(&here.word, &task.id);
    while let Some(event) = told.recv().await {
        let news = News { task: &task.id, by: &here.site, event };
        if let Err(why) = here.places.bus.tell(&subject, &news).await {
            tracing::debug!("{why}");
        }
    }
    std::future::pending().await
}

/// Keeps the task from being delivered again. Never ends.
async fn keep<T>(delivery: &Delivery) -> T {
    loop {
        sleep(BEAT).await;
        if let Err(why) = delivery.working().await {
            tracing::debug!("{why}");
        }
    }
}

/// Saves the record of an outcome that is on the disk, and publishes the outcome. A crash on the way leaves it there, and both
/// can be done again. `false`: the user ended it, and nothing took it within a moment, so the next start hands it over.
async fn hand_over(
    here: &Here<'_>,
    outbox: &Outbox,
    outcome: &Outcome,
    interrupt: &Interrupt,
) -> Result<bool> {
    let work = async {
        here.saving.save(outcome).await;
        publish(here, outbox, outcome).await
    };
    let ended = async {
        interrupt.raised().await;
        sleep(BEAT).await;
    };
    tokio::select! {
        handed = work => handed.map(|()| true),
        () = ended => Ok(false),
    }
}

/// Publishes an outcome; afterwards the bus has one.
async fn publish(here: &Here<'_>, outbox: &Outbox, outcome: &Outcome) -> Result<()> {
    let room = here.places.bus.longest_message().saturating_sub(HEADERS_BYTES);
    let short = fitting(outcome, room, &here.site)?;
    let place = of_task(&here.word, &outcome.task);
    let is_ours = here.places.outcomes.put_once(&place, short.as_ref()).await?;
    if !is_ours {
        tracing::info!("the task {} was given up before its outcome came", outcome.task);
    }
    outbox.remove(&outcome.task)?;
    here.measuring.borrow_mut().remove(&outcome.task);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_agent_has_written_says_nothing_of_who_began() {
        assert_eq!(Begun::by(b"\"s\"", "s"), Begun::Now);
        assert_eq!(Begun::by(b"\"t\"", "s"), Begun::Before);
        for garbage in [&b"poison"[..], b"", b"7", b"{}"] {
            assert_eq!(Begun::by(garbage, "s"), Begun::Unknown);
        }
    }
}
