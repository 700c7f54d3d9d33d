//! The search for the highest rate of datagrams whose loss is under a threshold.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::known::Known;
use crate::units::{BitRate, Bytes};

/// A search with datagrams of one size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RateSearch {
    /// Payload of each datagram, bytes, without the headers of UDP and IP.
    pub datagram_bytes: Bytes,
    /// Share of the datagrams that may be lost, percent.
    pub max_loss_percent: f64,
    /// What came of it.
    pub outcome: RateOutcome,
    /// The rate of payload as sent in the confirming trial, bits per second; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_bits_per_s: Option<BitRate>,
    /// The same in datagrams per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datagrams_per_s: Option<f64>,
    /// What limits it, in words: of the slowest trial that lost too much, or, if none did, of the one
    /// that confirmed.
    pub limit: String,
    /// Every trial, in order.
    pub trials: Vec<RateTrial>,
    /// What casts doubt on it, for a person.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<String>,
}

/// How a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RateOutcome {
    /// The rate is the path's: a little above it too much is lost.
    Path,
    /// The receiving socket, time after time, loses too much a little above it: the path may carry more.
    Receiver,
    /// The sender sends no faster, and the path carries that: it may carry more.
    Sender,
    /// Even at the lowest rate too much is lost: no rate has so little loss.
    LossEverywhere,
    /// Rates that passed failed when they were tried again: there is no such rate, or not now.
    Unsteady,
    /// It was broken off, or took too many trials.
    Unfinished,
}

/// One trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RateTrial {
    /// The rate of payload that the sender was to hold; absent: as fast as it goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_bits_per_s: Option<BitRate>,
    /// The rate of payload that it did send.
    pub sent_bits_per_s: BitRate,
    /// Datagrams that it sent.
    pub sent_datagrams: u64,
    /// Share of them that did not arrive, percent.
    pub lost_percent: f64,
    /// What reached the receiver, whose socket had no room for it: part of `lost_percent`, percent of what
    /// was sent, too.
    #[serde(default = "unreported")]
    pub dropped_by_receiver_percent: Known<f64>,
    /// How long it sent, seconds.
    pub duration_s: f64,
    /// Whether it is one of the longer trials that confirm.
    pub confirms: bool,
    /// Whether no more was lost than may be.
    pub passed: bool,
    /// Whether the path lost no more than may be, but with what the receiving socket dropped it was too
    /// much: this says nothing about the path.
    #[serde(default, skip_serializing_if = "is_false")]
    pub spoilt: bool,
}

/// What a record of an earlier version leaves us with.
fn unreported() -> Known<f64> {
    Known::missing("earlier versions did not ask the receiving socket")
}

fn is_false(value: &bool) -> bool {
    !value
}
