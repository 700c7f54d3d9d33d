//! What each way to send a file costs, by file size and number of clients.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::comparison::Comparison;
use crate::known::Known;
use crate::units::BitRate;

/// Results for one file size and one number of clients.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Transfers {
    /// Bytes sent to each client; absent if time ends a run, or if the length is unknown.
    pub size_bytes: Option<u64>,
    /// Number of clients at the same time, one flow each.
    pub clients: u16,
    /// Cost of each way, in the order of the arms.
    pub methods: Vec<Method>,
    /// Id of the rule that limits most of the runs, or `none`.
    pub limit: String,
    /// Each arm compared with the first.
    pub comparison: Comparison,
}

/// Cost of one way to send a file. Values are medians over its runs, but CPU times are sums over all runs, divided
/// by their bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Method {
    /// Values of the compared settings, in their order.
    pub values: Vec<String>,
    /// Number of runs that count.
    pub n: usize,
    /// Time from the first byte to the last byte of the last client, seconds.
    pub time_s: Known<f64>,
    /// Goodput of all clients together, bits per second.
    pub goodput_bits_per_s: Known<BitRate>,
    /// Cost at the near end.
    pub near: EndCost,
    /// Cost at the far end.
    pub far: EndCost,
    /// Segments with payload that TCP sent (`tcpi_data_segs_out`, linux/tcp.h). Retransmissions count, and so do
    /// segments that a full queue of the sending host dropped.
    pub segments: Known<f64>,
    /// Mean payload of these segments, bytes (`tcpi_bytes_sent` divided by their number).
    pub payload_per_segment_bytes: Known<f64>,
}

/// Cost of a transfer at one end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EndCost {
    /// CPU time of the process in user space, seconds per 10^9 payload bytes.
    pub user_s_per_gb: Known<f64>,
    /// CPU time of the process in the kernel, seconds per 10^9 payload bytes. Softirqs that run outside any process
    /// are not included.
    pub system_s_per_gb: Known<f64>,
    /// System calls that moved payload, per 10^6 payload bytes.
    pub calls_per_mb: Known<f64>,
    /// Most resident memory of the process while the flows ran, bytes, pages of mapped files included.
    pub peak_memory_bytes: Known<f64>,
}

impl EndCost {
    /// User and system time together, seconds per 10^9 payload bytes.
    pub fn cpu_s_per_gb(&self) -> Known<f64> {
        let sum = self.user_s_per_gb.get().and_then(|user| {
            let system = self.system_s_per_gb.get()?;
            Ok(user + system)
        });
        sum.into()
    }
}
