//! What a peer that is not goodput reports of itself when a measurement is over.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::known::Known;
use crate::sample::Role;

/// A foreign peer's own account. It stands beside what this end saw, and never replaces it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Totals {
    /// The program and its version, as far as known.
    pub program: String,
    /// CPU time that it used, as a share of the time that the measurement took, percent of one CPU.
    pub cpu_percent: Known<f64>,
    /// Of this, what its own code used (user time), if it reported it separately.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_user_percent: Option<f64>,
    /// Of this, what the kernel used for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_system_percent: Option<f64>,
    /// The congestion control that its sockets had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
    /// The identifier of the measurement at both ends, if the protocol has one as text: iperf3's
    /// cookie.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cookie: Option<String>,
    /// Each flow in its report.
    pub flows: Vec<FlowTotals>,
    /// Its output in its own words, if it was asked for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// One flow of a foreign peer's account.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowTotals {
    /// Number of the flow in the plan.
    pub flow: u16,
    /// How many flows after this one are counted in it: nuttcp reports only the sum of all.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub together_with: u16,
    /// Whether the peer sent or received on it.
    pub role: Role,
    /// Payload bytes that the peer counted; as exactly as its protocol reports them: those of a TCP
    /// stream of nuttcp, which prints megabytes with four digits, to ± 53.
    pub bytes: Known<u64>,
    /// How long it counted, seconds.
    pub duration_s: Known<f64>,
    /// Segments that the peer retransmitted.
    pub retransmits: Known<u64>,
    /// Datagrams: sent, or as many as the highest number that it received.
    pub datagrams: Known<u64>,
    /// Of these, the ones that it did not receive.
    pub lost: Known<u64>,
    /// Datagrams that it received after one with a higher number.
    pub reordered: Known<u64>,
    /// Jitter that it saw, microseconds.
    pub jitter_us: Known<f64>,
}

impl FlowTotals {
    /// An account that says nothing yet, because of `why`.
    pub fn unreported(flow: u16, role: Role, why: &'static str) -> Self {
        Self {
            flow,
            together_with: 0,
            role,
            bytes: Known::missing(why),
            duration_s: Known::missing(why),
            retransmits: Known::missing(why),
            datagrams: Known::missing(why),
            lost: Known::missing(why),
            reordered: Known::missing(why),
            jitter_us: Known::missing(why),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
fn is_zero(count: &u16) -> bool {
    *count == 0
}
