//! What is proven: the comparison of changes with the start that counts.

use goodput_model::{BitRate, Change, Comparison, Finding, Purpose};

use super::gain::{gains, reached_first_look};

/// A comparison of changes with the start. However it ended, it is worth what its runs say. `T` is what else its record
/// has.
#[derive(Debug)]
pub struct Proof<T> {
    /// What was compared with the start.
    pub changes: Vec<Change>,
    /// The runs, if there are any.
    pub comparison: Option<Comparison>,
    /// What a run with the changes found.
    pub findings: Vec<Finding>,
    /// The rest of its record.
    pub rest: T,
}

impl<T> Proof<T> {
    /// Whether it has runs enough to judge.
    pub fn can_judge(&self, purpose: Purpose) -> bool {
        let comparison = self.comparison.as_ref();
        comparison.is_some_and(|comparison| reached_first_look(comparison, purpose))
    }

    /// The changes that it proves.
    pub fn proven(&self, purpose: Purpose) -> &[Change] {
        let comparison = self.comparison.as_ref();
        let proves = comparison.is_some_and(|comparison| gains(comparison, purpose));
        if proves { &self.changes } else { &[] }
    }

    /// The one that counts of this and an earlier one: this one, unless only the earlier one can judge, or only the earlier
    /// one proves something. What was proven once stays proven (docs/decisions/tuning.md).
    pub fn or(self, earlier: Option<Self>, purpose: Purpose) -> Self {
        let counts_more = |earlier: &Self| {
            let proves_more =
                self.proven(purpose).is_empty() && !earlier.proven(purpose).is_empty();
            proves_more || earlier.can_judge(purpose) && !self.can_judge(purpose)
        };
        earlier.filter(counts_more).unwrap_or(self)
    }
}

/// The median goodput of the second arm of `comparison`.
pub fn changed_goodput(comparison: &Comparison) -> Option<BitRate> {
    comparison.arms.get(1)?.goodput_bits_per_s.value().copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verbs::tune::gain::tests::compared;
    use goodput_model::{Judgement, Response};

    fn proof(setting: &str, n: usize, judgement: Judgement) -> Proof<()> {
        let mut comparison = compared(&[(Response::Throughput, judgement)]);
        comparison.arms[1].n = n;
        let setting = setting.parse().unwrap();
        let change = Change { setting, from: None, to: "1M".into(), why: "because".into() };
        let (changes, comparison) = (vec![change], Some(comparison));
        Proof { changes, comparison, findings: Vec::new(), rest: () }
    }

    #[test]
    fn the_last_comparison_that_can_judge_counts() {
        use Judgement::{Better, Inconclusive};
        let counts = |later: Proof<()>, earlier| {
            later.or(Some(earlier), Purpose::Throughput).changes[0].setting.to_string()
        };
        let earlier = || proof("socket.sndbuf", 6, Better);
        assert_eq!(counts(proof("chunk", 6, Better), earlier()), "chunk");
        assert_eq!(counts(proof("chunk", 6, Inconclusive), earlier()), "socket.sndbuf");
        let unproven = proof("socket.sndbuf", 6, Inconclusive);
        assert_eq!(counts(proof("chunk", 6, Inconclusive), unproven), "chunk");
        assert_eq!(counts(proof("chunk", 2, Inconclusive), earlier()), "socket.sndbuf");
        let neither = proof("socket.sndbuf", 1, Inconclusive);
        assert_eq!(counts(proof("chunk", 2, Inconclusive), neither), "chunk");
    }

    #[test]
    fn only_what_its_runs_show_is_proven() {
        let proven = |judgement| proof("chunk", 6, judgement).proven(Purpose::Throughput).len();
        assert_eq!((proven(Judgement::Better), proven(Judgement::Inconclusive)), (1, 0));
    }
}
