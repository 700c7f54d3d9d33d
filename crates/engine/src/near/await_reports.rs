//! The end of a measurement: waits until both ends have reported, as far as they do.

use std::time::Instant;

use super::both_ends::BothEnds;
use super::patience::Patience;
use crate::error::EngineError;
use crate::events::Listener;
use crate::interrupt::Interrupt;

/// Waits until this end's flows have ended, and until the far end has reported or there is no more reason to wait
/// for its report.
pub async fn await_reports(
    ends: &mut BothEnds<'_>,
    interrupt: &Interrupt,
    listener: &mut Listener<'_>,
) {
    let was_raised = interrupt.is_raised();
    let mut patience = patience_with(ends, was_raised);
    while !ends.run.has_ended() || ends.awaits_report() {
        let newest_s = ends.kept.far().last().map_or(0.0, |last| last.at_s);
        patience.hear(Instant::now(), ends.client.conversation.heard_bytes(), newest_s);
        let waits = ends.run.has_ended() && ends.awaits_report();
        let at = patience.ends();
        tokio::select! {
            seen = ends.run.next(), if !ends.run.has_ended() => {
                if let Err(why) = ends.seen(seen, listener) {
                    ends.cut_short(why).await;
                }
                patience = patience_with(ends, was_raised);
            }
            action = ends.client.next(), if ends.hears => {
                if let Err(why) = action.and_then(|action| ends.acted(action, listener)) {
                    match ends.own_reason(&why, interrupt, listener).await {
                        Some(own) => ends.cut_short(own).await,
                        None => ends.lose_report(&without_target(&why)),
                    }
                }
            }
            () = tokio::time::sleep_until(at.into()), if waits => {
                if patience.ends() <= Instant::now() {
                    let waited_s = patience.waited_s(Instant::now());
                    ends.lose_report(&format!("no report within {waited_s:.0} s of the end"));
                }
            }
            () = interrupt.raised(), if waits && !was_raised => {
                ends.lose_report("interrupted while waiting for its report");
            }
        }
    }
}

fn patience_with(ends: &BothEnds<'_>, hurried: bool) -> Patience {
    match hurried {
        true => Patience::hurried(Instant::now()),
        false => Patience::new(Instant::now(), ends.run.plan(), ends.kept.near()),
    }
}

/// An error of the conversation, for a sentence that already names the target.
fn without_target(error: &EngineError) -> String {
    match error {
        EngineError::Wire { failure, .. } => failure.to_string(),
        EngineError::Refused { why, .. } => format!("refused: {why}"),
        other => other.to_string(),
    }
}
