//! What has a chart beside the goodput.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A quantity of a path beside its goodput, which can change while the goodput stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// Round-trip time under load, seconds.
    RoundTrip,
    /// Share of the datagrams that were lost, or of the payload that was sent again, 0 to 1.
    Loss,
}

impl Quantity {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::RoundTrip, Self::Loss];

    /// The value of a chart, which is above zero. Of the loss, it is the share that was not lost: most paths usually lose
    /// nothing, and ranks are the same for both.
    pub fn charted(self, value: f64) -> f64 {
        match self {
            Self::RoundTrip => value,
            Self::Loss => 1.0 - value,
        }
    }

    /// A name of a few letters, as in JSON.
    pub fn id(self) -> &'static str {
        match self {
            Self::RoundTrip => "round-trip",
            Self::Loss => "loss",
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::RoundTrip => "round trip",
            Self::Loss => "loss",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_that_of_the_json() {
        for quantity in Quantity::ALL {
            assert_eq!(serde_json::to_value(quantity).unwrap(), quantity.id());
        }
    }
}
