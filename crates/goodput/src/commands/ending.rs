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

    /// Why a test of a watch is only a part; none if it is whole.
    pub fn early(&self) -> Option<&'static str> {
        match self.0.get()? {
            Ending::Plan | Ending::Time => None,
            Ending::Budget => Some("the budget was used up"),
            Ending::Cost => Some("it cost twice as much as was expected"),
            Ending::User => Some("the watch was ended"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn early(endings: &[Ending]) -> Option<&'static str> {
        let ended = Ended::default();
        let first = endings.iter().filter(|ending| ended.by(**ending)).count();
        assert_eq!(first, endings.len().min(1));
        ended.early()
    }

    #[test]
    fn what_comes_after_its_end_makes_no_part_of_a_test() {
        assert_eq!(early(&[]), None);
        for late in [Ending::User, Ending::Budget, Ending::Cost] {
            assert_eq!(early(&[Ending::Plan, late]), None);
            assert_eq!(early(&[Ending::Time, late, Ending::Plan]), None);
        }
    }

    #[test]
    fn what_comes_first_is_why_it_is_a_part() {
        assert_eq!(early(&[Ending::User, Ending::Plan]), Some("the watch was ended"));
        assert_eq!(early(&[Ending::Budget, Ending::User]), Some("the budget was used up"));
        assert_eq!(
            early(&[Ending::Cost, Ending::Budget]),
            Some("it cost twice as much as was expected")
        );
    }
}
