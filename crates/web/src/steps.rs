//! What a comparison, a tuning or a search for a rate reports while it runs: the parts of its events that a page shows. The
//! events themselves are large, and kept for each run that is followed.

use goodput_model::{BitRate, Judgement, Known, SettingRef, TuningOutcome};
use serde::{Deserialize, Serialize};

/// The names of these events.
const NAMES: [&str; 9] = [
    "transfers-began",
    "block-began",
    "trial-began",
    "trial-ended",
    "change-began",
    "change-ended",
    "proof-began",
    "rate-began",
    "rate-tried",
];

/// What pages show of an event with this name; `None` if it is another one.
pub fn shown(name: &str, line: &str) -> Option<String> {
    // Others may be large, and are not read twice.
    let step: Step = NAMES.contains(&name).then(|| serde_json::from_str(line).ok())??;
    serde_json::to_string(&step).ok()
}

/// An event of several runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Step {
    /// No more events are kept of the run. This one is the server's own.
    NoLongerFollowed,
    /// One of several comparisons of ways to send begins.
    TransfersBegan {
        /// Bytes that each client gets, if known.
        size_bytes: Option<u64>,
        /// How many at once.
        clients: u16,
    },
    /// A block of a comparison begins.
    BlockBegan(Outlook),
    /// A run of a comparison begins.
    TrialBegan {
        /// The values of its arm.
        values: Vec<String>,
    },
    /// A run of a comparison is done.
    TrialEnded {
        /// The values of its arm.
        values: Vec<String>,
        /// What it gave.
        trial: Trial,
    },
    /// A change is tried.
    ChangeBegan {
        /// The change.
        change: Change,
        /// How many are to be tried after it, as far as is known.
        waiting: usize,
    },
    /// A change was tried.
    ChangeEnded {
        /// The change with its outcome.
        step: Tried,
    },
    /// All that helped is compared with the start.
    ProofBegan {
        /// How many changes.
        changes: usize,
    },
    /// A rate is tried.
    RateBegan {
        /// Which; absent: as fast as possible.
        rate_bits_per_s: Option<BitRate>,
        /// Whether this is a longer trial, to confirm it.
        confirms: bool,
    },
    /// A rate was tried.
    RateTried {
        /// What came of it.
        trial: RateTrial,
    },
}

/// How far a comparison is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outlook {
    /// The block that begins; 0 is the warm-up.
    pub block: u32,
    /// The block after which arms are judged next.
    pub judged_after_block: Option<u32>,
    /// Seconds until then.
    pub judged_in_s: Option<f64>,
    /// Longest time that the comparison may take, seconds.
    pub at_most_s: f64,
    /// Arms that no longer run.
    pub decided: Vec<Decided>,
}

/// An arm that is decided.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decided {
    /// Its values.
    pub values: Vec<String>,
    /// Against the baseline.
    pub judgement: Judgement,
}

/// A run of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// The number of its arm; 0 is the baseline.
    pub arm: usize,
    /// What it gave.
    pub goodput_bits_per_s: Known<BitRate>,
    /// Why it does not count, if so.
    pub discarded: Option<String>,
}

/// A change of a setting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// What is changed.
    pub setting: SettingRef,
    /// The new value.
    pub to: String,
}

/// A change that was tried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tried {
    /// The change.
    pub change: Change,
    /// What came of it.
    pub outcome: TuningOutcome,
}

/// A rate that was tried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RateTrial {
    /// What the sender reached.
    pub sent_bits_per_s: BitRate,
    /// Share that did not arrive, percent.
    pub lost_percent: f64,
    /// Whether enough arrived.
    pub passed: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_page_shows_is_left_out_and_what_is_left_reads_the_same() {
        let line = r#"{"event":"trial-ended","values":["4K"],"trial":{"block":1,"arm":0,"goodput_bits_per_s":1e9,
            "witnesses":{"ack-path":1.0},"discarded":null}}"#;
        let kept = shown("trial-ended", line).unwrap();
        assert!(!kept.contains("witnesses") && !kept.contains('\n'), "{kept}");
        let read = |text: &str| serde_json::from_str::<Step>(text).unwrap();
        assert_eq!(read(&kept), read(line));
        assert_eq!(shown("sampled", line), None);
        assert_eq!(shown("trial-ended", "{}"), None);
    }

    #[test]
    fn every_name_is_one_of_an_event() {
        for name in NAMES {
            let why =
                serde_json::from_str::<Step>(&format!("{{\"event\":\"{name}\"}}")).unwrap_err();
            assert!(why.to_string().contains("missing field"), "{name}: {why}");
        }
    }
}
