//! The file-transfer table: what each way to send a file costs, by size and number of clients.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::comparison::Comparison;
use crate::known::Known;
use crate::units::BitRate;

/// The runs of one size and one number of clients.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Transfers {
    /// Bytes that each client is sent; `None` if the time ends a run, or the length is unknown.
    pub size_bytes: Option<u64>,
    /// Clients at the same time, a flow each.
    pub clients: u16,
    /// Each way, in the order of the arms.
    pub methods: Vec<Method>,
    /// Rule that limits most of the runs, `none` if nothing does.
    pub limit: String,
    /// What the runs prove of the arms against the first.
    pub comparison: Comparison,
}

/// What one way took: medians of its runs, but for times of CPU, which are those of all its runs by
/// their bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Method {
    /// Values of the settings, in their order.
    pub values: Vec<String>,
    /// Runs that count.
    pub n: usize,
    /// Seconds from the first byte to the last of the last client.
    pub time_s: Known<f64>,
    /// Goodput of all clients together.
    pub goodput_bits_per_s: Known<BitRate>,
    /// The near end.
    pub near: EndCost,
    /// The far end.
    pub far: EndCost,
    /// Segments with payload that TCP sent (`tcpi_data_segs_out`, linux/tcp.h): those sent again are
    /// included, and those that a full queue of the sending host dropped.
    pub segments: Known<f64>,
    /// Payload bytes of a segment, the mean of all these (`tcpi_bytes_sent` over their number).
    pub payload_per_segment_bytes: Known<f64>,
}

/// What a transfer cost one end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EndCost {
    /// CPU time of its process in user space, seconds per 10^9 payload bytes.
    pub user_s_per_gb: Known<f64>,
    /// CPU time of its process in the kernel, seconds per 10^9 payload bytes. Softirqs are not part of
    /// it if they run in nobody's time.
    pub system_s_per_gb: Known<f64>,
    /// System calls that moved payload, per 10^6 payload bytes.
    pub calls_per_mb: Known<f64>,
    /// Most memory of its process that was resident at once while the flows ran, bytes; pages of mapped
    /// files included.
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
