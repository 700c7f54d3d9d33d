//! The numbers by which a comparison judges its arms.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::burden::Burden;
use crate::units::{BitRate, Seconds};

/// A number of a run by which arms are judged.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Response {
    /// Goodput, bits per second; more is better.
    Throughput,
    /// CPU seconds of both ends per 10^9 payload bytes.
    Cpu,
    /// Median round-trip time of a run under load, microseconds.
    Latency,
    /// Interrupts of the path's devices at both ends, per second.
    Interrupts,
    /// TCP: payload bytes retransmitted, percent of those sent. UDP: datagrams lost, percent of those sent.
    Loss,
    /// Packets that the hosts and the path dropped, per 10^9 payload bytes.
    Drops,
    /// CPU use of the whole host that the arms change, interrupts included, percent of all its CPUs. If they change
    /// both hosts, the busier one counts.
    HostCpu,
    /// Goodput divided by [`Response::HostCpu`]: bits per second for each 100 % of the host's CPUs; more is better.
    PerCpu,
}

impl Response {
    /// Every response.
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

    /// The name that people write.
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

    /// Unit of the number.
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

    /// Whether a larger number is better.
    pub fn more_is_better(self) -> bool {
        self.burden().is_none()
    }

    /// The smallest number in a ratio, in the unit of the response. A reading of zero, such as no loss, needs a replacement: a
    /// number below a run's resolution keeps the sign, and makes the ratio enormous but finite. Two readings of zero are
    /// no difference.
    pub fn least_in_ratio(self) -> f64 {
        match self {
            // One bit per second.
            Self::Throughput => 1.0,
            // One per 1000 seconds, one per 10^9 bytes, one per 1000 GB.
            Self::Interrupts => 1e-3,
            Self::Loss => 1e-7,
            Self::Drops => 1e-3,
            // A cost, a round trip or a use of the CPU of zero means that the clock is too coarse.
            Self::Cpu | Self::Latency | Self::HostCpu | Self::PerCpu => f64::MIN_POSITIVE,
        }
    }

    /// What people call it, if less of it is better.
    pub fn burden(self) -> Option<Burden> {
        match self {
            Self::Throughput | Self::PerCpu => None,
            Self::Cpu => Some(Burden::less("CPU time per byte")),
            Self::Latency => Some(Burden::less("delay")),
            Self::Interrupts => Some(Burden::fewer("interrupts")),
            Self::Loss => Some(Burden::less("loss")),
            Self::Drops => Some(Burden::fewer("drops")),
            Self::HostCpu => Some(Burden::less("CPU use")),
        }
    }

    /// A number with its unit, as people read it: `119 ms`, `1.20 s per GB`.
    pub fn written(self, number: f64) -> String {
        match self {
            Self::Throughput => BitRate(number).to_string(),
            Self::PerCpu => format!("{} per 100 % of CPU", BitRate(number)),
            Self::Latency => Seconds::of_us(number).to_string(),
            Self::Cpu => format!("{} per GB", Seconds(number)),
            _ => format!("{number:.2} {}", self.unit()),
        }
    }

    /// What the number is.
    pub fn title(self) -> &'static str {
        match self {
            Self::Latency => "round trip under load",
            Self::Cpu => "CPU time",
            _ => self.noun(),
        }
    }

    /// What people call it.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Throughput => "goodput",
            Self::PerCpu => "goodput per CPU",
            _ => self.burden().map_or(self.name(), Burden::noun),
        }
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
