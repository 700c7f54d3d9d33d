//! The end that sent, with what is known of its queueing discipline.

use goodput_model::{EndName, Missing, PacketCapture, Snapshot};

use super::Timers;
use crate::behind::Behind;
use crate::others::Around;

/// The end that sent, and what is known of it.
#[derive(Debug, Clone)]
pub struct Sender<'a> {
    /// The end.
    pub end: EndName,
    /// The router, as typed, whose facts and timers stand in for the end's own, if one was asked.
    pub router: Option<&'a str>,
    /// Facts of its path's device before TCP was measured.
    pub before: &'a Snapshot,
    /// The same facts afterwards.
    pub after: &'a Snapshot,
    /// Lateness of its timers.
    pub timers: Result<Timers, Missing>,
    /// Payload of a TCP segment, bytes, and its IP packet.
    pub segment: Result<(f64, f64), Missing>,
    /// Payload of TCP that arrived, bytes.
    pub arrived_bytes: Result<u64, Missing>,
    /// Payload that the sender's application wrote, bytes, if the receiver does not report what arrived. Until the end,
    /// more was sent than `arrived_bytes` has, which is what TCP had acknowledged by the last sample.
    pub written_bytes: Option<u64>,
    /// Segments that TCP sent again, as far as they were counted: those of the connections while samples were taken, or those of
    /// the whole host until its last facts, whichever are more.
    pub resent_segments: u64,
    /// What was counted around the train, if there was one.
    pub around_train: Option<Around<'a>>,
    /// The same around TCP.
    pub around_tcp: Option<Around<'a>>,
    /// What is behind the sender's own shaper, if the train shows it.
    pub behind: Option<Behind>,
    /// Smallest round-trip time of TCP, seconds.
    pub min_rtt_s: Result<f64, Missing>,
    /// A capture there, if one was made.
    pub capture: Option<&'a PacketCapture>,
    /// What limits TCP, by its own diagnosis, if that found anything.
    pub tcp_limit: Option<TcpLimit>,
}

/// What limits TCP, by its own diagnosis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TcpLimit {
    /// Id of the rule that found it.
    pub rule: String,
    /// The limit in words, as they follow "limited by".
    pub words: String,
    /// Whether the limit is in one of the hosts, and is no queueing discipline there: then TCP shows nothing of a shaper.
    pub is_of_host: bool,
}

impl Sender<'_> {
    /// Where its facts are from, in words.
    pub(crate) fn place(&self) -> String {
        match self.router {
            Some(router) => format!("the router {router}"),
            None => format!("the {} host", self.end),
        }
    }
}
