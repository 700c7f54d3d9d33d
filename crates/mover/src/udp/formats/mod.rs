//! The registry of datagram formats: how each protocol marks, numbers and ends its datagrams.
//!
//! To add one: a `Framing` in the model, a file here, and a line in `with_format`.

pub(crate) mod goodput;
pub(crate) mod iperf2;
pub(crate) mod iperf2_report;
pub(crate) mod iperf3;
pub(crate) mod nuttcp;
pub(crate) mod ttcp;
pub(crate) mod wrap;

use goodput_model::{DatagramCounts, FlowTotals, Framing, Role, Transport};

use super::inbox::Arrival;
use super::tally::Tally;
use crate::clock::wall_ns;
use crate::flow::FlowConfig;
use iperf2_report::Summary;

/// Largest UDP payload over IPv4: 65535 less 20 bytes of IP and 8 bytes of UDP header (RFC 768).
pub const MAX_DATAGRAM: usize = 65507;

/// The shortest datagram with payload that any of the formats has, bytes: ttcp's.
pub const LEAST: usize = 5;

/// Numbers of datagrams at and above this are refused: no sender gets there, and sums can't
/// overflow.
pub(crate) const NUMBER_BOUND: u64 = 1 << 62;

/// One protocol's datagrams, as one flow sends or reads them. Pure, but for the sender's clock.
pub(crate) trait Format {
    /// Bytes of the shortest datagram that it can send.
    fn least(&self) -> usize;

    /// Bytes of the longest datagram to expect where datagrams of `chunk` bytes were agreed on.
    fn longest(&self, chunk: usize) -> usize {
        chunk
    }

    /// What a receiver asks for its payload with, again and again until some comes; for formats whose
    /// senders wait for that.
    fn request(&self) -> Option<Vec<u8>> {
        None
    }

    /// How long a receiver may turn datagrams away, nanoseconds, where it learns of a flow by its
    /// payload and not before.
    fn settling_ns(&self) -> Option<u64> {
        None
    }

    /// Writes into a datagram what is the same in each; called once for each place of a batch.
    fn prepare(&self, _datagram: &mut [u8]) {}

    /// The time to be written as the time of sending, nanoseconds.
    fn now_ns(&self) -> u64 {
        wall_ns()
    }

    /// Writes the header of one datagram, which is at least [`Format::least`] bytes long.
    fn write(&self, datagram: &mut [u8], sent: Sent);

    /// What a datagram that came means.
    fn read(&mut self, datagram: &[u8]) -> Read;

    /// What is sent before the first datagram with payload.
    fn opening(&self) -> &'static [Marker] {
        &[]
    }

    /// Writes what tells the receiver for the time `round`, from 0, that `sent.number` datagrams
    /// were all. `None`: nothing more. `room` has the length of a datagram of the flow.
    fn closing(&self, round: u64, sent: Sent, room: &mut [u8]) -> Option<Closing>;

    /// Whether the sender goes on telling the end until [`Format::hear`] finds an answer.
    fn awaits_answer(&self) -> bool {
        false
    }

    /// What the receiver tells of `flow` in a datagram to the sender, where it does.
    fn hear(&self, _flow: u16, _datagram: &[u8]) -> Option<FlowTotals> {
        None
    }

    /// What a receiver tells the sender when all is over, where it does.
    fn answer(&self, _summary: &Summary) -> Option<Answer> {
        None
    }

    /// How long after the last datagram a receiver gives the sender up, nanoseconds, where nothing
    /// else could tell that it is gone.
    fn idle_ns(&self) -> Option<u64> {
        None
    }

    /// How long a receiver reads on after the end while datagrams are missing, nanoseconds: those
    /// which took another queue may still come.
    fn stragglers_ns(&self) -> u64 {
        50_000_000
    }
}

/// Where a sender is with its datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sent {
    /// Number of the datagram, from 0: how many were sent before it.
    pub(crate) number: u64,
    /// Payload bytes sent with it and before it.
    pub(crate) bytes: u64,
    /// Its time of sending, by [`Format::now_ns`].
    pub(crate) at_ns: u64,
}

/// A short datagram that stands before payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Marker {
    /// All of it.
    pub(crate) datagram: &'static [u8],
    /// Pause after it, nanoseconds.
    pub(crate) pause_ns: u64,
}

/// What a receiver answers at the end.
pub(crate) type Answer = [u8; iperf2_report::LEN];

/// A datagram that stands behind payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Closing {
    /// Bytes of the room that it takes.
    pub(crate) len: usize,
    /// Pause after it, nanoseconds.
    pub(crate) pause_ns: u64,
    /// Whether it counts as one more datagram with payload.
    pub(crate) is_payload: bool,
}

/// What a datagram means to its receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Read {
    /// Payload.
    Payload {
        /// Its number, from 0, below [`NUMBER_BOUND`]; `None` where the format has none.
        number: Option<u64>,
        /// When it was sent, nanoseconds of any clock that runs evenly.
        sent_ns: Option<u64>,
    },
    /// The receiver's clock begins, or begins anew.
    Begin,
    /// The receiver's clock ends; what was sent before may still come.
    Over,
    /// The sender has ended.
    End {
        /// How many datagrams it has sent, where it tells.
        sent: Option<u64>,
        /// Whether this is the last of them and carries payload itself.
        is_payload: bool,
        /// How long ago the receiver's clock has ended, unless it has before, nanoseconds.
        ago_ns: u64,
    },
    /// Not a datagram of this flow.
    Stranger,
}

/// What a receiver counts of `datagrams` of `chunk` bytes, in this order, from whoever sent them.
pub fn count<'a>(
    framing: &Framing,
    chunk: usize,
    datagrams: impl IntoIterator<Item = &'a [u8]>,
) -> DatagramCounts {
    let config = FlowConfig {
        framing: framing.clone(),
        ..FlowConfig::new(Role::Receiver, Transport::Udp, chunk)
    };
    with_format!(&config, format => {
        let mut tally = Tally::new(format, None);
        for (received_ns, datagram) in (1u64..).zip(datagrams) {
            tally.count(&Arrival { datagram, received_ns, is_first: true });
        }
        tally.counts()
    })
}

/// Runs `$body` with `$format`, the format of the flow that `$config` describes.
macro_rules! with_format {
    ($config:expr, $format:ident => $body:expr) => {{
        let config: &$crate::flow::FlowConfig = $config;
        match &config.framing {
            goodput_model::Framing::Iperf3 { wide } => {
                let $format = $crate::udp::formats::iperf3::Iperf3::new(*wide);
                $body
            }
            goodput_model::Framing::Iperf2 { header, report, .. } => {
                let $format = $crate::udp::formats::iperf2::Iperf2::new(header.clone(), *report);
                $body
            }
            goodput_model::Framing::Nuttcp { counted } => {
                let $format = $crate::udp::formats::nuttcp::Nuttcp::new(*counted, config.chunk);
                $body
            }
            goodput_model::Framing::Ttcp => {
                let $format = $crate::udp::formats::ttcp::Ttcp::default();
                $body
            }
            goodput_model::Framing::Goodput => {
                let $format = $crate::udp::formats::goodput::Goodput::new(config.id);
                $body
            }
        }
    }};
}
pub(crate) use with_format;

/// A time as iperf writes it: seconds and microseconds, 32 bits each, big-endian.
pub(crate) fn time_bytes(at_ns: u64) -> [u8; 8] {
    let (seconds, us) = (at_ns / 1_000_000_000, at_ns % 1_000_000_000 / 1000);
    // Seconds since 1970 turn over in 2106, which only shifts the clock for whoever reads them.
    (u64::from(seconds as u32) << 32 | us).to_be_bytes()
}

/// Such a time at byte `at` of a datagram, nanoseconds. `None` where the datagram ends before, or
/// where it is none.
pub(crate) fn time_at(datagram: &[u8], at: usize) -> Option<u64> {
    let (seconds, us) = (word_at(datagram, at)?, word_at(datagram, at + 4)?);
    (us < 1_000_000).then(|| u64::from(seconds) * 1_000_000_000 + u64::from(us) * 1000)
}

/// The big-endian 32-bit word at byte `at` of a datagram.
pub(crate) fn word_at(datagram: &[u8], at: usize) -> Option<u32> {
    datagram.get(at..)?.first_chunk().copied().map(u32::from_be_bytes)
}
