//! A rate limit of an operator that flows had to keep.

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
    /// Whose limit it is, and so which flows share it.
    pub limit: RateLimit,
    /// Time that the flows' threads waited because of the limit, microseconds, all flows together.
    pub held_us: u64,
}

/// Who shares a rate limit. No limit is for one flow alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RateLimit {
    /// All measurements of one client share the limit (`serve --max-rate`).
    Client,
    /// All measurements of one client share the limit, which is the client's share of the total (`serve
    /// --max-total-rate`, `--client-share`).
    ClientShare,
    /// All clients in the network around the client share the limit, which is their share of the total.
    NetworkShare,
    /// All clients together share the limit (`serve --max-total-rate`).
    Total,
    /// All measurements with the client's key share the limit (`max-rate=` in the list of authorized keys).
    Key,
    /// A limit that only later versions of goodput know.
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
