//! One connection at one instant.

use goodput_model::TcpInfo;

/// One connection at one instant.
#[derive(Debug, Clone, Copy)]
pub struct Moment<'a> {
    /// Seconds since this end began to move payload.
    pub at_s: f64,
    /// Whether it lies within the measured window.
    pub is_measured: bool,
    /// The kernel's view of the connection.
    pub tcp: &'a TcpInfo,
}
