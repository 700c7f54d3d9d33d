//! Round-trip times before the flows began, and while they ran.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::effect::Effect;
use crate::known::{Known, Missing};

/// Round-trip times of one measurement, measured in several ways.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    /// Time from a SYN to its SYN-ACK, as a program at the near end sees it: one connection to the server's port
    /// every 20 ms. The kernel repeats a lost SYN after 1 s, and the time then includes this second.
    pub tcp_connect: IdleAndLoaded,
    /// Time from sending a datagram to receiving the server's echo of it, as programs at both ends see it; one
    /// datagram every 20 ms.
    pub udp_echo: IdleAndLoaded,
    /// The sending kernel's smoothed estimate from the flows' own acknowledgements (`tcpi_rtt`, linux/tcp.h),
    /// sampled. The idle values are those of the handshakes.
    pub tcp_rtt: IdleAndLoaded,
    /// Time that payload waited in the sending socket before it was first sent; no other value here includes this
    /// wait. It is sampled while the flows ran: unsent bytes (`tcpi_notsent_bytes`, linux/tcp.h) divided by the
    /// rate at which the flow's payload was acknowledged (Little's law).
    #[serde(default = "not_looked")]
    pub unsent: Known<RoundTrips>,
    /// Round trips per minute while the flows ran: 60 000 ms divided by the mean time of the connections and
    /// echoes. The longest 5 % of each are left out. This is the aggregation of draft-ietf-ippm-responsiveness,
    /// without its TLS and HTTP parts.
    pub loaded_rpm: Known<f64>,
    /// Round trips per minute before the flows began, computed like `loaded_rpm`.
    pub idle_rpm: Known<f64>,
}

impl Latency {
    /// Median round-trip time under load, microseconds, by the first way to time round trips that has one. Which way that
    /// is depends on the far end and on the plan, not on the run.
    pub fn loaded_us(&self) -> Option<f64> {
        let ways = [&self.tcp_connect, &self.udp_echo, &self.tcp_rtt];
        ways.into_iter().find_map(|way| Some(way.loaded.value()?.p50_us))
    }
}

fn not_looked() -> Known<RoundTrips> {
    Known::missing("this record is from a goodput that did not measure it")
}

/// Round-trip times under load in the runs of one arm of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArmLatency {
    /// Times of TCP handshakes with the server's port.
    pub tcp_connect: LoadedTimes,
    /// Times of datagrams and their echoes.
    pub udp_echo: LoadedTimes,
    /// The sending kernel's own estimates.
    pub tcp_rtt: LoadedTimes,
    /// Times that payload waited in the sending socket.
    pub unsent: LoadedTimes,
}

/// Times under load, measured in one way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadedTimes {
    /// Median of the runs' medians, microseconds.
    pub p50_us: Known<f64>,
    /// Median of the runs' 99th percentiles, microseconds.
    pub p99_us: Known<f64>,
    /// Effect on the runs' medians against the baseline; shorter times are better. Absent for the baseline itself,
    /// and if the medians are unknown or zero.
    pub against: Option<Effect>,
}

impl ArmLatency {
    /// Every way to measure, with the name that reports use for it.
    pub fn ways(&self) -> [(&'static str, &LoadedTimes); 4] {
        [
            ("connect", &self.tcp_connect),
            ("echo", &self.udp_echo),
            ("tcp rtt", &self.tcp_rtt),
            ("unsent", &self.unsent),
        ]
    }
}

/// Round-trip times before the flows began, and while they ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IdleAndLoaded {
    /// Round trips that began in about a second before the flows.
    pub idle: Known<RoundTrips>,
    /// Round trips that began while the flows ran.
    pub loaded: Known<RoundTrips>,
}

/// Distribution of round-trip times. A percentile is the shortest time that this share of all round trips did not
/// exceed (nearest rank, no interpolation).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RoundTrips {
    /// Number of round trips that were timed.
    pub n: u64,
    /// Number of further round trips that got no response within 3 s.
    pub lost: Known<u64>,
    /// Shortest time, microseconds.
    pub min_us: f64,
    /// Median, microseconds.
    pub p50_us: f64,
    /// 90th percentile, microseconds.
    pub p90_us: f64,
    /// 99th percentile, microseconds.
    pub p99_us: f64,
    /// Longest time, microseconds.
    pub max_us: f64,
    /// If a phase was too long to keep all round trips, the percentiles use one of every `of_every`, evenly spread
    /// over the phase. The other numbers include all. Absent if all were kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_every: Option<u64>,
}

impl IdleAndLoaded {
    /// Both are missing, for the same reason.
    pub fn missing(why: &Missing) -> Self {
        Self { idle: Known::Missing(why.clone()), loaded: Known::Missing(why.clone()) }
    }
}
