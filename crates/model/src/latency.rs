//! How long round trips took before the flows began, and while they ran.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    /// Round trips per minute while the flows ran: 60 000 ms over the mean of what the connections
    /// and the echoes took, each trimmed of its longest 5 % (the aggregation of
    /// draft-ietf-ippm-responsiveness, without its TLS and HTTP parts).
    pub loaded_rpm: Known<f64>,
    /// The same before they began.
    pub idle_rpm: Known<f64>,
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
}

impl IdleAndLoaded {
    /// Neither is known, for the same reason.
    pub fn missing(why: &Missing) -> Self {
        Self { idle: Known::Missing(why.clone()), loaded: Known::Missing(why.clone()) }
    }
}
