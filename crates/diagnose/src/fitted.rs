//! Numbers that no physics and no standard gives, but kept runs with known faults: `data/fit.json`, which `cargo xtask corpus`
//! writes, has them with their priors, the sources of these, and the number of runs behind each. docs/corpus.md shows them.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

/// A fitted number. It has the name of a quantity that a run's evidence shows: the number is its mean, or is compared with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fitted {
    /// How far a rate of all flows together must be ahead of chance to be shown, in the information criterion.
    RateAhead,
    /// How far a token bucket must be ahead of its next rival to be shown, in the information criterion.
    BucketAhead,
    /// How far the best explanation by chance and the best by a limit must lie apart for either to be shown, in the information
    /// criterion.
    LimitAhead,
    /// Share of the steps at a rate that are accidents of something else.
    AccidentShare,
    /// Share of the repeated segments that turn out needless if packets are late.
    NeedlessIfLate,
    /// The same if packets are lost.
    NeedlessIfLost,
    /// Ninth over first decile of the congestion window from which the window does not keep meeting the same level.
    WindowSpread,
    /// Lost share of slow start from which it overshot a limit.
    StartupLostShare,
}

impl Fitted {
    /// All of them.
    #[cfg(test)]
    const ALL: [Self; 8] = [
        Self::RateAhead,
        Self::BucketAhead,
        Self::LimitAhead,
        Self::AccidentShare,
        Self::NeedlessIfLate,
        Self::NeedlessIfLost,
        Self::WindowSpread,
        Self::StartupLostShare,
    ];

    /// The name in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::RateAhead => "rate-ahead",
            Self::BucketAhead => "bucket-ahead",
            Self::LimitAhead => "limit-ahead",
            Self::AccidentShare => "accident-share",
            Self::NeedlessIfLate => "needless-if-late",
            Self::NeedlessIfLost => "needless-if-lost",
            Self::WindowSpread => "window-spread",
            Self::StartupLostShare => "startup-lost-share",
        }
    }

    /// The number. Not a number if the file lacks it, which a test forbids: then nothing is above it, and nothing is shown.
    pub fn value(self) -> f64 {
        VALUES.get(self.name()).copied().unwrap_or(f64::NAN)
    }
}

/// The part of the file that a diagnosis needs.
#[derive(Deserialize)]
struct Fit {
    thresholds: Vec<Threshold>,
}

#[derive(Deserialize)]
struct Threshold {
    name: String,
    value: f64,
}

static VALUES: LazyLock<BTreeMap<String, f64>> =
    LazyLock::new(|| values(include_str!("../data/fit.json")));

fn values(fit: &str) -> BTreeMap<String, f64> {
    let thresholds = serde_json::from_str::<Fit>(fit).map(|fit| fit.thresholds);
    let named = |one: Threshold| (one.name, one.value);
    thresholds.unwrap_or_default().into_iter().map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_has_every_number_and_no_other() {
        let names: Vec<_> = Fitted::ALL.map(Fitted::name).into();
        let mut in_file: Vec<_> = VALUES.keys().map(String::as_str).collect();
        in_file.sort_by_key(|name| names.iter().position(|known| known == name));
        assert_eq!(in_file, names);
        assert!(Fitted::ALL.iter().all(|one| one.value() > 0.0));
        assert!(values("{}").is_empty());
    }
}
