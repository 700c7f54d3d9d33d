//! Events of a running measurement, for anything that shows it: a terminal, a stream of JSON, a program
//! that embeds the engine.

use goodput_model::{
    Bytes, Change, Connection, EndName, Host, Interval, RateTrial, Sample, Trial, TuningStep,
};
use serde::Serialize;

/// One thing that happened.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// The peer answered.
    Connected {
        /// The machine at the other end.
        peer: Host,
        /// Whether the control connection is encrypted, by the shared token or by keys.
        secured: bool,
    },
    /// The flows are open.
    Opened {
        /// The addresses of each, as far as they are known.
        connections: Vec<Connection>,
    },
    /// Both ends are ready; payload begins to move.
    Began,
    /// An interval of one direction has passed.
    Interval(Interval),
    /// What an end had counted, several times a second, for readers that cut intervals of their own.
    Sampled {
        /// The end that counted.
        end: EndName,
        /// What it had counted.
        sample: Box<Sample>,
    },
    /// The payload has stopped; both ends gather what they saw.
    Ended,
    /// Something about the measurement a reader should know.
    Note {
        /// In words.
        text: String,
    },
    /// A trial of a search for the highest rate is done.
    RateTried {
        /// Payload of its datagrams.
        datagram_bytes: Bytes,
        /// What came out.
        trial: RateTrial,
    },
    /// A comparison of ways to send files begins, of several: one for each size and number of clients.
    TransfersBegan {
        /// Bytes that each client is sent, if that is known.
        size_bytes: Option<u64>,
        /// Clients at the same time.
        clients: u16,
    },
    /// A change is about to be tried.
    ChangeBegan {
        /// What is changed.
        change: Change,
        /// Id of the rule that proposed it.
        rule: String,
    },
    /// A change was tried.
    ChangeEnded {
        /// What came of it.
        step: Box<TuningStep>,
    },
    /// A run of a comparison is done.
    TrialEnded {
        /// The values of its arm.
        values: Vec<String>,
        /// What came out.
        trial: Box<Trial>,
    },
}

/// Where events go. Called from the thread that drives the measurement; must not block for long.
pub type Listener<'a> = dyn FnMut(Event) + 'a;
