//! What TCP got, and which of its bytes a shaper counts.

use goodput_model::{CountedLayer, Estimate, Missing, Shaping};

/// What TCP got.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TcpRate {
    /// Payload that arrived, bits per second.
    pub goodput: Estimate,
    /// Payload of a segment, bytes.
    pub payload: f64,
    /// IP packet of a segment, bytes.
    pub packet: f64,
}

/// Which bytes a shaper counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Counts {
    /// Those of a layer.
    Layer(CountedLayer),
    /// As it is set, so many for a datagram of the train and for a segment of TCP: cells, or an overhead that fits no layer.
    AsSet {
        /// For a datagram, bytes.
        train: f64,
        /// For a segment, bytes.
        tcp: f64,
    },
}

impl From<CountedLayer> for Counts {
    fn from(layer: CountedLayer) -> Self {
        Self::Layer(layer)
    }
}

impl Counts {
    pub(crate) fn of_train(self, train: &Shaping) -> f64 {
        match self {
            Self::Layer(layer) => train.packet_bytes.0 as f64 + layer.extra_bytes(),
            Self::AsSet { train, .. } => train,
        }
    }

    pub(crate) fn of_tcp(self, tcp: &TcpRate) -> f64 {
        match self {
            Self::Layer(layer) => tcp.packet + layer.extra_bytes(),
            Self::AsSet { tcp, .. } => tcp,
        }
    }

    pub(crate) fn layer(self) -> Result<CountedLayer, Missing> {
        match self {
            Self::Layer(layer) => Ok(layer),
            Self::AsSet { .. } => {
                Err(Missing::because("it counts as it is set, which is no layer"))
            }
        }
    }
}
