//! A path before any fault is planted.

use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::IndexedRandom;

/// Most bytes in flight on a drawn path: half of the size to which Linux lets a receive window grow
/// (`net.ipv4.tcp_rmem`, 6 MiB, of which half is for headers), so that no window limits a healthy path.
const MAX_FLIGHT_BYTES: f64 = 1.5e6;

/// Share of paths that are a cable with no rate of its own.
const CABLE_SHARE: f64 = 0.15;

/// Rate up to which a path is measured beside others, bits per second. At this rate both ends and the lab together take
/// about a tenth of a CPU.
const MAX_LIGHT_BITS_PER_S: f64 = 100e6;

/// Bytes of a full frame: 1500 and its Ethernet header.
const FRAME_BYTES: f64 = 1514.0;
/// Payload of a full TCP segment with time stamps over IPv4, bytes, and what IPv6 takes of it.
const IPV4_PAYLOAD_BYTES: f64 = 1448.0;
const IPV6_MORE_BYTES: f64 = 20.0;

/// One path and the load on it.
#[derive(Debug, Clone, PartialEq)]
pub struct Path {
    /// Bits per second; `None` for a cable without a rate of its own.
    pub rate: Option<f64>,
    /// Round-trip time without a queue, seconds.
    pub round_trip_s: f64,
    /// Flows.
    pub flows: u32,
    /// Whether the far host sends.
    pub reverse: bool,
    /// Whether it runs over IPv6.
    pub ipv6: bool,
    /// Congestion control of the sender.
    pub congestion: &'static str,
}

impl Path {
    /// Rates from 0.3 Mbit/s to 1 Gbit/s and a cable, round trips from 0 to 250 ms, 1 to 64 flows.
    pub fn draw(rng: &mut Xoshiro256PlusPlus) -> Self {
        loop {
            let path = Self::any(rng);
            if path.flight_bytes() <= MAX_FLIGHT_BYTES {
                return path;
            }
        }
    }

    fn any(rng: &mut Xoshiro256PlusPlus) -> Self {
        let cable = rng.random_bool(CABLE_SHARE);
        let far_away = !cable && rng.random_bool(0.9);
        Self {
            rate: (!cable).then(|| between(rng, 0.3e6, 1e9)),
            round_trip_s: if far_away { between(rng, 0.002, 0.25) } else { 0.0 },
            flows: *[1, 1, 1, 1, 2, 4, 8, 16, 64].choose(rng).unwrap_or(&1),
            reverse: rng.random_bool(0.3),
            ipv6: rng.random_bool(0.25),
            congestion: ["cubic", "cubic", "bbr", "reno"].choose(rng).unwrap_or(&"cubic"),
        }
    }

    /// Whether it keeps the CPUs so idle that others may be measured beside it.
    pub fn is_light(&self) -> bool {
        self.rate.is_some_and(|rate| rate <= MAX_LIGHT_BITS_PER_S)
    }

    /// Payload that full frames carry at its rate, bits per second.
    pub fn payload_rate(&self) -> Option<f64> {
        let payload = IPV4_PAYLOAD_BYTES - if self.ipv6 { IPV6_MORE_BYTES } else { 0.0 };
        self.rate.map(|rate| rate * payload / FRAME_BYTES)
    }

    /// Bytes in flight when the path is just full; 0 for a cable.
    pub fn flight_bytes(&self) -> f64 {
        self.rate.unwrap_or(0.0) * self.round_trip_s / 8.0
    }
}

/// A value between two limits, log-uniformly distributed.
pub fn between(rng: &mut Xoshiro256PlusPlus, least: f64, most: f64) -> f64 {
    rng.random_range(least.ln()..=most.ln()).exp()
}
