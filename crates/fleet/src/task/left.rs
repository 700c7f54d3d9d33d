//! What the budget of an agent has left, and when more of it is free.

use goodput_model::Bytes;

use super::single::Task;
use crate::span::span;

/// A day of the budget, seconds.
const DAY_S: f64 = 86_400.0;

/// What the budget of an agent has left of any 24 hours.
#[derive(Debug, Clone, PartialEq)]
pub struct Left {
    /// The whole budget.
    limit: Bytes,
    /// What is left of it now.
    left: Bytes,
    /// What was spent: how many seconds ago, and how much; the oldest first.
    spent: Vec<(f64, Bytes)>,
}

impl Left {
    /// What is left of `limit` after tests of the last day: how many seconds ago each was, and what it has cost.
    pub fn of(limit: Bytes, mut spent: Vec<(f64, Bytes)>) -> Self {
        spent.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        let used = spent.iter().fold(0_u64, |sum, (_, bytes)| sum.saturating_add(bytes.0));
        Self { limit, left: Bytes(limit.0.saturating_sub(used)), spent }
    }

    /// What is left now.
    pub fn bytes(&self) -> Bytes {
        self.left
    }

    /// Why the agent of `site` does not take part in a test, if too little is left for it.
    pub fn refuse(&self, site: &str, task: &Task) -> Option<String> {
        let most = task.most_bytes();
        let needed = most.unwrap_or(Bytes(1));
        if needed.0 <= self.left.0 {
            return None;
        }
        let Self { limit, left, .. } = self;
        let needs = most.map(|bytes| format!(", and this test may take {bytes}"));
        let needs = needs.unwrap_or_default();
        let then = match self.free_in_s(needed) {
            Some(seconds) => format!("enough is free again in {}", span(seconds.ceil())),
            None => "that is more than a whole day's; a lower rate or a shorter test fits".into(),
        };
        Some(format!(
            "the budget of {site} has {left} left of {limit}/day (--budget of its own agent){needs}; {then}"
        ))
    }

    /// In how many seconds this much is free again; none: never, because the whole budget is smaller.
    fn free_in_s(&self, needed: Bytes) -> Option<f64> {
        let over = |sum: u64| self.limit.0.saturating_sub(sum) >= needed.0;
        let mut used = self.spent.iter().fold(0_u64, |sum, (_, bytes)| sum.saturating_add(bytes.0));
        for (age_s, bytes) in &self.spent {
            used = used.saturating_sub(bytes.0);
            if over(used) {
                return Some((DAY_S - age_s).max(0.0));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::single::tests::task;
    use super::*;
    use goodput_model::BitRate;
    use proptest::prelude::*;

    const HOUR_S: f64 = 3600.0;

    #[test]
    fn a_refusal_names_the_budget_and_when_it_has_enough_again() {
        let spent = vec![(HOUR_S, Bytes(300)), (20.0 * HOUR_S, Bytes(700))];
        let left = Left::of(Bytes(1000), spent);
        assert_eq!(left.bytes(), Bytes(0));
        let why = left.refuse("b", &task()).unwrap();
        assert!(why.contains("the budget of b has 0 B left of 1 kB/day"), "{why}");
        assert!(
            why.contains("--budget of its own agent") && why.ends_with("again in 4 h"),
            "{why}"
        );
        // Half a second longer than its second, 3.84 kbit/s are 720 bytes of payload: both must be free.
        let paced = Task { rate: Some(BitRate(3840.0)), length_s: 1.0, ..task() };
        let why = left.refuse("b", &paced).unwrap();
        assert!(why.contains("may take 800 B") && why.ends_with("again in 23 h"), "{why}");
        let longer = Task { length_s: 2.0, ..paced };
        let why = left.refuse("b", &longer).unwrap();
        assert!(why.contains("more than a whole day's"), "{why}");
        assert_eq!(Left::of(Bytes(1000), vec![(0.0, Bytes(999))]).refuse("b", &task()), None);
    }

    proptest! {
        #[test]
        fn a_budget_refuses_only_what_it_has_not(
            limit in any::<u64>(), spent in prop::collection::vec((0.0..DAY_S, any::<u64>()), 0..5),
            rate in 1.0..1e12_f64,
        ) {
            let spent: Vec<_> = spent.into_iter().map(|(age, bytes)| (age, Bytes(bytes))).collect();
            let left = Left::of(Bytes(limit), spent);
            let paced = Task { rate: Some(BitRate(rate)), ..task() };
            let needed = paced.most_bytes().unwrap();
            prop_assert_eq!(left.refuse("b", &paced).is_some(), needed.0 > left.bytes().0);
        }
    }
}
