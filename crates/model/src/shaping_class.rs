//! Traffic of several classes beside each other (`goodput shaping --class`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::estimate::Estimate;
use crate::known::Known;
use crate::units::BitRate;

/// What one class of a shaper's traffic got, alone and beside the others. All rates are in the bytes that the shaper
/// counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShapingClass {
    /// The class by its mark, as typed: `ef`, `46`, `source-port:5000` or `port:9000`.
    pub name: String,
    /// Rate that the class should get at least, bits per second.
    pub rate_bits_per_s: BitRate,
    /// Rate that the class should get if the others send nothing, bits per second: as typed, or as the sender's htb has
    /// it.
    pub ceil_bits_per_s: Known<BitRate>,
    /// Highest rate of TCP that still passes while all classes send, bits per second: the class's own and what no class asks
    /// for, or what the others left, up to its ceil.
    pub most_bits_per_s: BitRate,
    /// The class of the sender's htb that its traffic passed, as tc(8) writes it.
    pub htb_class: Known<String>,
    /// Rate of TCP while the others sent nothing, bits per second.
    pub alone_bits_per_s: Known<Estimate>,
    /// Rate of TCP while all classes sent, bits per second.
    pub beside_bits_per_s: Known<Estimate>,
    /// Rate of datagrams while all classes sent datagrams, bits per second.
    pub datagrams_bits_per_s: Known<Estimate>,
    /// What the class gets.
    pub answer: ClassAnswer,
}

/// What a class gets of its rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClassAnswer {
    /// Its rate beside the others, and its ceil alone.
    Gives,
    /// Its rate alone, and less beside the others.
    Starves,
    /// Less than its rate, even alone.
    TooSlow,
    /// More than it should get.
    TooFast,
    /// Its rate, and alone less than its ceil.
    BelowCeil,
    /// The measurement does not show it.
    Inconclusive,
}
