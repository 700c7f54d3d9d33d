//! Random numbers for loss, jitter and reordering: the same seed treats the same packets the same way, so a run can be
//! repeated.

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
#[derive(Debug, Clone)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// True for a fraction `chance` (0 to 1) of the calls.
    pub(super) fn hit(&mut self, chance: f64) -> bool {
        chance > 0.0 && self.unit() < chance
    }

    /// Uniform in `-spread..=spread`.
    pub(super) fn around_zero(&mut self, spread: u64) -> i64 {
        ((self.unit() * 2.0 - 1.0) * spread as f64) as i64
    }

    /// Uniform in `0.0..1.0`, with the 53 bits of a double.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_repeats_and_another_does_not() {
        let draw = |seed| {
            let mut random = Random::seeded(seed);
            (0..64).map(|_| random.hit(0.5)).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn the_share_of_hits_is_the_chance() {
        let mut random = Random::seeded(7);
        let hits = (0..100_000).filter(|_| random.hit(0.01)).count();
        // Binomial: mean 1000, standard deviation 31; five of them on either side.
        assert!((845..=1155).contains(&hits), "{hits}");
        assert!((0..1000).all(|_| !random.hit(0.0)));
    }
}
