//! How a fault limits a path.

use goodput_model::units::BitRate;

/// What a fault leaves of the direction from near to far. The default leaves everything.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Limits {
    /// Highest rate, bits per second.
    pub rate: Option<BitRate>,
    /// Largest TCP segment, bytes.
    pub segment_bytes: Option<u32>,
}
