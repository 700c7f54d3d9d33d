//! How a comparison ends: by itself, at the end of its time, or because it was given up; and with everything put back, or not.

use super::run_log::Compared;
use crate::error::EngineError;
use crate::interrupt::Interrupt;

/// The end of the time interrupts as well, and is called so.
pub fn at_time_limit(why: EngineError, interrupt: &Interrupt) -> EngineError {
    match why {
        EngineError::Interrupted if !interrupt.is_raised() => {
            let why = "the time limit was reached before a run ended".into();
            EngineError::Incomplete { why, not_permitted: false }
        }
        why => why,
    }
}

/// Why runs were given up that did not end when they were asked to, while this was `under_way`.
pub fn given_up(interrupt: &Interrupt, under_way: Option<&str>) -> EngineError {
    let when = match interrupt.is_raised() {
        true => "it was interrupted",
        false => "the time limit was reached",
    };
    EngineError::GivenUp(match under_way {
        Some(change) => format!("{when}, and {change} was not done yet"),
        None => format!("{when}, and the far end no longer answered"),
    })
}

/// What was measured, or why nothing was, and what could not be put back.
pub fn with_restored(
    outcome: Result<Compared, EngineError>,
    restored: Result<(), EngineError>,
) -> Result<Compared, EngineError> {
    match (outcome, restored) {
        (outcome, Ok(())) => outcome,
        (Ok(mut compared), Err(why)) => {
            compared.record.doubts.push(why.to_string());
            compared.record.incomplete.get_or_insert(why.to_string());
            compared.not_put_back = Some(why.to_string());
            Ok(compared)
        }
        (Err(cause), Err(not_back)) => {
            Err(EngineError::NotPutBack { cause: Box::new(cause), not_back: Box::new(not_back) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interrupt::interrupt;

    #[test]
    fn the_end_of_the_time_is_no_interrupt_and_names_what_was_under_way() {
        let (raise, interrupt) = interrupt();
        let said = |why: EngineError| why.to_string();
        let limit = "the time limit was reached";
        assert_eq!(
            said(at_time_limit(EngineError::Interrupted, &interrupt)),
            format!("{limit} before a run ended")
        );
        assert_eq!(
            said(given_up(&interrupt, None)),
            format!("{limit}, and the far end no longer answered")
        );
        raise.raise();
        let change = "the change of link.mtu@eth0 at ssh://a to 9000";
        assert_eq!(
            said(given_up(&interrupt, Some(change))),
            format!("it was interrupted, and {change} was not done yet")
        );
        let interrupted = at_time_limit(EngineError::Interrupted, &interrupt);
        assert!(matches!(interrupted, EngineError::Interrupted));
    }

    #[test]
    fn what_is_not_put_back_is_reported_with_what_failed() {
        let not_back =
            || Err(EngineError::Flow("not everything was put back: link.mtu@eth0".into()));
        let failed = EngineError::Incomplete { why: "no token".into(), not_permitted: true };
        let Err(error) = with_restored(Err(failed), not_back()) else { panic!("a failure") };
        let said = error.to_string();
        assert!(said.contains("no token") && said.contains("link.mtu@eth0"), "{said}");
        assert!(error.not_permitted(), "the exit code is that of the first failure");
        assert!(with_restored(Err(EngineError::Interrupted), Ok(())).is_err());
    }
}
