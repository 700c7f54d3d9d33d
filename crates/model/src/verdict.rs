//! The answer: what limits this path, and where the time went.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::account::Account;
use crate::end_name::EndName;
use crate::known::{Known, Missing};
use crate::loss::Loss;
use crate::place::Place;

/// What limits one direction of a measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// Id of the limiting rule, or `none`.
    pub limit: String,
    /// Where the limit is: the near end, the far end, or the path between them.
    pub end: Place,
    /// Share of the sender's time in which this limit held, percent; missing if it can't be counted.
    pub share_percent: Known<f64>,
    /// Range in which this share lies with 95 % confidence, percent; absent if it is not a share of the account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_between_percent: Option<[f64; 2]>,
    /// The verdict in one line, for a person.
    pub summary: String,
    /// How the sender's time divides. Only in records of older versions, which had no `account`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<Known<Split>>,
    /// Where the flows' time went, moment by moment.
    #[serde(default = "no_account")]
    pub account: Known<Account>,
    /// What was lost, and what explains the losses.
    #[serde(default = "no_loss")]
    pub loss: Known<Loss>,
    /// The end that sent in this direction.
    pub sender: EndName,
}

fn no_account() -> Known<Account> {
    Known::missing("this version of goodput kept no account")
}

fn no_loss() -> Known<Loss> {
    Known::missing("this version of goodput fitted no losses")
}

impl Verdict {
    /// Value of `limit` if no rule found a limit.
    pub const NO_LIMIT: &'static str = "none";

    /// No verdict on what `sender` sent, and why nothing was diagnosed.
    pub fn missing(why: &Missing, sender: EndName) -> Self {
        Self {
            limit: Self::NO_LIMIT.into(),
            end: Place::Path,
            share_percent: Known::Missing(why.clone()),
            share_between_percent: None,
            summary: why.to_string(),
            split: None,
            account: Known::Missing(why.clone()),
            loss: Known::Missing(why.clone()),
            sender,
        }
    }
}

/// How the sender's time divides; the four shares add up to 100.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Split {
    /// Share of the time without anything to send, percent.
    pub application_percent: f64,
    /// Share of the time in which the sender's own buffer stopped it, percent.
    pub send_buffer_percent: f64,
    /// Share of the time in which the peer's window stopped the sender, percent.
    pub receive_window_percent: f64,
    /// Share of the time in which the path stopped the sender, percent: congestion window, pacing, queues, or
    /// simply the wire.
    pub path_percent: f64,
}
