//! What a peer that is not goodput reports about itself after a measurement.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::known::Known;
use crate::sample::Role;

/// A report of a peer that is not goodput. It supplements what this end saw, and never replaces it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Totals {
    /// The peer's program and its version, as far as known.
    pub program: String,
    /// CPU time that the peer's program used, percent of one CPU over the measurement.
    pub cpu_percent: Known<f64>,
    /// User time of the peer's program, percent of one CPU; absent if not reported separately.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_user_percent: Option<f64>,
    /// Time that the kernel spent for the peer's program, percent of one CPU; absent if not reported separately.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_system_percent: Option<f64>,
    /// Congestion control of the peer's sockets, if reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
    /// Text by which both ends identify the measurement, if the protocol has one: iperf3's cookie.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cookie: Option<String>,
    /// The peer's report about each flow.
    pub flows: Vec<FlowTotals>,
    /// The peer's output as it would have printed it, if it was requested (`--peer-output`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// One flow in a peer's report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowTotals {
    /// Number of the flow in the plan.
    pub flow: u16,
    /// Number of further flows whose counts are included here, because nuttcp only reports the sum of all flows.
    /// Absent if there are none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub together_with: u16,
    /// Whether the peer sent or received on the flow.
    pub role: Role,
    /// Payload bytes that the peer counted. They are as exact as the protocol's report: for a TCP stream of nuttcp,
    /// which prints megabytes with four digits, ± 53 bytes.
    pub bytes: Known<u64>,
    /// Time over which the peer counted, seconds.
    pub duration_s: Known<f64>,
    /// Segments that the peer retransmitted.
    pub retransmits: Known<u64>,
    /// Datagrams that the peer sent, or the highest number that it received.
    pub datagrams: Known<u64>,
    /// Number of these datagrams that the peer did not receive.
    pub lost: Known<u64>,
    /// Datagrams that the peer received after one with a higher number.
    pub reordered: Known<u64>,
    /// Jitter that the peer measured, microseconds.
    pub jitter_us: Known<f64>,
}

impl FlowTotals {
    /// A flow of whose counts none is known, because of `why`.
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
