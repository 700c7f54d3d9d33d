//! The counts of iperf3's JSON, with its key order (iperf 3.12 to 3.22, iperf_api.c).

use serde::Serialize;

macro_rules! counts {
    ($($(#[doc = $doc:literal])* $name:ident: $kind:ty,)*) => {
        /// Counts of one stream or of several together. The place decides which keys are present.
        #[derive(Debug, Clone, Default, PartialEq, Serialize)]
        pub struct Counts {
            $($(#[doc = $doc])* #[serde(skip_serializing_if = "Option::is_none")]
              pub $name: Option<$kind>,)*
            /// Whether this end sent; in sums of one side, whether they are the senders'.
            pub sender: bool,
        }
    };
}

counts! {
    /// Number of the stream.
    socket: u32,
    /// Seconds from the beginning.
    start: f64,
    /// Seconds from the beginning.
    end: f64,
    /// Seconds between both.
    seconds: f64,
    /// Payload.
    bytes: u64,
    /// Payload per second.
    bits_per_second: f64,
    /// Segments retransmitted.
    retransmits: u64,
    /// Congestion window, bytes.
    snd_cwnd: u64,
    /// Window that the peer advertised, bytes.
    snd_wnd: u64,
    /// Smoothed round-trip time, microseconds.
    rtt: u64,
    /// Its mean deviation, microseconds.
    rttvar: u64,
    /// Path MTU, bytes.
    pmtu: u64,
    /// Reordering events that the sender's kernel saw (`tcpi_reord_seen`, since 3.20).
    reorder: u64,
    /// Largest congestion window at the ends of intervals, bytes.
    max_snd_cwnd: u64,
    /// Largest advertised window, bytes.
    max_snd_wnd: u64,
    /// Largest smoothed round-trip time, microseconds.
    max_rtt: u64,
    /// Smallest.
    min_rtt: u64,
    /// Mean.
    mean_rtt: u64,
    /// Jitter, milliseconds.
    jitter_ms: f64,
    /// Datagrams lost.
    lost_packets: u64,
    /// Datagrams sent, or the sum of received and lost ones.
    packets: u64,
    /// Share of lost datagrams among these.
    lost_percent: f64,
    /// Datagrams that came after a later one.
    out_of_order: u64,
    /// Whether it belongs to the omitted beginning.
    omitted: bool,
}
