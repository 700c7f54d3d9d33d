//! What other agents ask of this one: to listen for a test, and to stop.

use std::sync::Arc;

use anyhow::Result;
use goodput_bus::{Question, Questions};
use goodput_fleet::{Answer, Call, Invitation};

use super::here::Here;
use super::listener::Listener;
use crate::exit;

/// Answers until the connection is closed for good.
pub(super) async fn answer(here: &Here<'_>, mut questions: Questions) -> Result<()> {
    let mut listener: Option<Listener> = None;
    loop {
        tokio::select! {
            question = questions.next() => one(here, question?, &mut listener).await,
            () = ended(&mut listener) => listener = None,
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

async fn one(here: &Here<'_>, question: Question, listener: &mut Option<Listener>) {
    let answer = match Call::read(question.body()) {
        Ok(Call::Open(invitation)) => opened(here, &invitation, listener).await,
        Ok(Call::Close(task)) => closed(&task, listener).await,
        Err(why) => Answer::Refused(why),
    };
    if let Err(why) = question.answer(&answer).await {
        tracing::warn!("{why}");
    }
}

async fn opened(
    here: &Here<'_>,
    invitation: &Invitation,
    listener: &mut Option<Listener>,
) -> Answer {
    let Here { site, max_duration_s, .. } = here;
    // Written so that a length that is no number is refused, too.
    if !(invitation.length_s > 0.0 && invitation.length_s <= *max_duration_s) {
        let why =
            format!("{site} takes part in tests of at most {max_duration_s} s (--max-duration)");
        return Answer::Refused(why);
    }
    let Ok(turn) = Arc::clone(&here.turn).try_lock_owned() else {
        return Answer::Refused(format!("{site} is in another test"));
    };
    match Listener::open(invitation, turn).await {
        Ok(opened) => {
            let answer = Answer::Listening { port: opened.port, key: opened.key.to_string() };
            *listener = Some(opened);
            answer
        }
        Err(why) => Answer::Refused(format!("{site}: {}", exit::in_words(&why))),
    }
}

async fn closed(task: &str, listener: &mut Option<Listener>) -> Answer {
    if let Some(open) = listener.as_mut().filter(|open| open.task == task) {
        open.close().await;
        *listener = None;
    }
    Answer::Closed
}
