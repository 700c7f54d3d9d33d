//! A rate that an operator's limit held flows to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::sample::Role;
use crate::units::BitRate;

/// A rate limit of this end's operator, and how long flows waited because of it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HeldTo {
    /// Whether this end sends or receives on the limited flows.
    pub role: Role,
    /// The limit for all flows that share it, in this direction, bits per second.
    pub rate_bits_per_s: BitRate,
    /// The kind of limit, which determines the flows that share it.
    pub limit: RateLimit,
    /// Time that the flows' threads waited because of the limit, microseconds, all flows together.
    pub held_us: u64,
}

/// Whose rate is limited. None is that of one flow: all are shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RateLimit {
    /// All measurements of one client (`serve --max-rate`).
    Client,
    /// The same, as its share of what all have (`serve --max-total-rate`, `--client-share`).
    ClientShare,
    /// All clients of a network around the client, as their share of what all have.
    NetworkShare,
    /// All clients together (`serve --max-total-rate`).
    Total,
    /// All measurements of the client's key (`max-rate=` in the list of authorized keys).
    Key,
    /// A limit that a later version knows.
    #[serde(other)]
    Other,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_a_later_version_is_still_a_limit() {
        let text = r#"{"role":"receiver","rate_bits_per_s":5e7,"limit":"moon","held_us":7,"x":1}"#;
        let read: HeldTo = serde_json::from_str(text).unwrap();
        assert_eq!((read.limit, read.rate_bits_per_s), (RateLimit::Other, BitRate(5e7)));
        let written = serde_json::to_value(HeldTo { limit: RateLimit::ClientShare, ..read });
        assert_eq!(written.unwrap()["limit"], "client-share");
    }
}
