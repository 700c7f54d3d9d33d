//! Shapers drawn at random, as scenarios whose truth is known.

use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

/// Bytes of a frame of the train: 1500 of IP, and its Ethernet header.
pub const FRAME_BYTES: f64 = 1514.0;
/// What nft's policer counts as a packet, bits (`crates/lab/src/faults/policer.rs`).
const POLICED_BITS: f64 = 12_000.0;
/// Time that a drawn shaper's queue lasts, seconds.
const QUEUE_S: f64 = 0.05;
/// Shortest queue of a drawn shaper, bytes.
const MIN_QUEUE_BYTES: f64 = 65_536.0;

/// What limits a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Planted {
    /// A token bucket of the sender.
    Tbf,
    /// A class of the sender's htb.
    Htb,
    /// A policer at the receiver.
    Policer,
    /// Nothing.
    Nothing,
}

/// One draw.
#[derive(Debug, Clone, PartialEq)]
pub struct Drawn {
    /// `kind-number`.
    pub name: String,
    /// What limits.
    pub planted: Planted,
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

impl Planted {
    /// All, each as often as the others.
    pub const ALL: [Self; 4] = [Self::Tbf, Self::Htb, Self::Policer, Self::Nothing];

    /// Its name in a scenario.
    pub fn id(self) -> &'static str {
        match self {
            Self::Tbf => "tbf",
            Self::Htb => "htb",
            Self::Policer => "policer",
            Self::Nothing => "none",
        }
    }

    /// The kind that a test must report.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Tbf | Self::Htb => "shaper",
            Self::Policer => "policer",
            Self::Nothing => "none",
        }
    }

    fn most_bits_per_s(self) -> f64 {
        match self {
            Self::Tbf | Self::Htb => 5e9,
            // Above, datagrams leave joined, and nft counts each batch as one packet.
            Self::Policer | Self::Nothing => 2e8,
        }
    }
}

impl Drawn {
    /// Draw `number` of a seed: 1 Mbit/s to 5 Gbit/s, a bucket of one packet to 1 MB.
    pub fn of(seed: u64, number: u64) -> Self {
        let mut rng =
            Xoshiro256PlusPlus::seed_from_u64(seed.wrapping_mul(1_000_003).wrapping_add(number));
        let planted = *Planted::ALL.choose(&mut rng).unwrap_or(&Planted::Tbf);
        let asked_kbit = (between(&mut rng, 1e6, planted.most_bits_per_s()) / 1e3).round();
        let bucket = between(&mut rng, 1600.0, 1e6).round();
        let frames = (bucket / FRAME_BYTES).ceil();
        let packets = (asked_kbit * 1e3 / POLICED_BITS).round();
        let (rate_bits_per_s, bucket_bytes) = match planted {
            Planted::Policer => (packets * FRAME_BYTES * 8.0, frames * FRAME_BYTES),
            _ => (asked_kbit * 1e3, bucket),
        };
        let at_once_bytes = match planted {
            // A class may send while its tokens are not negative, and its last packet makes them so (htb_class_mode,
            // net/sched/sch_htb.c).
            Planted::Htb => ((bucket / FRAME_BYTES).floor() + 1.0) * FRAME_BYTES,
            _ => bucket_bytes,
        };
        let no_offload = rng.random_bool(0.5);
        let name = format!("{}-{number}", planted.id());
        let asked_kbit = asked_kbit as u64;
        Self { name, planted, asked_kbit, rate_bits_per_s, bucket_bytes, at_once_bytes, no_offload }
    }

    /// The scenario, with another bucket if one is given.
    pub fn scenario(&self, bucket_bytes: Option<f64>) -> String {
        let Self { name, planted, asked_kbit, .. } = self;
        let bucket = bucket_bytes.unwrap_or(self.bucket_bytes);
        let limit = (self.rate_bits_per_s / 8.0 * QUEUE_S).max(MIN_QUEUE_BYTES) + bucket;
        let fault = match planted {
            Planted::Tbf => format!(
                "host = \"near\"\nrate = \"{asked_kbit}kbit\"\nburst = \"{bucket:.0}\"\nlimit = \"{limit:.0}\"\n"
            ),
            Planted::Htb => format!(
                "host = \"near\"\nrate = \"10gbit\"\ndefault_rate = \"{asked_kbit}kbit\"\nburst = \"{bucket:.0}\"\n"
            ),
            Planted::Policer => format!(
                "host = \"far\"\nrate = \"{asked_kbit}kbit\"\nburst = {:.0}\n",
                bucket / FRAME_BYTES
            ),
            Planted::Nothing => String::new(),
        };
        let fault = match fault.is_empty() {
            true => fault,
            false => format!("[[fault]]\nkind = \"{}\"\n{fault}", planted.id()),
        };
        let offload = match self.no_offload {
            true => {
                "[[fault]]\nkind = \"offload\"\nhost = \"near\"\nname = \"tso\"\nvalue = \"off\"\n"
            }
            false => "",
        };
        format!(
            "name = \"{name}\"\ntitle = \"A path with a drawn shaper.\"\n[link.path]\n{fault}{offload}"
        )
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
        let drawn = |seed| (0..200).map(|number| Drawn::of(seed, number)).collect::<Vec<_>>();
        assert_eq!(drawn(1), drawn(1));
        assert_ne!(drawn(1), drawn(2));
        for planted in Planted::ALL {
            assert!(drawn(1).iter().filter(|one| one.planted == planted).count() > 20);
        }
        for one in drawn(1) {
            let scenario: toml::Table = one.scenario(None).parse().unwrap();
            assert_eq!(scenario["name"].as_str(), Some(&*one.name));
        }
    }

    #[test]
    fn a_class_may_send_a_frame_more_than_its_bucket_holds() {
        let more = (0..200).map(|n| Drawn::of(3, n)).filter(|one| one.planted == Planted::Htb);
        let more: Vec<_> = more.map(|one| one.at_once_bytes - one.bucket_bytes).collect();
        assert!(more.len() > 20 && more.iter().all(|more| (0.0..=FRAME_BYTES).contains(more)));
    }

    #[test]
    fn a_policer_counts_packets() {
        let policer = (0..100).map(|n| Drawn::of(3, n)).find(|one| one.planted == Planted::Policer);
        let policer = policer.unwrap();
        let frames = policer.rate_bits_per_s / 8.0 / FRAME_BYTES;
        assert!((frames - frames.round()).abs() < 1e-6, "{frames}");
        assert!((policer.bucket_bytes / FRAME_BYTES).fract() < 1e-9);
    }
}
