//! The counters of a running flow: one writer, any number of readers, no locks.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use goodput_framing::Framing;
use goodput_model::{Arrival, DatagramCounts, FlowTotals, Gaps};

use crate::clock::now_ns;

/// Counters of one flow. They only grow, except `lost`, which shrinks when a datagram that seemed lost arrives late,
/// and the jitter, which is a running estimate.
///
/// Aligned to two cache lines, because x86 fetches lines in pairs, so that flows don't share any.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Counters {
    bytes: AtomicU64,
    calls: AtomicU64,
    copied_sends: OptionalCount,
    mapped_bytes: OptionalCount,
    exhausted_buffers: OptionalCount,
    pub(crate) blocked: WaitClock,
    pub(crate) paced: WaitClock,
    /// How long each shared rate has held up this flow, nanoseconds.
    held_ns: Box<[AtomicU64]>,
    pub(crate) spun: WaitClock,
    stalled_ns: AtomicU64,
    pub(crate) source: WaitClock,
    pub(crate) sink: WaitClock,
    datagrams: Datagrams,
    reported_by_peer: OnceLock<FlowTotals>,
    arrivals: OnceLock<Vec<Arrival>>,
    gaps: OnceLock<Gaps>,
    /// Whether datagrams carry a number and their sending time.
    carry: DatagramFields,
}

/// Which fields the datagrams carry; goodput's own carry both.
#[derive(Debug)]
struct DatagramFields {
    number: bool,
    time: bool,
}

impl Default for DatagramFields {
    fn default() -> Self {
        Self { number: true, time: true }
    }
}

#[derive(Debug, Default)]
struct Datagrams {
    sent: AtomicU64,
    refused: AtomicU64,
    received: AtomicU64,
    lost: AtomicU64,
    reordered: AtomicU64,
    duplicated: AtomicU64,
    joined: AtomicU64,
    gaps: AtomicU64,
    even_gaps: AtomicU64,
    jitter_us_bits: AtomicU64,
}

impl Counters {
    /// Zeroes, for a flow that uses `framing` and shares this many rates.
    pub(crate) fn of(framing: &Framing, rates: usize) -> Self {
        let (number, time) = (framing.numbers_datagrams(), framing.times_datagrams());
        let held_ns = (0..rates).map(|_| AtomicU64::default()).collect();
        Self { carry: DatagramFields { number, time }, held_ns, ..Self::default() }
    }

    /// Payload bytes written or read.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// System calls that moved payload.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Time the thread waited for room (sender) or data (receiver), microseconds, an ongoing wait included.
    pub fn blocked_us(&self) -> u64 {
        self.blocked.total_ns() / 1000
    }

    /// Time the thread waited on purpose to hold a rate, microseconds, an ongoing wait included.
    pub fn paced_us(&self) -> u64 {
        self.paced.total_ns() / 1000
    }

    /// Time the thread waited for each of its shared rates, microseconds, in their order. A wait counts only for the
    /// rate that released the thread last, and without the wait that the thread's own schedule required. Part of
    /// [`Counters::paced_us`]; an ongoing wait is not included.
    pub fn held_us(&self) -> Vec<u64> {
        self.held_ns.iter().map(|held| held.load(Ordering::Relaxed) / 1000).collect()
    }

    /// Time in the calls that read the source, microseconds. If one call reads and sends, the time that the thread
    /// slept in it. An ongoing call is included if it only reads.
    pub fn source_us(&self) -> u64 {
        self.source.total_ns() / 1000
    }

    /// Time in the calls that wrote to the sink, microseconds, an ongoing call included.
    pub fn sink_us(&self) -> u64 {
        self.sink.total_ns() / 1000
    }

    /// Sends that the kernel reported as copied anyway; `None` for movers that were not meant to send without a copy.
    pub fn copied_anyway(&self) -> Option<u64> {
        self.copied_sends.count()
    }

    /// Payload bytes that were mapped instead of copied; `None` for movers that do not map.
    pub fn mapped_bytes(&self) -> Option<u64> {
        self.mapped_bytes.count()
    }

    /// Multishot receives that ended because no buffer was free; `None` for movers that request none.
    pub fn exhausted_buffers(&self) -> Option<u64> {
        self.exhausted_buffers.count()
    }

    /// Counts of datagrams; all zero for TCP. They are read one by one while the flow runs, so they may be one batch
    /// apart.
    pub fn datagrams(&self) -> DatagramCounts {
        let counts = &self.datagrams;
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        DatagramCounts {
            sent: read(&counts.sent),
            refused: read(&counts.refused),
            received: read(&counts.received),
            lost: read(&counts.lost),
            reordered: read(&counts.reordered),
            duplicated: read(&counts.duplicated),
            jitter_us: f64::from_bits(read(&counts.jitter_us_bits)),
            joined: read(&counts.joined),
            gaps: read(&counts.gaps),
            even_gaps: read(&counts.even_gaps),
            spun_us: self.spun.total_ns() / 1000,
            stalled_us: read(&self.stalled_ns) / 1000,
            numbered: self.carry.number,
            timed: self.carry.time,
        }
    }

    /// The peer's report on the flow itself, as the iperf2 server sends it over UDP.
    pub fn reported_by_peer(&self) -> Option<&FlowTotals> {
        self.reported_by_peer.get()
    }

    /// When each datagram was sent and arrived, once the flow has ended, if the flow records this.
    pub fn arrivals(&self) -> &[Arrival] {
        self.arrivals.get().map_or(&[], Vec::as_slice)
    }

    /// Records when each datagram was sent and arrived. Only for the flow's own thread.
    pub(crate) fn keep_arrivals(&self, arrivals: Vec<Arrival>) {
        self.arrivals.get_or_init(|| arrivals);
    }

    /// The pauses between the packets of the flow that arrived, once it has ended; `None` if the flow receives no datagrams.
    pub fn gaps(&self) -> Option<&Gaps> {
        self.gaps.get()
    }

    /// Keeps the pauses between packets. Only for the flow's own thread.
    pub(crate) fn keep_gaps(&self, gaps: Gaps) {
        self.gaps.get_or_init(|| gaps);
    }

    /// One system call moved `bytes`. Only for the flow's own thread.
    pub(crate) fn moved(&self, bytes: u64) {
        grow(&self.bytes, bytes);
        grow(&self.calls, 1);
    }

    /// The schedule of a paced sender slipped by this time. Only for the flow's own thread.
    pub(crate) fn stalled(&self, ns: u64) {
        grow(&self.stalled_ns, ns);
    }

    /// A shared rate has held up the flow. Only for the flow's own thread.
    pub(crate) fn held(&self, rate: usize, ns: u64) {
        if let Some(held) = self.held_ns.get(rate) {
            grow(held, ns);
        }
    }

    /// Keeps the peer's report on the flow; later reports are ignored. Only for the flow's own thread.
    pub(crate) fn record_peer_report(&self, totals: FlowTotals) {
        self.reported_by_peer.get_or_init(|| totals);
    }

    /// One system call moved payload on its way to or from the socket, not through the socket. Only for the flow's own
    /// thread.
    pub(crate) fn called(&self) {
        grow(&self.calls, 1);
    }

    /// `bytes` of the payload arrived before the flow began. Only for the flow's own thread.
    pub(crate) fn came_early(&self, bytes: u64) {
        grow(&self.bytes, bytes);
    }

    /// The kernel copied `count` sends that were meant to be zero-copy. Only for the flow's own thread.
    pub(crate) fn copied_sends(&self, count: u64) {
        self.copied_sends.add(count);
    }

    /// `bytes` of the payload were mapped. Only for the flow's own thread.
    pub(crate) fn mapped(&self, bytes: u64) {
        self.mapped_bytes.add(bytes);
    }

    /// The kernel found no free buffer another `count` times. Only for the flow's own thread.
    pub(crate) fn exhausted(&self, count: u64) {
        self.exhausted_buffers.add(count);
    }

    /// `count` datagrams were handed to the kernel. Only for the flow's own thread.
    pub(crate) fn sent_datagrams(&self, count: u64) {
        grow(&self.datagrams.sent, count);
    }

    /// Adds datagrams that a firewall of this host dropped. Only for the flow's own thread.
    pub(crate) fn refused_datagrams(&self, count: u64) {
        grow(&self.datagrams.refused, count);
    }

    /// Publishes the receiver's counts so far. Only for the flow's own thread.
    pub(crate) fn show_received(&self, counts: &DatagramCounts) {
        let shown = &self.datagrams;
        shown.received.store(counts.received, Ordering::Relaxed);
        shown.lost.store(counts.lost, Ordering::Relaxed);
        shown.reordered.store(counts.reordered, Ordering::Relaxed);
        shown.duplicated.store(counts.duplicated, Ordering::Relaxed);
        shown.joined.store(counts.joined, Ordering::Relaxed);
        shown.gaps.store(counts.gaps, Ordering::Relaxed);
        shown.even_gaps.store(counts.even_gaps, Ordering::Relaxed);
        shown.jitter_us_bits.store(counts.jitter_us.to_bits(), Ordering::Relaxed);
    }
}

/// With a single writer, a load and a store are enough; no need for the locked instruction of `fetch_add`.
fn grow(counter: &AtomicU64, by: u64) {
    counter.store(counter.load(Ordering::Relaxed) + by, Ordering::Relaxed);
}

/// A count that only some movers keep. It exists from the first call of `add`, even one that adds 0.
#[derive(Debug)]
struct OptionalCount(AtomicU64);

/// Marks a count that nobody keeps. No count reaches 2^64-1.
const NOT_KEPT: u64 = u64::MAX;

impl Default for OptionalCount {
    fn default() -> Self {
        Self(AtomicU64::new(NOT_KEPT))
    }
}

impl OptionalCount {
    fn count(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|count| *count != NOT_KEPT)
    }

    fn add(&self, count: u64) {
        self.0.store(self.count().unwrap_or(0) + count, Ordering::Relaxed);
    }
}

/// Time spent in one kind of wait, exact at any instant even while a wait is going on.
///
/// One word holds the whole state, so that no reader sees half of a change. The lowest bit is set during a wait. The
/// other bits hold the time waited so far, minus the start time of an ongoing wait, modulo 2^63 ns.
#[derive(Debug, Default)]
pub(crate) struct WaitClock {
    word: AtomicU64,
    /// The highest value that a reader has got. A processor may read its clock a few nanoseconds after the load that
    /// follows in the program, and so count slightly too much.
    highest_read_ns: AtomicU64,
}

/// The lowest bit: a wait is going on.
const WAITING_BIT: u64 = 1;

impl WaitClock {
    /// Runs `wait` and counts its time. Only for the flow's own thread.
    pub(crate) fn during<T>(&self, wait: impl FnOnce() -> T) -> T {
        let total = self.word.load(Ordering::Relaxed) >> 1;
        let less_start = total.wrapping_sub(now_ns());
        self.word.store(less_start << 1 | WAITING_BIT, Ordering::Release);
        let result = wait();
        self.word.store(less_start.wrapping_add(now_ns()) << 1, Ordering::Release);
        result
    }

    /// Counts a wait that is over. Only for the flow's own thread.
    pub(crate) fn add(&self, nanoseconds: u64) {
        let total = self.word.load(Ordering::Relaxed) >> 1;
        self.word.store(total.wrapping_add(nanoseconds) << 1, Ordering::Release);
    }

    /// Total time waited, nanoseconds.
    pub(crate) fn total_ns(&self) -> u64 {
        let total = self.read();
        self.highest_read_ns.fetch_max(total, Ordering::Relaxed).max(total)
    }

    fn read(&self) -> u64 {
        loop {
            let word = self.word.load(Ordering::Acquire);
            if word & WAITING_BIT == 0 {
                return word >> 1;
            }
            // The clock was read within the wait only if the same wait is still going on.
            let now = now_ns();
            if self.word.load(Ordering::Acquire) == word {
                return ((word >> 1).wrapping_add(now) << 1) >> 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc;

    #[test]
    fn a_wait_counts_while_it_goes_on_and_stays_when_it_is_over() {
        let clock = WaitClock::default();
        clock.during(|| {
            let early = clock.total_ns();
            while clock.total_ns() < early + 10_000 {}
        });
        let total = clock.total_ns();
        assert!(total >= 10_000, "{total}");
        assert_eq!(clock.total_ns(), total);
    }

    #[test]
    fn no_reader_ever_sees_it_run_back() {
        let (clock, done) = (WaitClock::default(), AtomicBool::new(false));
        let (started, start) = mpsc::channel();
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                started.send(()).unwrap();
                let mut last = 0;
                while !done.load(Ordering::Relaxed) {
                    let total = clock.total_ns();
                    assert!(total >= last, "{total} after {last}");
                    last = total;
                }
            });
            start.recv().unwrap();
            (0..200_000).for_each(|_| clock.during(std::hint::spin_loop));
            done.store(true, Ordering::Relaxed);
            reader.join().unwrap();
        });
    }
}
