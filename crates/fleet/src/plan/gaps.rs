//! In which rounds a place is taken, as bits.

/// Rounds in one word.
const WORD: usize = 64;

/// The rounds in which a place is taken.
#[derive(Debug, Clone, Default)]
pub(super) struct Taken {
    words: Vec<u64>,
    /// So many words at the beginning have no gap.
    full: usize,
}

impl Taken {
    /// Takes the place for a round.
    pub(super) fn take(&mut self, round: usize) {
        let word = round / WORD;
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (round % WORD);
        while self.words.get(self.full) == Some(&u64::MAX) {
            self.full += 1;
        }
    }

    /// Gives the place back for a round.
    pub(super) fn leave(&mut self, round: usize) {
        let word = round / WORD;
        if let Some(bits) = self.words.get_mut(word) {
            *bits &= !(1 << (round % WORD));
            self.full = self.full.min(word);
        }
    }

    /// The first round below `end` in which both places are free.
    pub(super) fn common_gap(&self, other: &Self, end: usize) -> Option<usize> {
        let mut word = self.full.max(other.full);
        while word * WORD < end {
            let free = !(self.word(word) | other.word(word));
            if free != 0 {
                let round = word * WORD + free.trailing_zeros() as usize;
                return (round < end).then_some(round);
            }
            word += 1;
        }
        None
    }

    /// The rounds below `end` in which the place is free.
    pub(super) fn gaps(&self, end: usize) -> impl Iterator<Item = usize> {
        let free = move |round: &usize| (self.word(round / WORD) >> (round % WORD)) & 1 == 0;
        (self.full * WORD..end).filter(free)
    }

    fn word(&self, word: usize) -> u64 {
        self.words.get(word).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn full_words_are_passed_over() {
        let (mut one, two) = (Taken::default(), Taken::default());
        (0..130).for_each(|round| one.take(round));
        assert_eq!((one.full, one.common_gap(&two, 200)), (2, Some(130)));
        assert_eq!(one.common_gap(&two, 130), None);
        one.leave(70);
        assert_eq!(one.gaps(132).collect::<Vec<_>>(), [70, 130, 131]);
    }

    proptest! {
        #[test]
        fn a_gap_is_the_first_common_one(
            one in prop::collection::btree_set(0usize..300, 0..300),
            two in prop::collection::btree_set(0usize..300, 0..300),
            end in 0usize..300,
        ) {
            let taken = |rounds: &std::collections::BTreeSet<usize>| {
                let mut taken = Taken::default();
                rounds.iter().for_each(|round| taken.take(*round));
                taken
            };
            let expected = (0..end).find(|round| !one.contains(round) && !two.contains(round));
            prop_assert_eq!(taken(&one).common_gap(&taken(&two), end), expected);
        }
    }
}
