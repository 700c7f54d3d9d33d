//! What a server grants each of its clients.

/// What one client may ask of a server. The server refuses a plan beyond this with a reason, and
/// never cuts it silently.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Longest measurement, seconds.
    pub duration_s: f64,
    /// Flows of one measurement, both directions together.
    pub flows: u16,
    /// Highest rate in bits per second that this host sends or receives for one client;
    /// `None`: unlimited.
    pub rate_bits_per_s: Option<f64>,
    /// Largest chunk, bytes: each flow keeps one in memory.
    pub chunk_bytes: u64,
    /// Largest socket buffer a client may ask for, bytes.
    pub socket_buffer_bytes: u64,
    /// Highest differentiated services code point that a client may ask for (RFC 2474).
    pub dscp: u8,
    /// Whether payload may be sent over UDP to an unproven address, for protocols without a proof
    /// of address. Anyone can forge such an address.
    pub unproven_udp: bool,
}
