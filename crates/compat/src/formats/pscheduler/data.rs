//! What was moved in one interval or in all of them: `throughput-data` of the schema.

use serde::Serialize;

use crate::formats::counts::Side;

macro_rules! data {
    ($($(#[doc = $doc:literal])* $name:ident: $kind:ty,)*) => {
        /// Counts of one stream, or of several together. What is unknown is left out.
        #[derive(Debug, Clone, Default, PartialEq, Serialize)]
        #[serde(rename_all = "kebab-case")]
        pub struct Data {
            $($(#[doc = $doc])* #[serde(skip_serializing_if = "Option::is_none")] pub $name: Option<$kind>,)*
        }
    };
}

data! {
    /// Number of the stream.
    stream_id: u16,
    /// Seconds from the beginning.
    start: f64,
    /// Seconds from the beginning.
    end: f64,
    /// Payload that arrived, bits per second, as pScheduler's tool for nuttcp has it; what was sent if the receiver did
    /// not report. An archive shows this number.
    throughput_bits: f64,
    /// The same payload, bytes. The schema calls this bytes per second, but all of pScheduler's tools write the bytes.
    throughput_bytes: u64,
    /// Payload that arrived, bits per second, only if the receiver reported.
    receiver_throughput_bits: f64,
    /// Datagrams sent.
    sent: u64,
    /// Datagrams lost among these.
    lost: u64,
    /// Jitter, milliseconds.
    jitter: f64,
    /// Round-trip time, microseconds.
    rtt: f64,
    /// Congestion window, bytes.
    tcp_window_size: u64,
    /// Segments retransmitted.
    retransmits: u64,
    /// Whether the summary leaves it out.
    omitted: bool,
}

impl Data {
    /// The counts of the whole run.
    pub fn of_run(sent: &Side, received: &Side) -> Self {
        let side = if received.bytes.is_some() { received } else { sent };
        Self {
            start: Some(0.0),
            end: side.seconds,
            throughput_bits: side.bits_per_s(),
            throughput_bytes: side.bytes,
            receiver_throughput_bits: received.bits_per_s(),
            sent: sent.packets.or(received.packets),
            lost: received.lost,
            jitter: received.jitter_ms,
            retransmits: sent.retransmits,
            ..Self::default()
        }
    }

    /// Several streams of the same time together. A sum is known if each part is.
    pub fn together(streams: &[Self]) -> Option<Self> {
        let first = streams.first()?;
        let count = |read: fn(&Self) -> Option<u64>| {
            streams.iter().map(read).try_fold(0u64, |sum, one| sum.checked_add(one?))
        };
        let sum = |read: fn(&Self) -> Option<f64>| streams.iter().map(read).sum::<Option<f64>>();
        Some(Self {
            throughput_bits: sum(|s| s.throughput_bits),
            throughput_bytes: count(|s| s.throughput_bytes),
            receiver_throughput_bits: sum(|s| s.receiver_throughput_bits),
            sent: count(|s| s.sent),
            lost: count(|s| s.lost),
            // The mean, as in iperf3 (iperf_api.c, avg_jitter).
            jitter: sum(|s| s.jitter).map(|jitter| jitter / streams.len() as f64),
            retransmits: count(|s| s.retransmits),
            start: first.start,
            end: first.end,
            omitted: first.omitted,
            ..Self::default()
        })
    }
}
