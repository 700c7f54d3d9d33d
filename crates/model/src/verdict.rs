//! The answer: what limits this path, and where the time went.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::account::Account;
use crate::end_name::EndName;
use crate::known::Known;
use crate::loss::Loss;
use crate::place::Place;

/// What limits one direction of a measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// Id of the limiting rule, or `none`.
    pub limit: String,
    /// Where it sits.
    pub end: Place,
    /// Share of the sender's time that it held, if that is countable.
    pub share_percent: Known<f64>,
    /// One line for a person.
    pub summary: String,
    /// The sender's time as goodput divided it before the account. Only records of that time have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<Known<Split>>,
    /// Where the time of the flows went, moment by moment.
    #[serde(default = "no_account")]
    pub account: Known<Account>,
    /// What was lost, and what explains it.
    #[serde(default = "no_loss")]
    pub loss: Known<Loss>,
    /// The end that sent.
    pub sender: EndName,
}

fn no_account() -> Known<Account> {
    Known::missing("this version of goodput kept no account")
}

fn no_loss() -> Known<Loss> {
    Known::missing("this version of goodput fitted no losses")
}

impl Verdict {
    /// What stands for the rule if nothing is known to limit.
    pub const NO_LIMIT: &'static str = "none";
}

/// How the sender's time divides; the four shares add up to 100.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Split {
    /// Nothing to send.
    pub application_percent: f64,
    /// Stopped by its own send buffer.
    pub send_buffer_percent: f64,
    /// Stopped by the peer's window.
    pub receive_window_percent: f64,
    /// Stopped by the path: congestion window, pacing, queues, or simply the wire.
    pub path_percent: f64,
}
