//! The load that every entry of a contest sends.

/// The load.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// The transport.
    pub transport: Transport,
    /// Bytes of a write, or of a datagram's payload.
    pub chunk_bytes: u32,
    /// Connections, or UDP flows.
    pub flows: u32,
    /// Clients at the same time, each with these flows.
    pub clients: u32,
    /// Payload bits per second of all flows; `None` is unlimited.
    pub rate_bits_per_s: Option<u64>,
    /// Milliseconds at the beginning that goodput leaves out, instead of the slow start that it detects: the other
    /// programs count from the beginning.
    pub omit_ms: u32,
}

/// The transport of payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    Tcp,
    Udp,
}

impl Load {
    /// One TCP connection with writes of this length.
    pub const fn tcp(chunk_bytes: u32) -> Self {
        Self {
            transport: Transport::Tcp,
            chunk_bytes,
            flows: 1,
            clients: 1,
            rate_bits_per_s: None,
            omit_ms: 10,
        }
    }

    /// One UDP flow with datagrams of this payload.
    pub const fn udp(chunk_bytes: u32) -> Self {
        Self { transport: Transport::Udp, ..Self::tcp(chunk_bytes) }
    }

    /// With this many flows.
    pub const fn flows(self, flows: u32) -> Self {
        Self { flows, ..self }
    }

    /// From this many clients at the same time.
    pub const fn clients(self, clients: u32) -> Self {
        Self { clients, ..self }
    }

    /// Without the payload that goodput moves in the first moment.
    pub const fn omit_ms(self, omit_ms: u32) -> Self {
        Self { omit_ms, ..self }
    }

    /// At this rate, payload bits per second.
    pub const fn at(self, rate_bits_per_s: u64) -> Self {
        Self { rate_bits_per_s: Some(rate_bits_per_s), ..self }
    }
}
