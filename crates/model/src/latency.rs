//! How long round trips took before the flows began, and while they ran.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::effect::Effect;
use crate::known::{Known, Missing};

/// Round trips of one measurement, by each way to time them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    /// From the SYN to its answer, as a program at the near end sees it: connections to the server's
    /// port, one every 20 ms. A lost SYN is repeated by the kernel after 1 s, and then took that long.
    pub tcp_connect: IdleAndLoaded,
    /// From a datagram to its echo by the server, as programs at both ends see it; one every 20 ms.
    pub udp_echo: IdleAndLoaded,
    /// What the kernel of the sending end made of the flows' own acknowledgements: its smoothed
    /// estimate (`tcpi_rtt`, linux/tcp.h), sampled. Idle is that of the handshakes.
    pub tcp_rtt: IdleAndLoaded,
    /// How long payload waited in the sending socket before it was sent for the first time; no other value
    /// here contains this. It is the unsent bytes (`tcpi_notsent_bytes`, linux/tcp.h) over the rate at which
    /// the flow's payload was acknowledged (Little's law), sampled while the flows ran.
    #[serde(default = "not_looked")]
    pub unsent: Known<RoundTrips>,
    /// Round trips per minute while the flows ran: 60 000 ms over the mean of what the connections
    /// and the echoes took, each trimmed of its longest 5 % (the aggregation of
    /// draft-ietf-ippm-responsiveness, without its TLS and HTTP parts).
    pub loaded_rpm: Known<f64>,
    /// The same before they began.
    pub idle_rpm: Known<f64>,
}

fn not_looked() -> Known<RoundTrips> {
    Known::missing("this record is from a goodput that did not measure it")
}

/// Times under load of the runs of one arm of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArmLatency {
    /// Connections to the server's port.
    pub tcp_connect: LoadedTimes,
    /// Echoes of datagrams.
    pub udp_echo: LoadedTimes,
    /// The sending kernel's own estimate.
    pub tcp_rtt: LoadedTimes,
    /// Waits in the sending socket.
    pub unsent: LoadedTimes,
}

/// Times under load by one way to time them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadedTimes {
    /// Median of the runs' medians, microseconds.
    pub p50_us: Known<f64>,
    /// Median of the runs' 99th percentiles, microseconds.
    pub p99_us: Known<f64>,
    /// The runs' medians against those of the baseline, less is better; `None` for the baseline itself,
    /// and if the medians are unknown or zero.
    pub against: Option<Effect>,
}

impl ArmLatency {
    /// Every way with the name that reports have for it.
    pub fn ways(&self) -> [(&'static str, &LoadedTimes); 4] {
        [
            ("connect", &self.tcp_connect),
            ("echo", &self.udp_echo),
            ("tcp rtt", &self.tcp_rtt),
            ("unsent", &self.unsent),
        ]
    }
}

/// Before the flows began, and while they ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IdleAndLoaded {
    /// Of what was sent in about a second before the flows began.
    pub idle: Known<RoundTrips>,
    /// Of what was sent while they ran.
    pub loaded: Known<RoundTrips>,
}

/// How long round trips took. Percentiles are of all of them: the shortest time that this share of them
/// did not exceed (nearest rank, no interpolation).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RoundTrips {
    /// How many were timed.
    pub n: u64,
    /// How many more were begun and had no answer within 3 s.
    pub lost: Known<u64>,
    /// The shortest.
    pub min_us: f64,
    /// Half of them took no longer.
    pub p50_us: f64,
    /// 90 % of them took no longer.
    pub p90_us: f64,
    /// 99 % of them took no longer.
    pub p99_us: f64,
    /// The longest.
    pub max_us: f64,
    /// If a phase was too long to keep all round trips: the percentiles use one of this many, evenly spread
    /// over the phase; the other numbers are of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_every: Option<u64>,
}

impl IdleAndLoaded {
    /// Neither is known, for the same reason.
    pub fn missing(why: &Missing) -> Self {
        Self { idle: Known::Missing(why.clone()), loaded: Known::Missing(why.clone()) }
    }
}
