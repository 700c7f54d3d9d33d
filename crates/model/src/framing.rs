//! How the payload of a flow looks on the wire: each protocol marks, numbers and ends it its own way.

/// What a mover writes around payload, looks for in it, and takes for its end.
///
/// A byte stream is the same for all but its end: goodput, iperf2, nuttcp and ttcp end it by closing
/// it, iperf3 says on the control connection that it is over. Datagrams differ in everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Framing {
    /// goodput's own header and end markers (`docs/protocol.md`).
    #[default]
    Goodput,
    /// iperf3: in each datagram the time of sending and a number from 1; no end marker.
    Iperf3 {
        /// Whether the number has 64 bits rather than 32 (`--udp-counters-64bit`).
        wide: bool,
    },
    /// iperf2: in each datagram a number and the time of sending; the last number is negative and is
    /// answered with the receiver's report.
    Iperf2 {
        /// What a sender writes behind those 16 bytes in each datagram: the settings of the test. A
        /// receiver that has them asks for its payload with such a datagram.
        header: Vec<u8>,
        /// Whether the receiver answers: the negative number with its report, the header of a byte
        /// stream with a few bytes. Not for what a server sends.
        report: bool,
        /// Whether each chunk of a byte stream begins with the time of its sending, as
        /// `--trip-times` asks for (`struct TCP_burst_payload`, include/payloads.h of 2.1.8).
        timed: bool,
    },
    /// nuttcp: datagrams between two begin and five end markers of four bytes.
    Nuttcp {
        /// Whether bytes 24 to 31 of each datagram tell how many payload bytes were sent by then,
        /// in the sender's byte order.
        counted: bool,
    },
    /// ttcp: datagrams without a number between markers of four bytes.
    Ttcp,
}

impl Framing {
    /// Whether a receiver learns from elsewhere that all was sent, and so can only read until
    /// nothing more comes.
    pub fn ends_elsewhere(&self) -> bool {
        matches!(self, Self::Iperf3 { .. })
    }

    /// Whether a receiver reads several byte streams strictly in turn, a chunk of each, and only to
    /// the end of the first one (nuttcp-8.2.2.c, line 8285).
    pub fn is_read_in_turn(&self) -> bool {
        matches!(self, Self::Nuttcp { .. })
    }

    /// Whether datagrams themselves tell when the payload's clock begins, by a marker or by being
    /// the first, rather than something that both ends agreed on before.
    pub fn tells_its_beginning(&self) -> bool {
        matches!(self, Self::Iperf2 { .. } | Self::Nuttcp { .. } | Self::Ttcp)
    }

    /// Whether datagrams carry a number, so that lost and late ones are known.
    pub fn numbers_datagrams(&self) -> bool {
        !matches!(self, Self::Nuttcp { counted: false } | Self::Ttcp)
    }

    /// Whether datagrams carry their time of sending, so that jitter is known.
    pub fn times_datagrams(&self) -> bool {
        !matches!(self, Self::Nuttcp { .. } | Self::Ttcp)
    }

    /// Whether the end of one flow over UDP is that of all: a sender's end markers go to the first
    /// streams of several, and no others (nuttcp-6.1.2.c, lines 4529 and 4710 to 4731).
    pub fn ends_together(&self) -> bool {
        matches!(self, Self::Nuttcp { .. })
    }

    /// Whether a far end may say that it is ready before it listens, so that a connection that it
    /// refuses is worth another try (nuttcp-8.2.2.c, line 4891: OK comes before listen).
    pub fn listens_late(&self) -> bool {
        matches!(self, Self::Nuttcp { .. })
    }

    /// Whether the receiver of a byte stream says something on it, which a sender must read before it
    /// closes: for what is unread then, the kernel throws away what it has not sent (`tcp_close`,
    /// net/ipv4/tcp.c).
    pub fn answers_streams(&self) -> bool {
        matches!(self, Self::Iperf2 { report: true, .. })
    }

    /// Whether what a sender shows to prove a connection is payload as well.
    pub fn counts_proof(&self) -> bool {
        matches!(self, Self::Iperf2 { .. } | Self::Ttcp)
    }
}
