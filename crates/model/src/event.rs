//! Events of a running measurement, for anything that shows it: a terminal, a page, a stream of JSON, a program that embeds
//! the engine.

use serde::{Deserialize, Serialize};

use crate::change::Change;
use crate::comparison::Trial;
use crate::connection::Connection;
use crate::effect::Judgement;
use crate::end::Host;
use crate::end_name::EndName;
use crate::plan::Plan;
use crate::rate_search::RateTrial;
use crate::record::Interval;
use crate::sample::Sample;
use crate::tuning::TuningStep;
use crate::units::{BitRate, Bytes};

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// The peer answered.
    Connected {
        /// The machine at the other end.
        peer: Host,
        /// Whether the control connection is encrypted, by the shared token or by keys.
        secured: bool,
    },
    /// The transfer of another program was found, which is watched from now on.
    Found {
        /// The other end, as in the record.
        target: String,
        /// The transfer in the terms of a plan.
        plan: Box<Plan>,
    },
    /// The flows are open.
    Opened {
        /// The addresses of each flow, as far as they are known.
        connections: Vec<Connection>,
    },
    /// Both ends are ready; payload begins to move.
    Began,
    /// An interval of one direction has passed.
    Interval(Interval),
    /// What an end has counted, several times a second, for readers that cut their own intervals.
    Sampled {
        /// The end that counted.
        end: EndName,
        /// What it had counted.
        sample: Box<Sample>,
    },
    /// The payload has stopped; both ends gather what they saw.
    Ended,
    /// Something that a reader should know about the measurement.
    Note {
        /// In words.
        text: String,
    },
    /// A trial of a search for the highest rate is about to begin.
    RateBegan {
        /// Payload size of its datagrams.
        datagram_bytes: Bytes,
        /// The rate to try; absent: as fast as possible.
        rate_bits_per_s: Option<BitRate>,
        /// Whether this is one of the longer, confirming trials.
        confirms: bool,
    },
    /// A trial of a search for the highest rate is done.
    RateTried {
        /// Payload size of its datagrams.
        datagram_bytes: Bytes,
        /// The outcome.
        trial: RateTrial,
    },
    /// One of several comparisons of ways to send files begins: one for each size and number of clients.
    TransfersBegan {
        /// Bytes that are sent to each client, if known.
        size_bytes: Option<u64>,
        /// Number of simultaneous clients.
        clients: u16,
    },
    /// A change is about to be tried.
    ChangeBegan {
        /// What is changed.
        change: Change,
        /// Id of the rule that proposed it.
        rule: String,
        /// Number of changes to be tried after this one, as far as is known now.
        waiting: usize,
    },
    /// A change was tried.
    ChangeEnded {
        /// The outcome.
        step: Box<TuningStep>,
    },
    /// All changes that helped are about to be compared with the start.
    ProofBegan {
        /// Number of changes.
        changes: usize,
    },
    /// A block of a comparison is about to begin.
    BlockBegan(Outlook),
    /// A run of a comparison is about to begin.
    TrialBegan {
        /// The values of its arm.
        values: Vec<String>,
    },
    /// A run of a comparison is done.
    TrialEnded {
        /// The values of its arm.
        values: Vec<String>,
        /// The outcome.
        trial: Box<Trial>,
    },
}

/// How far a comparison has got.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Outlook {
    /// The block that begins; 0 is the warm-up.
    pub block: u32,
    /// The block after which arms are judged next, if it counts as planned. Absent if no planned look is left.
    pub judged_after_block: Option<u32>,
    /// Time until then at the pace of the runs so far, seconds. Absent if the comparison ends before then, and before
    /// the first run if its length is unknown.
    pub judged_in_s: Option<f64>,
    /// Longest time that the comparison may still take, seconds.
    pub at_most_s: f64,
    /// Number of arms that still run, without the baseline.
    pub open: usize,
    /// Arms that no longer run.
    pub decided: Vec<Decided>,
}

/// An arm that a look has decided.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decided {
    /// Its values.
    pub values: Vec<String>,
    /// Its judgement against the baseline, by the first response.
    pub judgement: Judgement,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known::Known;

    #[test]
    fn an_event_is_read_again_as_it_was_written() {
        let interval = Interval {
            sender: EndName::Far,
            from_s: 0.0,
            to_s: 1.0,
            received_bytes: Known::Value(1 << 60),
            goodput_bits_per_s: Known::missing("not counted"),
            sent_bits_per_s: None,
        };
        let trial = Box::new(Trial::new(1, 0, Known::Value(BitRate(1e9))));
        let outlook = Outlook { block: 2, judged_in_s: Some(65.2), ..Outlook::default() };
        for event in [
            Event::Began,
            Event::Interval(interval),
            Event::TrialEnded { values: vec!["4K".into()], trial },
            Event::BlockBegan(outlook),
            Event::Found { target: "nas".into(), plan: Box::new(Plan::standard()) },
        ] {
            let line = serde_json::to_string(&event).unwrap();
            assert!(!line.contains('\n'), "{line}");
            assert_eq!(serde_json::from_str::<Event>(&line).unwrap(), event);
        }
        let of_a_later_version = serde_json::from_str::<Event>(r#"{"event":"paused"}"#);
        assert!(of_a_later_version.is_err());
    }
}
