//! What TCP got, and which of its bytes a shaper counts.

use goodput_model::{BitRate, CountedLayer, Estimate, Missing, Shaping};

/// What TCP got.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TcpRate {
    /// Payload that arrived, bits per second.
    pub goodput: Estimate,
    /// Payload of a segment, bytes.
    pub payload: f64,
    /// IP packet of a segment, bytes.
    pub packet: f64,
    /// Length of the time of which this is the mean, seconds, if it is known.
    pub window_s: Option<f64>,
}

/// Which bytes a shaper counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Counts {
    /// Those of a layer.
    Layer(CountedLayer),
    /// As it is set, so many for a datagram of the train and for a segment of TCP: cells, an overhead that fits no layer, or one
    /// that a super-packet has once.
    AsSet {
        /// For a datagram, bytes.
        train: f64,
        /// The same if joined datagrams may have come whole to a router, bytes: a virtual device does not cut them up.
        train_least: f64,
        /// For a segment that passes by itself, bytes.
        tcp: f64,
        /// For a segment of the largest super-packet that passes whole, bytes.
        tcp_least: f64,
        /// The layer of a datagram, if it is one.
        layer: Option<CountedLayer>,
    },
}

impl From<CountedLayer> for Counts {
    fn from(layer: CountedLayer) -> Self {
        Self::Layer(layer)
    }
}

impl Counts {
    /// The least and the most that count for a datagram.
    fn of_train(self, train: &Shaping) -> (f64, f64) {
        match self {
            Self::Layer(layer) => {
                let bytes = train.packet_bytes.0 as f64 + layer.extra_bytes();
                (bytes, bytes)
            }
            Self::AsSet { train, train_least, .. } => (train_least.min(train), train),
        }
    }

    /// A `rate` of the train's frames in what counts. What is unknown of that is taken as it comes nearest to the `configured` rate.
    pub(crate) fn counted(self, rate: &Estimate, train: &Shaping, configured: BitRate) -> Estimate {
        let frame = train.frame_bytes.0 as f64;
        let (least, most) = self.of_train(train);
        between(rate, least / frame, most / frame, configured)
    }

    /// The least and the most that count for a segment: how many of them a super-packet has is unknown.
    fn of_tcp(self, tcp: &TcpRate) -> (f64, f64) {
        match self {
            Self::Layer(layer) => {
                let bytes = tcp.packet + layer.extra_bytes();
                (bytes, bytes)
            }
            Self::AsSet { tcp, tcp_least, .. } => (tcp_least.min(tcp), tcp),
        }
    }

    pub(crate) fn layer(self) -> Result<CountedLayer, Missing> {
        match self {
            Self::Layer(layer) => Ok(layer),
            Self::AsSet { layer: Some(layer), .. } => Ok(layer),
            Self::AsSet { .. } => {
                Err(Missing::because("it counts as it is set, which is no layer"))
            }
        }
    }
}

impl TcpRate {
    /// The same, of which a bucket may have given a part: what it had saved up passes above the rate, once at the beginning and
    /// again after each pause.
    pub(crate) fn beyond_bucket(self, train: Option<&Shaping>) -> Self {
        let depth = train.and_then(|train| train.bucket_bytes.value()).map(|depth| depth.high);
        let Some((depth, window_s)) = depth.zip(self.window_s) else { return self };
        let saved_up = depth.max(0.0) * 8.0 / window_s;
        let low = (self.goodput.low - saved_up).max(0.0);
        Self { goodput: Estimate { low, ..self.goodput }, ..self }
    }

    /// The rate in what a shaper counts. What is unknown of that is taken as it comes nearest to the `configured` rate.
    pub(crate) fn counted(&self, counts: Counts, configured: BitRate) -> Estimate {
        let (least, most) = counts.of_tcp(self);
        between(&self.goodput, least / self.payload, most / self.payload, configured)
    }
}

/// A rate of which counts that many times at least and at most, as near to the `configured` rate as that allows.
fn between(rate: &Estimate, least: f64, most: f64, configured: BitRate) -> Estimate {
    Estimate {
        value: configured.0.max(rate.value * least).min(rate.value * most),
        low: rate.low * least,
        high: rate.high * most,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tbf of 50 Mbit/s with `overhead 40`, as measured: 47.8 Mbit/s of payload. For each segment it would be 51.3 Mbit/s, but
    /// a super-packet has the overhead once.
    #[test]
    fn an_overhead_that_a_super_packet_has_once_is_not_held_against_the_shaper() {
        let goodput = Estimate { value: 47.8e6, low: 47.7e6, high: 47.9e6 };
        let tcp = TcpRate { goodput, payload: 1448.0, packet: 1500.0, window_s: None };
        let tcp_least = 1514.0 + 40.0 / 45.0;
        let counts = Counts::AsSet {
            train: 1554.0,
            train_least: 1554.0,
            tcp: 1554.0,
            tcp_least,
            layer: None,
        };
        let seen = tcp.counted(counts, BitRate(50e6));
        assert!((seen.value / 50e6 - 1.0).abs() < 1e-3, "{seen:?}");
        assert!(seen.low < 50e6 && seen.high > 51.2e6, "{seen:?}");
        let slow = TcpRate { goodput: goodput.scaled(0.9), ..tcp }.counted(counts, BitRate(50e6));
        assert!(slow.value < 46.2e6 && slow.high < 49e6, "{slow:?}");
        let each = Counts::AsSet {
            train: 1554.0,
            train_least: 1554.0,
            tcp: 1554.0,
            tcp_least: 1554.0,
            layer: None,
        };
        assert!(tcp.counted(each, BitRate(50e6)).low > 51e6);
    }
}
