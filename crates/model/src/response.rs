//! What a comparison judges its arms by.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One number of a run that an arm may change.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Response {
    /// Goodput, bit/s; more is better.
    Throughput,
    /// CPU seconds of both ends per 10^9 payload bytes.
    Cpu,
    /// Round trips under load, microseconds, median of a run.
    Latency,
    /// Interrupts of the path's devices at both ends, per second.
    Interrupts,
    /// TCP: payload bytes sent again, of those sent. UDP: datagrams lost, of those sent. Percent.
    Loss,
    /// Packets that the hosts and the path dropped, per 10^9 payload bytes.
    Drops,
    /// CPU of the whole host that the arms change, interrupts included: percent of all its CPUs. Of two hosts, the
    /// busier one.
    HostCpu,
    /// Goodput divided by [`Response::HostCpu`]: bit/s for each 100 % of the host's CPUs; more is better.
    PerCpu,
}

impl Response {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Throughput,
        Self::Cpu,
        Self::Latency,
        Self::Interrupts,
        Self::Loss,
        Self::Drops,
        Self::HostCpu,
        Self::PerCpu,
    ];

    /// As people write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Cpu => "cpu",
            Self::Latency => "latency",
            Self::Interrupts => "interrupts",
            Self::Loss => "loss",
            Self::Drops => "drops",
            Self::HostCpu => "host-cpu",
            Self::PerCpu => "per-cpu",
        }
    }

    /// Unit of its numbers.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Throughput => "bit/s",
            Self::Cpu => "cpu-s/GB",
            Self::Latency => "µs",
            Self::Interrupts => "interrupts/s",
            Self::Loss => "%",
            Self::Drops => "packets/GB",
            Self::HostCpu => "% of all CPUs",
            Self::PerCpu => "bit/s per 100 % of CPU",
        }
    }

    /// Whether more of it is better.
    pub fn more_is_better(self) -> bool {
        matches!(self, Self::Throughput | Self::PerCpu)
    }
}

impl fmt::Display for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Response {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|response| response.name() == text).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("{text:?} is not a response; write {names}")
        })
    }
}
