//! Runs that are slow start for the most part: they say little about what comes after it.

use goodput_model::Trial;

use crate::design::WARM_UP;
use crate::pairs::counts;

/// Id of the diagnosis' rule for such runs.
pub const STARTUP: &str = "startup";

/// Whether only warm-ups were made, and those of the challengers were mostly slow start.
pub fn warmed_up_in_slow_start(trials: &[Trial]) -> bool {
    let is_warm_up = |trial: &&Trial| trial.discarded.as_deref() == Some(WARM_UP);
    trials.iter().all(|trial| trial.discarded.is_some())
        && mostly_starts(trials.iter().filter(is_warm_up))
}

/// Whether most of the challengers' runs that count were slow start for the most part.
pub fn counts_in_slow_start(trials: &[Trial]) -> bool {
    mostly_starts(trials.iter().filter(|trial| counts(trial)))
}

/// The baseline does not matter: its fault may end slow start early.
fn mostly_starts<'a>(trials: impl Iterator<Item = &'a Trial>) -> bool {
    let challengers = trials.filter(|trial| trial.arm != 0);
    let (starting, rest): (Vec<_>, Vec<_>) = challengers.partition(|run| run.limit == STARTUP);
    starting.len() > rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::{BitRate, Known};

    fn run(arm: usize, limit: &str, discarded: Option<&str>) -> Trial {
        let discarded = discarded.map(ToOwned::to_owned);
        Trial { limit: limit.into(), discarded, ..Trial::new(1, arm, Known::Value(BitRate(1e6))) }
    }

    #[test]
    fn runs_that_are_mostly_slow_start_are_too_short() {
        let with_limits = |limits: [&str; 3]| {
            let base = [(); 3].map(|()| run(0, "path-rate", None));
            let challengers = limits.map(|limit| run(1, limit, None));
            counts_in_slow_start(&challengers.into_iter().chain(base).collect::<Vec<_>>())
        };
        assert!(with_limits(["startup", "startup", "path-rate"]));
        assert!(!with_limits(["startup", "path-rate", "path-rate"]));
        assert!(!counts_in_slow_start(&[]));
    }

    #[test]
    fn warm_ups_tell_as_long_as_they_are_the_only_runs() {
        let warm_up = |limit| run(1, limit, Some(WARM_UP));
        let base = || run(0, "send-buffer", Some(WARM_UP));
        assert!(warmed_up_in_slow_start(&[base(), warm_up("startup")]));
        assert!(!warmed_up_in_slow_start(&[base(), warm_up("path-rate")]));
        assert!(!warmed_up_in_slow_start(&[base(), run(1, "", Some("it failed"))]));
        let counts = run(1, "startup", None);
        assert!(!warmed_up_in_slow_start(&[base(), warm_up("startup"), counts]));
        assert!(!warmed_up_in_slow_start(&[]));
    }
}
