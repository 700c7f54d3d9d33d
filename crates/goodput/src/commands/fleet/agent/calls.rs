//! What other agents ask of this one: to listen for a test, and to stop.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::{Error, Result, anyhow};
use goodput_bus::{Question, Questions};
use goodput_fleet::places::inbox;
use goodput_fleet::{Answer, Call, Farewell, Invitation, Role, Task};
use goodput_model::{Bytes, plain_char};

use super::here::Here;
use super::listener::Listener;
use crate::commands::fleet::trouble::Troubles;
use crate::commands::spent::Note;
use crate::exit;

/// Tests of which the near agent has not yet said what they cost: more can't be in the moments between two tests.
const MOST_NOTES: usize = 16;
/// Longest word of a site that is shown, characters.
const MAX_SHOWN_CHARS: usize = 200;

/// What goes on at the far end.
#[derive(Default)]
struct Open {
    listener: Option<Listener>,
    /// What tests may have cost, by their tasks and the words of the sites that called.
    notes: HashMap<(String, String), Note>,
    /// What is refused: whoever may call may do so at any rate, and choose words of the answer.
    trouble: Troubles,
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
            () = ended(&mut open.listener) => open.listener = None,
        }
    }
}

/// Waits until the server has ended; for ever, if there is none.
async fn ended(listener: &mut Option<Listener>) {
    match listener {
        Some(listener) => listener.ended().await,
        None => std::future::pending().await,
    }
}

async fn one(here: &Here<'_>, question: Question, open: &mut Open) {
    // The subject ends with the word of the site that asks, which the server of NATS can hold it to.
    let caller = question.subject().rsplit('.').next().unwrap_or_default().to_owned();
    let answer = match Call::read(question.body()) {
        Ok(Call::Open(invitation)) => opened(here, &invitation, &caller, open).await,
        Ok(Call::Close(farewell)) => Ok(closed(here, &farewell, &caller, open).await),
        Err(why) => Err(refused("call")(anyhow!(why))),
    };
    let answer = answer.unwrap_or_else(|Refused { kind, why }| {
        let why = exit::in_words(&why);
        open.trouble.say(kind, &anyhow!("a call of {} is refused: {why}", shown(&caller)));
        Answer::Refused(format!("{}: {why}", here.site))
    });
    if let Err(why) = question.answer(&inbox(&caller), &answer).await {
        open.trouble.say("answer", &anyhow!("a call of {} has no answer: {why}", shown(&caller)));
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
    let Ok(turn) = Arc::clone(&here.turn).try_lock_owned() else {
        return Err(refused("turn")(anyhow!("it is in another test")));
    };
    // A test that runs may cost all that is left.
    let left = here.admit(&task).await.map_err(refused("limits"))?;
    let is_new = here.called.note(&task.id, task.expires_s, here.held.now_s());
    if !is_new.map_err(refused("disk"))? {
        let why = anyhow!("it was called for the task {} before", task.id);
        return Err(refused("again")(why));
    }
    let near = (caller, &*invitation.key);
    let listener = Listener::open(&task, near, here.limits.max_rate, turn).await;
    let listener = listener.map_err(refused("listener"))?;
    note(here, &task, left, caller, open).await.map_err(refused("budget"))?;
    let (port, key) = (listener.port, listener.key.to_string());
    open.listener = Some(listener);
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

/// Until the near agent says what the test has cost, it is what it may cost at most.
async fn note(
    here: &Here<'_>,
    task: &Task,
    left: Option<Bytes>,
    caller: &str,
    open: &mut Open,
) -> Result<()> {
    let Some(note) = here.begin(task, left).await? else { return Ok(()) };
    if open.notes.len() >= MOST_NOTES {
        open.notes.clear();
    }
    open.notes.insert((task.id.clone(), caller.into()), note);
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
    let note = open.notes.remove(&(task.clone(), caller.to_owned()));
    here.settle(note, Bytes(bytes.unwrap_or_default())).await;
    Answer::Closed
}
