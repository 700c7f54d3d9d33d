//! A share of the flows' time, as far as it is known.

use std::fmt;

use goodput_model::{AccountPart, percent_range};

use crate::finding::percent;
use crate::thresholds::{MIN_COSTLY_SHARE, MIN_LIMITING_TIME_SHARE};

/// What rounding leaves of a part that held nothing.
const MAX_ROUNDING_SHARE: f64 = 1e-9;

/// Share of the flows' time that parts of the account held, 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HeldShare {
    share: f64,
    /// Range in which it lies with 95 % confidence, if that is known.
    between: Option<[f64; 2]>,
    /// Share of the time in which the path did not carry all it can, 0 to 1: only this can be gained.
    avoidable: f64,
}

impl HeldShare {
    /// Of parts that an account has, and the time of all flows. What is uncertain about the parts adds up: they may gain at
    /// the cost of each other, which makes their sum more certain than this, or at the cost of the same third.
    pub fn of<'a>(
        parts: impl Iterator<Item = &'a AccountPart>,
        flow_seconds: f64,
        full_s: f64,
    ) -> Self {
        let (mut held_s, mut between_s) = (0.0, Some([0.0; 2]));
        for part in parts {
            held_s += part.seconds;
            between_s =
                between_s.zip(part.between_s).map(|(all, one)| [all[0] + one[0], all[1] + one[1]]);
        }
        let share = |seconds: f64| (seconds / flow_seconds).min(1.0);
        let avoidable = 1.0 - share(full_s);
        let between = between_s.map(|ends| ends.map(share));
        Self { share: held_s / flow_seconds, between, avoidable }
    }

    /// The estimate.
    pub fn share(&self) -> f64 {
        self.share
    }

    /// The range in which it lies, percent, if that is known.
    pub fn between_percent(&self) -> Option<[f64; 2]> {
        self.between.map(|ends| ends.map(|share| share * 100.0))
    }

    /// Whether it is most of what can be gained.
    pub fn is_most(&self) -> bool {
        self.share >= MIN_COSTLY_SHARE.max(MIN_LIMITING_TIME_SHARE * self.avoidable)
    }

    /// Whether nobody needs to ask for a cause: it took too little time to matter, and either certainly so, or perhaps none.
    pub fn is_nothing(&self) -> bool {
        let [low, high] = self.between.unwrap_or([self.share; 2]);
        self.share < MIN_COSTLY_SHARE && (low <= MAX_ROUNDING_SHARE || high < MIN_COSTLY_SHARE)
    }
}

/// `28 % (20 to 36 %)`.
impl fmt::Display for HeldShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let range = percent_range(self.share * 100.0, self.between_percent());
        write!(f, "{}{range}", percent(self.share))
    }
}

#[cfg(test)]
mod tests {
    use goodput_model::{Limiter, Place};

    use super::*;

    /// Of ten seconds.
    fn held(parts: &[(f64, Option<[f64; 2]>)]) -> HeldShare {
        let part = |(seconds, between_s): &(f64, Option<[f64; 2]>)| AccountPart {
            limiter: Limiter::Recovery,
            end: Place::Path,
            seconds: *seconds,
            between_s: *between_s,
        };
        HeldShare::of(parts.iter().map(part).collect::<Vec<_>>().iter(), 10.0, 0.0)
    }

    #[test]
    fn a_finding_needs_time_and_enough_of_it() {
        assert!(held(&[(0.4, Some([0.0, 0.9]))]).is_nothing(), "little, and perhaps none");
        assert!(!held(&[(1.0, Some([0.0, 2.4]))]).is_nothing(), "a short test has few samples");
        assert!(!held(&[(1.0, Some([0.2, 1.8]))]).is_nothing());
        assert!(!held(&[(0.4, Some([0.1, 0.7]))]).is_nothing(), "perhaps enough");
        assert!(held(&[(0.3, Some([0.25, 0.35]))]).is_nothing(), "too little");
        assert!(held(&[]).is_nothing());
        assert!(held(&[(1e-14, Some([1e-14, 0.9]))]).is_nothing(), "what rounding leaves");
        assert!(held(&[(0.3, None)]).is_nothing() && !held(&[(0.6, None)]).is_nothing(), "of old");
    }

    #[test]
    fn most_is_most_of_what_can_be_gained() {
        let part = |seconds| AccountPart {
            limiter: Limiter::SendBuffer,
            end: Place::Near,
            seconds,
            between_s: None,
        };
        let is_most =
            |seconds, full_s| HeldShare::of([part(seconds)].iter(), 10.0, full_s).is_most();
        assert!(is_most(5.0, 0.0) && !is_most(4.0, 0.0));
        assert!(is_most(1.5, 8.0), "the path carries all it can for the rest");
        assert!(!is_most(0.4, 9.6), "too little to matter");
    }

    #[test]
    fn it_is_printed_with_its_range() {
        assert_eq!(held(&[(2.8, Some([2.0, 3.6]))]).to_string(), "28 % (20 to 36 %)");
        assert_eq!(held(&[(2.8, Some([2.8, 2.8]))]).to_string(), "28 %");
        assert_eq!(held(&[(2.8, Some([2.0, 3.6])), (1.0, None)]).to_string(), "38 %");
        assert_eq!(
            held(&[(6.0, Some([4.0, 8.0])), (4.0, Some([2.0, 6.0]))]).to_string(),
            "100 % (60 to 100 %)"
        );
    }
}
