//! What became of a change, from its comparison with the changes that were kept before.

use goodput_experiment::Obvious;
use goodput_model::{Comparison, Known, Purpose, Record, TuningOutcome};

use super::gain::{gains, obviously, reached_first_look};
use crate::error::EngineError;
use crate::verbs::compare::Compared;

/// The record of a comparison that proves its change, if no other one was tried: an obvious difference proves nothing.
pub fn proven_by(compared: &Result<Compared, EngineError>, purpose: Purpose) -> Option<&Record> {
    let record = &compared.as_ref().ok()?.record;
    record.comparison.as_ref().filter(|comparison| gains(comparison, purpose)).map(|_| record)
}

/// What became of a change, its comparison, and if the change is kept, a run with it.
pub fn outcome_of(
    compared: Result<Compared, EngineError>,
    purpose: Purpose,
) -> (TuningOutcome, Known<Comparison>, Option<Record>) {
    use TuningOutcome::{Failed, Kept, NotBetter, NotPermitted, TooFewRuns};
    let (record, challenger) = match compared {
        Ok(Compared { record, challenger, .. }) => (record, challenger),
        Err(why) => {
            let outcome = if why.not_permitted() { NotPermitted } else { Failed };
            return (outcome, Known::missing(why.to_string()), None);
        }
    };
    let Some(comparison) = record.comparison else {
        return (Failed, Known::missing("nothing was compared"), None);
    };
    let outcome = match obviously(&comparison, purpose) {
        Some(Obvious::Better) => Kept,
        Some(Obvious::Worse) => NotBetter,
        None if gains(&comparison, purpose) => Kept,
        None if !reached_first_look(&comparison, purpose) => TooFewRuns,
        None => NotBetter,
    };
    (outcome, Known::Value(comparison), challenger.filter(|_| outcome == Kept))
}
