//! The search for the highest rate at which few enough datagrams are lost.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::known::Known;
use crate::units::{BitRate, Bytes};

/// One search for the highest rate, with datagrams of one size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RateSearch {
    /// Payload of each datagram, bytes, without UDP and IP headers.
    pub datagram_bytes: Bytes,
    /// Share of datagrams that may be lost, percent.
    pub max_loss_percent: f64,
    /// How the search ended.
    pub outcome: RateOutcome,
    /// Rate of payload that the confirming trial sent, bits per second; absent if no trial confirmed a rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_bits_per_s: Option<BitRate>,
    /// Rate of the confirming trial, datagrams per second; absent if no trial confirmed a rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datagrams_per_s: Option<f64>,
    /// What limits the rate, in words: what limited the slowest trial that lost too much, or the confirming trial
    /// if none lost too much.
    pub limit: String,
    /// Every trial, in order.
    pub trials: Vec<RateTrial>,
    /// Doubts about the result, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<String>,
}

/// How a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RateOutcome {
    /// The path limits the rate: slightly above it, too much is lost.
    Path,
    /// The receiving socket limits the rate: slightly above it, the socket repeatedly drops too much. The path may
    /// carry more.
    Receiver,
    /// The sender limits the rate: it can't send faster, and the path carries all of it. The path may carry more.
    Sender,
    /// Too much is lost even at the lowest rate.
    LossEverywhere,
    /// Rates that passed failed when they were tried again: there is no such rate, or not at this time.
    Unsteady,
    /// The search was interrupted or took too many trials.
    Unfinished,
}

/// One trial of a search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RateTrial {
    /// Requested rate of payload, bits per second; absent: as fast as possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_bits_per_s: Option<BitRate>,
    /// Rate of payload that the sender reached, bits per second.
    pub sent_bits_per_s: BitRate,
    /// Number of datagrams sent.
    pub sent_datagrams: u64,
    /// Share of the sent datagrams that did not arrive, percent.
    pub lost_percent: f64,
    /// Share of the sent datagrams that the receiving socket dropped because it was full, percent. They are part of
    /// `lost_percent`.
    #[serde(default = "unreported")]
    pub dropped_by_receiver_percent: Known<f64>,
    /// Time for which the trial sent, seconds.
    pub duration_s: f64,
    /// Whether this is one of the longer trials that confirm a rate.
    pub confirms: bool,
    /// Whether no more was lost than allowed.
    pub passed: bool,
    /// Whether only the receiving socket's drops made the loss too large. Such a trial says nothing about the path.
    #[serde(default, skip_serializing_if = "is_false")]
    pub spoilt: bool,
}

/// The value in records of earlier versions.
fn unreported() -> Known<f64> {
    Known::missing("earlier versions did not ask the receiving socket")
}

fn is_false(value: &bool) -> bool {
    !value
}
