//! Datagram numbers of which only the lower 32 bits are sent. Pure.

/// Restores the upper bits that a sender leaves out, from the previous numbers.
#[derive(Debug, Clone, Default)]
pub struct Unwrap {
    /// The highest number so far, with all its bits.
    highest: u64,
}

impl Unwrap {
    /// The full number whose lower bits are `low`: the one nearest to the highest so far, because no two datagrams in
    /// flight are 2^31 apart.
    pub fn number(&mut self, low: u32) -> u64 {
        let step = low.wrapping_sub(self.highest as u32) as i32;
        let nearest = self.highest.checked_add_signed(i64::from(step));
        // No number is below zero: the sender began high.
        let number = nearest.unwrap_or(u64::from(low));
        self.highest = self.highest.max(number);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_number_goes_on_beyond_32_bits_and_a_late_one_does_not() {
        let mut unwrap = Unwrap::default();
        for (low, number) in [
            (1, 1),
            (0x7fff_ffff, 0x7fff_ffff),
            (0xffff_fffe, 0xffff_fffe),
            (1, 0x1_0000_0001),
            (0xffff_ffff, 0xffff_ffff),
            (2, 0x1_0000_0002),
        ] {
            assert_eq!(unwrap.number(low), number);
        }
    }

    #[test]
    fn a_sender_that_begins_high_is_believed() {
        assert_eq!(Unwrap::default().number(0xffff_ffff), 0xffff_ffff);
    }

    proptest! {
        #[test]
        fn what_moves_less_than_half_a_turn_is_followed(steps in proptest::collection::vec(-1000i64..0x7fff_ffff, 1..60)) {
            let (mut unwrap, mut highest) = (Unwrap::default(), 0u64);
            for step in steps {
                let number = highest.saturating_add_signed(step);
                prop_assert_eq!(unwrap.number(number as u32), number);
                highest = highest.max(number);
            }
        }
    }
}
