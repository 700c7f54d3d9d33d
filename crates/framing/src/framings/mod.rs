//! Every framing, one file each.

pub mod goodput;
pub mod iperf2;
pub mod iperf3;
pub mod nuttcp;
pub mod ttcp;

use crate::Framing;

pub use goodput::goodput;
pub use iperf2::iperf2;
pub use iperf3::iperf3;
pub use nuttcp::nuttcp;
pub use ttcp::ttcp;

/// The only list: the conformance tests and the fuzz target are made from it.
pub const ALL: &[&Kind] =
    &[&goodput::KIND, &iperf2::KIND, &iperf3::KIND, &nuttcp::KIND, &ttcp::KIND];

/// A framing, whatever its options.
pub struct Kind {
    /// Its id, equal to the file's name.
    pub id: &'static str,
    /// The framing with each of its options.
    pub examples: fn() -> Vec<Framing>,
}

/// Each framing with each of its options, for the conformance tests and the fuzz target.
pub fn examples() -> Vec<Framing> {
    ALL.iter().flat_map(|kind| (kind.examples)()).collect()
}

#[cfg(test)]
mod tests;
