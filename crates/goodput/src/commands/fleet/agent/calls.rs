//! What other agents ask of this one: to listen for a test, to stop, and whether a test goes on.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Error, Result, anyhow};
use goodput_bus::{Question, Questions};
use goodput_fleet::places::{call, inbox};
use goodput_fleet::{Answer, Call, Farewell, Invitation, Role, Task};
use goodput_model::{Bytes, plain_char};
use tokio::sync::OwnedMutexGuard;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::here::Here;
use super::listener::{Cost, Listener};
use crate::commands::fleet::places::BEAT;
use crate::commands::fleet::trouble::Trouble;
use crate::commands::spent::Note;
use crate::exit;

/// Tests of which the near agent has not yet said what they cost: more can't be in the moments between two tests.
const MOST_NOTES: usize = 16;
/// Longest word of a site that is shown, characters.
const MAX_SHOWN_CHARS: usize = 200;
/// How long a call waits for the end of another test: the server of one that has ended takes a moment, and an agent of an older
/// version waits no longer than ten seconds for an answer.
pub(super) const TURN: Duration = Duration::from_secs(5);
/// How often in turn nobody answers at a site that is gone: its connection to the bus may just be made again.
const GONE: u32 = 2;

/// What goes on at the far end.
#[derive(Default)]
struct Open {
    listener: Option<Listener>,
    /// When its caller is asked next; none: never, because an older one can't be asked.
    asks: Option<Instant>,
    /// What tests may have cost, and what their servers have counted, by their tasks and the words of the sites that called.
    notes: HashMap<(String, String), (Note, Cost)>,
    /// What is refused: whoever may call may do so at any rate, and choose words of the answer.
    trouble: Trouble,
}

/// Why a call is refused.
struct Refused {
    /// What stands in the way: none of the caller's words.
    kind: &'static str,
    why: Error,
}

fn refused<E: Into<Error>>(kind: &'static str) -> impl FnOnce(E) -> Refused {
    move |why| Refused { kind, why: why.into() }
}

/// Answers until the connection is closed for good.
pub(super) async fn answer(here: &Here<'_>, mut questions: Questions) -> Result<()> {
    let mut open = Open::default();
    loop {
        tokio::select! {
            question = questions.next() => one(here, question?, &mut open).await,
            () = ended(here, &mut open) => open.listener = None,
        }
    }
}

/// Waits until the server has ended, or who called is gone, which ends it; for ever, if there is none. May be dropped while it
/// waits.
async fn ended(here: &Here<'_>, open: &mut Open) {
    let Open { listener: Some(listener), asks, .. } = open else {
        return std::future::pending().await;
    };
    loop {
        let due = *asks;
        let is_due = async {
            match due {
                Some(due) => sleep_until(due).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = listener.ended() => return,
            () = is_due => {}
        }
        let is_over = is_over(here, listener, GONE).await;
        *asks = Some(Instant::now() + BEAT);
        if is_over {
            tracing::info!(
                "the server for {} ends: who called is in another test, or gone",
                listener.task
            );
            return listener.close().await;
        }
    }
}

/// Whether the caller is no longer in the test of this server. One of whom nobody has heard anything for `gone` questions in
/// turn was killed, or is only cut off from the bus: it is in the test for as long as it is connected to the server.
async fn is_over(here: &Here<'_>, listener: &mut Listener, gone: u32) -> bool {
    let subject = call(&listener.caller, &here.word);
    let question = Call::Continues(listener.task.clone());
    match here.places.bus.ask(&subject, &question, BEAT).await {
        Ok(Some(answer)) => {
            listener.unheard = 0;
            matches!(Answer::read(&answer), Ok(Answer::Continues(false)))
        }
        Ok(None) => {
            listener.unheard += 1;
            listener.unheard >= gone && !listener.has_client()
        }
        // The bus is away, or the agent has much to do.
        Err(why) => {
            tracing::debug!("{why}");
            false
        }
    }
}

async fn one(here: &Here<'_>, question: Question, open: &mut Open) {
    // The subject ends with the word of the site that asks, which the server of NATS can hold it to.
    let caller = question.subject().rsplit('.').next().unwrap_or_default().to_owned();
    let answer = match Call::read(question.body()) {
        Ok(Call::Open(invitation)) => opened(here, &invitation, &caller, open).await,
        Ok(Call::Close(farewell)) => Ok(closed(here, &farewell, &caller, open).await),
        Ok(Call::Continues(task)) => Ok(Answer::Continues(here.measuring.borrow().contains(&task))),
        Err(why) => Err(refused("call")(anyhow!(why))),
    };
    let answer = answer.unwrap_or_else(|Refused { kind, why }| {
        let why = exit::in_words(&why);
        open.trouble.say_of(kind, &anyhow!("a call of {} is refused: {why}", shown(&caller)));
        Answer::Refused(format!("{}: {why}", here.site))
    });
    if let Err(why) = question.answer(&inbox(&caller), &answer).await {
        open.trouble
            .say_of("answer", &anyhow!("a call of {} has no answer: {why}", shown(&caller)));
    }
}

/// The word of a site that calls: whoever may write to the bus may have made it up.
fn shown(caller: &str) -> String {
    caller.chars().take(MAX_SHOWN_CHARS).map(plain_char).collect()
}

async fn opened(
    here: &Here<'_>,
    invitation: &Invitation,
    caller: &str,
    open: &mut Open,
) -> Result<Answer, Refused> {
    let task = here.opened(&invitation.sealed, Role::Far);
    let task = task.map_err(|bad| refused("task")(anyhow!(bad.why)))?;
    check(here, &task, caller).await?;
    let turn = turn(here, open).await?;
    // A test that runs may cost all that is left.
    let left = here.admit(&task).await.map_err(refused("limits"))?;
    let is_new = here.called.note(&task.id, task.expires_s, here.held.now_s());
    if !is_new.map_err(refused("disk"))? {
        let why = anyhow!("it was called for the task {} before", task.id);
        return Err(refused("again")(why));
    }
    let near = (caller, &*invitation.key);
    let listener = Listener::open(&task, near, (here.limits.max_rate, left), turn).await;
    let listener = listener.map_err(refused("listener"))?;
    note(here, &task, left, &listener, open).await.map_err(refused("budget"))?;
    let (port, key) = (listener.port, listener.key.to_string());
    open.listener = Some(listener);
    open.asks = invitation.can_be_asked.then(|| Instant::now() + BEAT);
    Ok(Answer::Listening { port, key, most_bytes: left.map(|left| left.0) })
}

/// Refuses a caller that the task does not name, and a task that another coordinator gives out again.
async fn check(here: &Here<'_>, task: &Task, caller: &str) -> Result<(), Refused> {
    let Task { id, near, .. } = task;
    if goodput_fleet::word(near).as_deref() != Ok(caller) {
        let why = anyhow!("the task {id} is one of {near}, not of who calls ({caller})");
        return Err(refused("caller")(why));
    }
    if here.is_stale(task).await.map_err(refused("bus"))? {
        let why = anyhow!("the task {id} is one of a coordinator that has a successor");
        return Err(refused("stale")(why));
    }
    Ok(())
}

/// The right to be in this test. A server whose caller is gone does not stand in the way: who gives out the tests of this site
/// gives out one after the other. One that ends just now takes a moment.
async fn turn(here: &Here<'_>, open: &mut Open) -> Result<OwnedMutexGuard<()>, Refused> {
    let waits_until = Instant::now() + TURN;
    if let Open { listener: Some(listener), asks, .. } = open {
        if asks.is_some() && is_over(here, listener, 1).await {
            listener.close().await;
        }
        if timeout_at(waits_until, listener.ended()).await.is_ok() {
            open.listener = None;
        }
    }
    let turn = timeout_at(waits_until, Arc::clone(&here.turn).lock_owned());
    turn.await.map_err(|_| refused("turn")(anyhow!("it is in another test")))
}

/// Until the near agent says what the test has cost, it is what it may cost at most.
async fn note(
    here: &Here<'_>,
    task: &Task,
    left: Option<Bytes>,
    listener: &Listener,
    open: &mut Open,
) -> Result<()> {
    let Some(note) = here.begin(task, left).await? else { return Ok(()) };
    if open.notes.len() >= MOST_NOTES {
        open.notes.clear();
    }
    let of = (task.id.clone(), listener.caller.clone());
    open.notes.insert(of, (note, listener.cost.clone()));
    Ok(())
}

/// Ends what `caller` has opened for this task, and nothing of others.
async fn closed(here: &Here<'_>, farewell: &Farewell, caller: &str, open: &mut Open) -> Answer {
    let Farewell { task, bytes } = farewell;
    let is_its = |listener: &Listener| listener.task == *task && listener.caller == caller;
    if let Some(listener) = open.listener.as_mut().filter(|listener| is_its(listener)) {
        listener.close().await;
        open.listener = None;
    }
    if let Some((note, counted)) = open.notes.remove(&(task.clone(), caller.to_owned())) {
        // Its own server counts, too: who calls may count wrong.
        let bytes = Bytes(bytes.unwrap_or_default()).max(counted.bytes());
        here.settle(Some(note), bytes).await;
    }
    Answer::Closed
}
