//! Shapers drawn at random, as scenarios whose truth is known.

use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

use super::planted::{ALL, Asked, Kernel, Planted, Truth};

/// Time that a drawn shaper's queue lasts, seconds.
const QUEUE_S: f64 = 0.05;
/// Shortest queue of a drawn shaper, bytes.
const MIN_QUEUE_BYTES: f64 = 65_536.0;

/// One draw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Drawn {
    /// `kind-number`.
    pub name: String,
    /// What limits, by its name.
    planted: String,
    /// The rate to ask for, kilobits per second.
    pub asked_kbit: u64,
    /// The rate that passes, bits per second of frames.
    pub rate_bits_per_s: f64,
    /// The bucket, bytes of frames.
    pub bucket_bytes: f64,
    /// What passes at once after a pause, bytes of frames.
    pub at_once_bytes: f64,
    /// Whether the sender's segmentation offload is off.
    pub no_offload: bool,
}

impl Drawn {
    /// Draw `number` of a seed, of the kinds that a kernel has: 1 Mbit/s to what the kind and the kernel can, a bucket of one
    /// packet to 1 MB.
    pub fn of(kernel: Kernel, seed: u64, number: u64) -> Self {
        let mut rng =
            Xoshiro256PlusPlus::seed_from_u64(seed.wrapping_mul(1_000_003).wrapping_add(number));
        let kinds: Vec<&Planted> = ALL.iter().filter(|row| row.kernel == kernel).collect();
        let planted = kinds.choose(&mut rng).copied().unwrap_or(&ALL[0]);
        let kbit = (between(&mut rng, 1e6, planted.most_bits_per_s) / 1e3).round() as u64;
        let bucket = between(&mut rng, 1600.0, 1e6).round();
        let asked = Asked { kbit, bucket, limit: 0.0 };
        let Truth { rate_bits_per_s, bucket_bytes, at_once_bytes } = (planted.truth)(asked);
        Self {
            name: format!("{}-{number}", planted.id),
            planted: planted.id.into(),
            asked_kbit: kbit,
            rate_bits_per_s,
            bucket_bytes,
            at_once_bytes,
            no_offload: rng.random_bool(0.5) && planted.has_offload(),
        }
    }

    /// What limits.
    pub fn planted(&self) -> &'static Planted {
        Planted::named(&self.planted).unwrap_or(&ALL[0])
    }

    /// The scenario, with another bucket if one is given.
    pub fn scenario(&self, bucket_bytes: Option<f64>) -> String {
        let Self { name, asked_kbit: kbit, .. } = self;
        let bucket = bucket_bytes.unwrap_or(self.bucket_bytes);
        let limit = (self.rate_bits_per_s / 8.0 * QUEUE_S).max(MIN_QUEUE_BYTES) + bucket;
        let path = (self.planted().scenario)(Asked { kbit: *kbit, bucket, limit });
        let offload = match self.no_offload {
            true => {
                "[[fault]]\nkind = \"offload\"\nhost = \"near\"\nname = \"tso\"\nvalue = \"off\"\n"
            }
            false => "",
        };
        format!("name = \"{name}\"\ntitle = \"A path with a drawn shaper.\"\n{path}{offload}")
    }
}

/// A value between two limits, log-uniformly distributed.
fn between(rng: &mut Xoshiro256PlusPlus, least: f64, most: f64) -> f64 {
    rng.random_range(least.ln()..=most.ln()).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draw_is_the_same_each_time_and_every_kind_is_drawn() {
        for kernel in [Kernel::Own, Kernel::Distribution] {
            let drawn = |seed| (0..200).map(|n| Drawn::of(kernel, seed, n)).collect::<Vec<_>>();
            assert_eq!(drawn(1), drawn(1));
            assert_ne!(drawn(1), drawn(2));
            for row in ALL.iter().filter(|row| row.kernel == kernel) {
                let of_row = |one: &&Drawn| std::ptr::eq(one.planted(), row);
                assert!(drawn(1).iter().filter(of_row).count() > 15, "{}", row.id);
            }
            for one in drawn(1) {
                let scenario: toml::Table = one.scenario(None).parse().unwrap();
                assert_eq!(scenario["name"].as_str(), Some(&*one.name));
            }
        }
    }

    #[test]
    fn what_was_planted_is_planted_again() {
        for (number, row) in (0..).zip(ALL) {
            let one = Drawn::of(row.kernel, 3, number);
            let truth = (one.planted().truth)(Asked {
                kbit: one.asked_kbit,
                bucket: one.bucket_bytes,
                limit: 0.0,
            });
            assert!(truth.rate_bits_per_s == one.rate_bits_per_s, "{one:?}");
        }
    }
}
