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
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use super::here::Here;
use super::listener::{BEGIN, Cost, Listener};
use super::purse::Pace;
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
const TURN: Duration = Duration::from_secs(5);
/// What it takes at most until this agent listens: its turn comes, and its server begins. Who calls waits for as long.
pub(super) const OPEN: Duration = TURN.saturating_add(BEGIN);
/// How long after the latest end of a server its caller may take to say what the test has cost: its history may be slow.
const SAID: Duration = Duration::from_secs(30);
/// How long a look at what tests cost may take. What it has asked the history by then is done all the same, and who calls has his
/// answer.
const LOOK: Duration = Duration::from_secs(1);
/// How often in turn nobody answers at a site that is gone: its connection to the bus may just be made again.
const GONE: u32 = 2;

/// What goes on at the far end.
#[derive(Default)]
struct Open {
    listener: Option<Listener>,
    /// When its caller is asked next; none: never, because an older one can't be asked.
    asks: Option<Instant>,
    /// What tests may have cost, by their tasks and the words of the sites that called.
    unsettled: HashMap<(String, String), Unsettled>,
    /// What is refused: whoever may call may do so at any rate, and choose words of the answer.
    trouble: Trouble,
}

/// A test of which the near agent has not yet said what it cost.
struct Unsettled {
    note: Note,
    /// What its own server has counted.
    counted: Cost,
    pace: Pace,
    /// When it is looked at next.
    looks: Instant,
    /// When the near agent was killed, or it would have said it.
    until: Instant,
}

/// What is known of what a test costs.
#[derive(Debug, PartialEq, Eq)]
enum Known {
    /// Nothing more than before.
    Nothing,
    /// No more than this until the next look.
    AtMost(Bytes),
    /// Nobody will say more. It has cost this; absent: what was noted last.
    Over(Option<Bytes>),
}

impl Unsettled {
    /// What is known at `now`. A test whose caller has said nothing for longer than any such test takes costs what its own server
    /// has counted, if that has ended by itself.
    fn known(&mut self, now: Instant) -> Known {
        if self.until <= now {
            return Known::Over(self.counted.whole());
        }
        let most = self.pace.until_the_next(self.counted.bytes());
        self.looks = self.until.min(now + self.pace.next_look());
        most.map_or(Known::Nothing, Known::AtMost)
    }
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
        let looks = open.unsettled.values().map(|unsettled| unsettled.looks).min();
        tokio::select! {
            question = questions.next() => one(here, question?, &mut open).await,
            () = ended(here, &mut open) => open.listener = None,
            () = until(looks) => {
                let _ = timeout(LOOK, look(here, &mut open.unsettled)).await;
            }
        }
    }
}

/// Waits for a time; for ever, if there is none.
async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Notes what tests cost, for the case that this agent is killed. May be dropped while it waits.
async fn look(here: &Here<'_>, unsettled: &mut HashMap<(String, String), Unsettled>) {
    let now = Instant::now();
    let due = unsettled.iter().filter(|(_, one)| one.looks <= now).map(|(of, _)| of.clone());
    for of in due.collect::<Vec<_>>() {
        let Some(one) = unsettled.get_mut(&of) else { continue };
        match one.known(now) {
            Known::Nothing => {}
            Known::AtMost(bytes) => here.mark(&one.note, bytes).await,
            Known::Over(bytes) => {
                if let (Some(one), Some(bytes)) = (unsettled.remove(&of), bytes) {
                    here.settle(Some(one.note), bytes).await;
                }
            }
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
        if listener.is_closing() {
            return listener.close().await;
        }
        tokio::select! {
            () = listener.ended() => return,
            () = until(*asks) => {}
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
    // Later, nobody waits for the answer any more, and the server would stand open for nobody.
    let latest = Instant::now() + OPEN;
    let (task, left, turn) =
        timeout_at(latest, admitted(here, invitation, caller, open)).await.map_err(|_| {
            refused("late")(anyhow!("it could not say in time whether it takes part"))
        })??;
    let near = (caller, &*invitation.key);
    let opened = Listener::open(&task, near, (here.limits.max_rate, left), turn);
    let opened = timeout_at(latest, opened).await;
    let late = || Err(anyhow!("the server for the test did not begin in time"));
    let listener = opened.unwrap_or_else(|_| late()).map_err(refused("listener"))?;
    note(here, &task, left, &listener, open).await.map_err(refused("budget"))?;
    let (port, key) = (listener.port, listener.key.to_string());
    open.listener = Some(listener);
    open.asks = invitation.can_be_asked.then(|| Instant::now() + BEAT);
    Ok(Answer::Listening { port, key, most_bytes: left.map(|left| left.0) })
}

/// The task of an invitation that this agent takes part in, what its budget has left for it, and the right to be in it.
async fn admitted(
    here: &Here<'_>,
    invitation: &Invitation,
    caller: &str,
    open: &mut Open,
) -> Result<(Task, Option<Bytes>, OwnedMutexGuard<()>), Refused> {
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
    Ok((task, left, turn))
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
        let ended = async {
            if asks.is_some() && is_over(here, listener, 1).await {
                listener.close().await;
            }
            listener.ended().await;
        };
        if timeout_at(waits_until, ended).await.is_ok() {
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
    if open.unsettled.len() >= MOST_NOTES {
        open.unsettled.clear();
    }
    let of = (task.id.clone(), listener.caller.clone());
    let (counted, pace) = (listener.cost.clone(), Pace::default());
    let (looks, until) = (Instant::now() + pace.next_look(), listener.closes + SAID);
    open.unsettled.insert(of, Unsettled { note, counted, pace, looks, until });
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
    let of = (task.clone(), caller.to_owned());
    if let Some(Unsettled { note, counted, .. }) = open.unsettled.remove(&of) {
        // Its own server counts, too: who calls may count wrong.
        let bytes = Bytes(bytes.unwrap_or_default()).max(counted.bytes());
        here.settle(Some(note), bytes).await;
    }
    Answer::Closed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_whose_caller_was_killed_counts_with_what_its_server_has_counted() {
        let began = Instant::now();
        let after = |s| began + Duration::from_secs_f64(s);
        let counted = Cost::default();
        let mut test = Unsettled {
            note: Note::unkept("x"),
            counted: counted.clone(),
            pace: Pace::default(),
            looks: began,
            until: after(80.0),
        };
        assert_eq!((test.known(after(0.5)), test.looks), (Known::Nothing, after(1.0)));
        counted.count(500);
        assert_eq!(test.known(after(1.0)), Known::AtMost(Bytes(500 + 2 * 1000)));
        assert_eq!(test.looks, after(2.0));
        test.known(after(79.0));
        assert_eq!(test.looks, after(80.0), "no later");
        assert_eq!(test.known(after(80.0)), Known::Over(None), "its server was killed, too");
        counted.has_ended();
        assert_eq!(test.known(after(80.0)), Known::Over(Some(Bytes(500))));
    }
}
