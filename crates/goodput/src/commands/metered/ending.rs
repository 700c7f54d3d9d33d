//! What ended the payload of a test that is metered: a test that came to its own end is whole, whatever is asked of the watch
//! or of the agent afterwards.

use std::cell::Cell;

/// What ends the payload of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The length of its plan.
    Plan,
    /// The longest time of a test of bytes.
    Time,
    /// What is left of the budget.
    Budget,
    /// What a test may cost, although the budget has more.
    Cost,
    /// The user, or the service manager.
    User,
}

/// The first of these that came.
#[derive(Debug, Default)]
pub struct Ended(Cell<Option<Ending>>);

impl Ended {
    /// The payload ends by this, unless something ended it before. Returns whether nothing did.
    pub fn by(&self, ending: Ending) -> bool {
        let is_first = self.0.get().is_none();
        if is_first {
            self.0.set(Some(ending));
        }
        is_first
    }

    /// What came first.
    pub fn first(&self) -> Option<Ending> {
        self.0.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_first_ends_it_and_nothing_after_that() {
        assert_eq!(Ended::default().first(), None);
        let all = [Ending::Plan, Ending::Time, Ending::Budget, Ending::Cost, Ending::User];
        for first in all {
            let ended = Ended::default();
            assert!(ended.by(first));
            assert!(all.iter().all(|late| !ended.by(*late)));
            assert_eq!(ended.first(), Some(first));
        }
    }
}
