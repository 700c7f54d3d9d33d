//! Which datagrams of a flow came, came late, came twice or never came. Pure.

/// How many of the latest sequence numbers are remembered individually. At 10 Gbit/s with datagrams of 1400 bytes this
/// is 73 ms, for 8 KiB of memory.
const REMEMBERED_NUMBERS: u64 = 1 << 16;

/// Counts arrivals by their sequence numbers.
///
/// A datagram older than the remembered numbers counts as late, not as a duplicate, as long as one is missing that it
/// could be.
#[derive(Debug)]
pub struct Sequence {
    /// One bit per remembered number, at the number's remainder.
    seen: Box<[u64]>,
    /// One more than the highest number known to have been sent.
    next: u64,
    received: u64,
    lost: u64,
    reordered: u64,
    duplicated: u64,
}

impl Default for Sequence {
    fn default() -> Self {
        let seen = vec![0; (REMEMBERED_NUMBERS / 64) as usize].into_boxed_slice();
        Self { seen, next: 0, received: 0, lost: 0, reordered: 0, duplicated: 0 }
    }
}

impl Sequence {
    /// The datagram `number`, below 2^62, has come.
    pub fn arrived(&mut self, number: u64) {
        self.received += 1;
        if number >= self.next {
            self.skip_to(number);
            self.next = number + 1;
            self.mark(number, true);
        } else if self.is_known(number) {
            self.duplicated += 1;
        } else {
            self.reordered += 1;
            self.lost -= 1;
            self.mark(number, true);
        }
    }

    /// The sender has sent `count` datagrams: those above the highest number that came are missing.
    pub fn ended(&mut self, count: u64) {
        self.skip_to(count);
        self.next = self.next.max(count);
    }

    /// One more than the highest number known to have been sent.
    pub fn known(&self) -> u64 {
        self.next
    }

    /// Datagrams that came, duplicates included.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Numbers that never came, up to the highest known.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Datagrams that came after one with a higher number.
    pub fn reordered(&self) -> u64 {
        self.reordered
    }

    /// Datagrams that came more than once.
    pub fn duplicated(&self) -> u64 {
        self.duplicated
    }

    /// Counts everything from the highest known up to `number`, exclusive, as lost so far.
    fn skip_to(&mut self, number: u64) {
        let gap = number.saturating_sub(self.next);
        self.lost += gap;
        if gap >= REMEMBERED_NUMBERS {
            self.seen.fill(0);
        } else {
            self.forget(self.next, number);
        }
    }

    /// Clears the bits of `from` up to `to`, exclusive: whole words if possible, so that a peer that leaves large gaps
    /// on purpose costs little.
    fn forget(&mut self, from: u64, to: u64) {
        let mut number = from;
        while number < to {
            if number.is_multiple_of(64) && to - number >= 64 {
                self.seen[(number % REMEMBERED_NUMBERS / 64) as usize] = 0;
                number += 64;
            } else {
                self.mark(number, false);
                number += 1;
            }
        }
    }

    fn mark(&mut self, number: u64, seen: bool) {
        let place = number % REMEMBERED_NUMBERS;
        let (word, bit) = (&mut self.seen[(place / 64) as usize], 1 << (place % 64));
        *word = if seen { *word | bit } else { *word & !bit };
    }

    /// Whether `number`, lower than the highest, came before.
    fn is_known(&self, number: u64) -> bool {
        if self.lost == 0 {
            return true;
        }
        let place = number % REMEMBERED_NUMBERS;
        let remembered = self.next - number <= REMEMBERED_NUMBERS;
        remembered && self.seen[(place / 64) as usize] & 1 << (place % 64) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn after(numbers: impl IntoIterator<Item = u64>) -> [u64; 4] {
        let mut sequence = Sequence::default();
        numbers.into_iter().for_each(|number| sequence.arrived(number));
        let s = sequence;
        [s.received(), s.lost(), s.reordered(), s.duplicated()]
    }

    #[test]
    fn gaps_late_ones_and_twins_are_distinguished() {
        assert_eq!(after([0, 1, 2]), [3, 0, 0, 0]);
        assert_eq!(after([0, 3]), [2, 2, 0, 0]);
        assert_eq!(after([0, 3, 1]), [3, 1, 1, 0]);
        assert_eq!(after([0, 3, 1, 1, 3]), [5, 1, 1, 2]);
        assert_eq!(after([1, 0]), [2, 0, 1, 0]);
    }

    #[test]
    fn the_end_marker_shows_what_is_missing_at_the_tail() {
        let mut sequence = Sequence::default();
        sequence.arrived(0);
        sequence.ended(5);
        assert_eq!(sequence.lost(), 4);
        sequence.arrived(4);
        sequence.ended(5);
        assert_eq!((sequence.lost(), sequence.received()), (3, 2));
    }

    #[test]
    fn one_too_old_to_remember_is_late_while_something_is_missing() {
        let far = REMEMBERED_NUMBERS * 3;
        assert_eq!(after([0, far, 1]), [3, far - 2, 1, 0]);
        assert_eq!(after((0..far).chain([1])), [far + 1, 0, 0, 1]);
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_set_of_all_numbers(numbers in proptest::collection::vec(0u64..300, 1..400)) {
            let set: std::collections::BTreeSet<_> = numbers.iter().copied().collect();
            let highest = set.last().copied().unwrap();
            let [received, lost, _, duplicated] = after(numbers.clone());
            prop_assert_eq!(received, numbers.len() as u64);
            prop_assert_eq!(lost, highest + 1 - set.len() as u64);
            prop_assert_eq!(duplicated, received - set.len() as u64);
        }

        #[test]
        fn nothing_is_remembered_of_what_was_skipped(
            first in proptest::collection::vec(0u64..200, 1..200), gap in 0u64..70_000,
        ) {
            // The second round comes one window later: all of it is new.
            let mut sequence = Sequence::default();
            first.iter().for_each(|number| sequence.arrived(*number));
            let twins = sequence.duplicated();
            sequence.ended(REMEMBERED_NUMBERS + 200 + gap);
            for number in REMEMBERED_NUMBERS + gap..REMEMBERED_NUMBERS + gap + 200 {
                sequence.arrived(number);
            }
            prop_assert_eq!(sequence.duplicated(), twins);
        }

        #[test]
        fn no_numbers_break_it(numbers in proptest::collection::vec(0u64..(1 << 62), 1..50)) {
            after(numbers);
        }
    }
}
