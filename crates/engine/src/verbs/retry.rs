//! When to repeat a failed measurement, so that earlier results are not lost with it.

use std::time::Duration;

use goodput_model::Plan;

use crate::error::EngineError;
use crate::interrupt::Interrupt;
use crate::near::client::Client;
use crate::near::measure::measure_whole;
use crate::result::measurement::Measurement;

/// Pauses after consecutive failures: together long enough for a far end to notice that a connection is dead (15 s),
/// and to put back what it had changed for it. One failure more is too many.
pub const RETRY_PAUSES: [Duration; 3] =
    [Duration::from_secs(1), Duration::from_secs(4), Duration::from_secs(16)];

/// Whether another try may succeed: the failure is temporary, not a matter of the plan or this host.
pub fn may_pass(cause: &EngineError) -> bool {
    let of_the_moment = matches!(
        cause,
        EngineError::Wire { .. }
            | EngineError::BrokenOff(_)
            | EngineError::Incomplete { .. }
            | EngineError::Target(_)
    );
    of_the_moment && !cause.not_permitted()
}

/// A whole measurement, after failed attempts. `None` after an interrupt.
///
/// Errors: the last failure, after one that is not temporary or too many in a row.
pub async fn measure(
    client: &mut Client,
    plan: &Plan,
    interrupt: &Interrupt,
) -> Result<Option<Measurement>, EngineError> {
    let mut pauses = RETRY_PAUSES.iter();
    loop {
        let measured = measure_whole(client, plan, interrupt, &mut |_| {}).await;
        // A run that was cut short is unlike the others.
        if interrupt.is_raised() {
            return Ok(None);
        }
        let cause = match measured {
            Ok(measurement) => return Ok(Some(measurement)),
            Err(cause) => cause,
        };
        let Some(pause) = pauses.next().filter(|_| may_pass(&cause)) else { return Err(cause) };
        tokio::select! {
            () = tokio::time::sleep(*pause) => {}
            () = interrupt.raised() => return Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_about_the_plan_is_not_tried_again() {
        assert!(may_pass(&EngineError::BrokenOff("reset".into())));
        let part = |not_permitted| EngineError::Incomplete { why: "cut".into(), not_permitted };
        assert!(may_pass(&part(false)) && !may_pass(&part(true)));
        assert!(!may_pass(&EngineError::Flow("no such mover".into())));
    }
}
