//! Link modes: the ways in which an Ethernet link can run, one bit each
//! (`enum ethtool_link_mode_bit_indices`, include/uapi/linux/ethtool.h of Linux 6.15).

use std::ops::RangeInclusive;

/// Bits that stand for a speed, Mbit/s. The others are ports, pause frames and error correction.
/// Modes that a newer kernel adds are ignored.
const SPEEDS: &[(RangeInclusive<usize>, u32)] = &[
    (0..=1, 10),
    (2..=3, 100),
    (4..=5, 1000),
    (12..=12, 10_000),
    (15..=15, 2500),
    (17..=17, 1000),
    (18..=20, 10_000),
    (21..=22, 20_000),
    (23..=26, 40_000),
    (27..=30, 56_000),
    (31..=33, 25_000),
    (34..=35, 50_000),
    (36..=39, 100_000),
    (40..=40, 50_000),
    (41..=41, 1000),
    (42..=46, 10_000),
    (47..=47, 2500),
    (48..=48, 5000),
    (52..=56, 50_000),
    (57..=61, 100_000),
    (62..=66, 200_000),
    (67..=67, 100),
    (68..=68, 1000),
    (69..=73, 400_000),
    (75..=79, 100_000),
    (80..=84, 200_000),
    (85..=89, 400_000),
    (90..=91, 100),
    (92..=92, 10),
    (93..=98, 800_000),
    (99..=102, 10),
    (103..=108, 200_000),
    (109..=114, 400_000),
    (115..=120, 800_000),
];

/// A set of link modes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinkModes {
    bits: Vec<u32>,
}

impl LinkModes {
    /// Reads a mask of words as the kernel writes it.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        let words = bytes.chunks_exact(4).filter_map(|word| word.first_chunk());
        Self { bits: words.map(|word| u32::from_ne_bytes(*word)).collect() }
    }

    /// The speed of its fastest mode, bits per second; `None` if no mode has a known speed.
    pub fn fastest_bits_per_s(&self) -> Option<u64> {
        let known = SPEEDS.iter().filter(|(bits, _)| bits.clone().any(|bit| self.has(bit)));
        known.map(|(_, mbit)| u64::from(*mbit) * 1_000_000).max()
    }

    fn has(&self, bit: usize) -> bool {
        self.bits.get(bit / 32).is_some_and(|word| word >> (bit % 32) & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(bits: &[usize]) -> LinkModes {
        let mut words = [[0u8; 4]; 4];
        for bit in bits {
            words[bit / 32] = (u32::from_ne_bytes(words[bit / 32]) | 1 << (bit % 32)).to_ne_bytes();
        }
        LinkModes::from_bytes(words.as_flattened())
    }

    #[test]
    fn the_fastest_mode_counts_and_ports_have_no_speed() {
        // Twisted pair and autonegotiation (7, 6) beside 10 to 1000 Mbit/s and 2.5 Gbit/s (47).
        assert_eq!(of(&[0, 1, 2, 3, 5, 6, 7]).fastest_bits_per_s(), Some(1_000_000_000));
        assert_eq!(of(&[5, 6, 7, 47]).fastest_bits_per_s(), Some(2_500_000_000));
        assert_eq!(of(&[6, 7, 13, 49]).fastest_bits_per_s(), None);
        assert_eq!(of(&[36, 69]).fastest_bits_per_s(), Some(400_000_000_000));
        assert_eq!(of(&[99, 120]).fastest_bits_per_s(), Some(800_000_000_000));
    }

    #[test]
    fn no_bit_has_two_speeds() {
        for (one, other) in SPEEDS.iter().zip(&SPEEDS[1..]) {
            assert!(one.0.end() < other.0.start(), "{:?} {:?}", one.0, other.0);
        }
    }

    proptest! {
        #[test]
        fn no_mask_makes_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = LinkModes::from_bytes(&bytes).fastest_bits_per_s();
        }
    }
}
