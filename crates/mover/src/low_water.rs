//! The low-water mark of a receiver: a fast stream is read once much of it has arrived, not at every packet.
//!
//! Waking a thread costs about as much as copying 64 KiB. With `SO_RCVLOWAT` (socket(7)) the kernel wakes the reader
//! only when that many bytes are there. This would count a slow stream late, so the mark is raised only while a stream
//! reaches it within [`LATEST_NS`], and no wait for it lasts longer. The mark stays far below the receive buffer: for a
//! higher mark the kernel would enlarge the buffer (`tcp_set_rcvlowat`, net/ipv4/tcp.c), and a measurement must not
//! change its subject.
//!
//! Waking a thread also costs the sender's processor, if both are on one host. A reader that drops its data does not
//! mind data that has left the cache. So if a stream is rapid, the reader just rests for a moment, and nobody has to
//! wake it. The mark then wakes nobody, but decides what the kernel acknowledges at once: data beyond the mark waits
//! for the reader if the window is as wide as the buffer (`__tcp_ack_snd_check`, net/ipv4/tcp_input.c), and stops a
//! sender whose congestion window is small.
//!
//! This has a price if the packets are short, as from a program that writes little at a time: each packet is
//! acknowledged on its own, nothing stays unacknowledged, and so the sender's kernel gathers no writes (Nagle, RFC
//! 896). This cost half the throughput of 1500-byte writes over a veth pair. So the segments that go back while the
//! mark is raised are counted, and the mark is lowered for a while if there are too many. And a mark does not always
//! save a wake-up, so this is tried: see [`MarkTrial`].

use std::mem;
use std::os::fd::AsFd;

use crate::clock::now_ns;
use crate::error::MoveError;
use crate::flow::Flow;
use crate::mark_trial::MarkTrial;
use crate::{slice, socket};

/// Highest mark, bytes. More saves little, and has left the processor's cache before it is read.
const MAX_MARK_BYTES: u64 = 256 << 10;
/// Lowest mark that is worth two system calls, bytes.
const MIN_MARK_BYTES: u64 = 32 << 10;
/// The least ratio of the receive buffer to the mark. The buffer also counts the kernel's overhead, up to half of it
/// for packets of usual size.
const MARKS_PER_BUFFER: u64 = 8;
/// Highest mark while the reader rests, bytes, up to which the kernel acknowledges at once: a stream that is just rapid
/// brings no more within [`LATEST_NS`].
const MAX_RESTING_MARK_BYTES: u64 = 4 << 20;
/// Shorter segments make a congestion window narrow, because the window counts segments. Segments of the loopback
/// device have 64 KiB; acknowledging each at once only costs.
const LONG_SEGMENT_BYTES: u32 = 16 << 10;
/// How late bytes below the mark may be read, nanoseconds. A stream with less than 256 KiB in this time, 2.1 Gbit/s, is
/// read as it comes.
const LATEST_NS: u64 = 1_000_000;
/// Bytes by which the speed of a stream is judged.
const JUDGED_BYTES: u64 = 4 * MAX_MARK_BYTES;

/// Least bytes of the stream per segment that goes back; with fewer, every packet is acknowledged.
const MIN_BYTES_PER_ACK: u64 = 4 << 10;
/// Bytes of the stream for which a mark that costs too much is not raised again.
const RETRY_AFTER_BYTES: u64 = 256 << 20;

/// Length of a rest, nanoseconds; a stream is rapid if it brings more than the highest mark in it, 42 Gbit/s.
const REST_NS: u64 = 50_000;
/// How many times the bytes of one rest the receive buffer must hold.
const RESTS_PER_BUFFER: u64 = 4;

/// When to wake for a stream.
#[derive(Debug, Default)]
pub(crate) struct LowWater {
    /// Whether the reader may rest.
    may_rest: bool,
    /// Whether the reader rests.
    rests: bool,
    /// The mark, bytes; zero while it is not raised.
    mark: u64,
    /// Bytes read since the last wait.
    since_wait: u64,
    /// Bytes read since `from_ns`.
    judged: u64,
    from_ns: u64,
    /// Set while the cost of the raised mark is still unknown.
    trial: Option<Trial>,
    /// Bytes to come before the mark may be raised.
    spared: u64,
    /// Whether a mark saves sleeps; a reader that may rest does not ask.
    saves: MarkTrial,
}

/// A mark that was just raised.
#[derive(Debug)]
struct Trial {
    /// Segments that had gone back before.
    sent: u32,
    /// Bytes read since.
    bytes: u64,
}

impl Trial {
    /// Whether too many segments go back, once this is known; `sent` is the current total.
    fn is_dear(&self, sent: u32) -> Option<bool> {
        let acks = u64::from(sent.wrapping_sub(self.sent));
        (self.bytes >= JUDGED_BYTES).then_some(acks * MIN_BYTES_PER_ACK > self.bytes)
    }
}

/// How the stream's speed has changed.
#[derive(Debug, PartialEq, Eq)]
enum Speed {
    /// The stream has become fast, and brings this many bytes during a rest.
    Fast(u64),
    /// It has become slow.
    Slow,
    /// As before.
    Same,
}

impl LowWater {
    /// For a reader that drops everything it reads.
    pub(crate) fn dropped() -> Self {
        Self { may_rest: true, ..Self::default() }
    }

    /// `bytes` were read.
    pub(crate) fn read(&mut self, bytes: usize) {
        self.since_wait += bytes as u64;
        if !self.may_rest {
            self.saves.read(bytes as u64);
        }
        self.spared = self.spared.saturating_sub(bytes as u64);
        self.trial.iter_mut().for_each(|trial| trial.bytes += bytes as u64);
    }

    /// Waits for as many bytes as the mark, or for any bytes if the stream is slow, as far as the stop lets it, or
    /// until `until` on the monotonic clock.
    pub(crate) fn wait(&mut self, flow: &Flow, until: Option<u64>) -> Result<(), MoveError> {
        let now = now_ns();
        match self.judge(now) {
            Speed::Fast(in_rest) => {
                let size = buffer_size(flow);
                self.rest(in_rest >= MAX_MARK_BYTES && size >= RESTS_PER_BUFFER * in_rest);
                let at_once =
                    self.rests && socket::segment_bytes(flow.socket.as_fd()) < LONG_SEGMENT_BYTES;
                let most = if at_once { MAX_RESTING_MARK_BYTES } else { MAX_MARK_BYTES };
                self.set_mark(flow, mark_for(size, most));
            }
            Speed::Slow => {
                self.rests = false;
                self.set_mark(flow, 0);
            }
            Speed::Same => self.weigh(flow),
        }
        if self.rests {
            let end = now + REST_NS;
            return flow
                .wait_blocked(until.map_or(end, |until| until.min(end)).saturating_sub(now));
        }
        let latest = (self.mark > 0).then_some(now + LATEST_NS);
        flow.wait_readable([latest, until].into_iter().flatten().min())
    }

    /// Makes the kernel wake for any data, however fast the stream was.
    pub(crate) fn lower(&mut self, flow: &Flow) {
        self.rests = false;
        self.set_mark(flow, 0);
    }

    /// Leaves the mark where it is for good, because data that must still be requested never reaches it.
    pub(crate) fn never(&mut self) {
        self.spared = u64::MAX;
    }

    /// Lowers the mark if it costs too much.
    fn weigh(&mut self, flow: &Flow) {
        let ready = self.trial.take_if(|trial| trial.bytes >= JUDGED_BYTES);
        let sent = || socket::segments_out(flow.socket.as_fd());
        let dear = ready.and_then(|trial| trial.is_dear(sent()?));
        if dear == Some(true) {
            (self.rests, self.spared) = (false, RETRY_AFTER_BYTES);
            self.set_mark(flow, 0);
        }
    }

    fn rest(&mut self, rests: bool) {
        if self.may_rest && rests && !self.rests {
            slice::wake_soon();
        }
        self.rests = self.may_rest && rests;
    }

    fn judge(&mut self, now_ns: u64) -> Speed {
        let got = mem::take(&mut self.since_wait);
        if !self.may_rest && !self.saves.allows_mark() {
            (self.judged, self.from_ns) = (0, now_ns);
            return if self.mark > 0 { Speed::Slow } else { Speed::Same };
        }
        if self.mark > 0 && got < self.mark {
            // Woken with less than the mark, so by the clock. After a rest this is no reason to wake for every packet.
            return if mem::take(&mut self.rests) { Speed::Same } else { Speed::Slow };
        }
        if self.mark > 0 && !self.may_rest {
            return Speed::Same;
        }
        self.judged += got;
        if self.judged < JUDGED_BYTES || self.spared > 0 {
            return Speed::Same;
        }
        let took_ns = now_ns.saturating_sub(mem::replace(&mut self.from_ns, now_ns));
        let judged = mem::take(&mut self.judged);
        let is_fast = u128::from(judged) * u128::from(LATEST_NS)
            >= u128::from(MAX_MARK_BYTES) * u128::from(took_ns);
        let in_rest = u128::from(judged) * u128::from(REST_NS) / u128::from(took_ns.max(1));
        if is_fast { Speed::Fast(in_rest as u64) } else { Speed::Same }
    }

    fn set_mark(&mut self, flow: &Flow, mark: u64) {
        if mark == self.mark {
            return;
        }
        // The kernel treats zero as one.
        let value = (mark as i32).to_ne_bytes();
        let (level, name) = (libc::SOL_SOCKET, libc::SO_RCVLOWAT);
        // If the kernel refuses, the stream is read as it comes.
        let set = socket::set_option(flow.socket.as_fd(), level, name, &value);
        let raised = set.is_ok() && self.mark == 0;
        self.mark = if set.is_ok() { mark } else { 0 };
        if self.mark == 0 {
            self.trial = None;
        } else if raised {
            let sent = socket::segments_out(flow.socket.as_fd());
            self.trial = sent.map(|sent| Trial { sent, bytes: 0 });
        }
    }
}

/// The current size of the receive buffer, bytes; zero if unknown.
fn buffer_size(flow: &Flow) -> u64 {
    rustix::net::sockopt::socket_recv_buffer_size(&flow.socket).unwrap_or(0) as u64
}

/// The mark, at most `most` bytes, that a receive buffer of `size` bytes allows; zero for none.
fn mark_for(size: u64, most: u64) -> u64 {
    let mark = (size / MARKS_PER_BUFFER).min(most);
    if mark < MIN_MARK_BYTES { 0 } else { mark }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads `bytes` every `gap_ns`, `count` times, and returns the last verdict.
    fn last(low_water: &mut LowWater, bytes: usize, gap_ns: u64, count: u64) -> Speed {
        let from = low_water.from_ns;
        let judge = |i| {
            low_water.read(bytes);
            low_water.judge(from + i * gap_ns)
        };
        (1..=count).map(judge).last().expect("some reads")
    }

    #[test]
    fn a_stream_is_fast_when_marks_are_reached_in_time() {
        // A verdict takes 16 times 64 KiB: with 4 of them per millisecond the stream is just fast.
        let mut low_water = LowWater::default();
        assert_eq!(last(&mut low_water, 64 << 10, 250_000, 15), Speed::Same);
        assert_eq!(last(&mut low_water, 64 << 10, 4_000_000, 1), Speed::Fast((1 << 20) / 80));
        assert_eq!(last(&mut low_water, 64 << 10, 251_000, 16), Speed::Same, "just too slow");
    }

    #[test]
    fn it_is_slow_when_a_wait_ends_with_less_than_the_mark() {
        let mut low_water = LowWater { mark: 100_000, ..LowWater::default() };
        assert_eq!(last(&mut low_water, 100_000, 1, 50), Speed::Same);
        assert_eq!(last(&mut low_water, 99_999, 1, 1), Speed::Slow);
    }

    #[test]
    fn a_mark_that_has_each_packet_acknowledged_is_dear() {
        let trial = Trial { sent: u32::MAX, bytes: JUDGED_BYTES };
        let long = (JUDGED_BYTES / MIN_BYTES_PER_ACK) as u32;
        assert_eq!(trial.is_dear(long - 1), Some(false), "the count wraps");
        assert_eq!(trial.is_dear(long), Some(true));
        assert_eq!(Trial { sent: 0, bytes: JUDGED_BYTES - 1 }.is_dear(1 << 20), None);
    }

    #[test]
    fn a_stream_that_is_spared_is_not_fast() {
        let mut low_water = LowWater { spared: 3 << 20, ..LowWater::default() };
        assert_eq!(last(&mut low_water, 1 << 20, 1000, 2), Speed::Same);
        assert!(matches!(last(&mut low_water, 1 << 20, 1000, 2), Speed::Fast(_)));
    }

    #[test]
    fn a_rest_that_brings_less_than_the_mark_is_the_last() {
        let mut low_water = LowWater { mark: 100_000, rests: true, ..LowWater::dropped() };
        assert_eq!(last(&mut low_water, 99_999, 1, 1), Speed::Same);
        assert!(!low_water.rests);
        assert_eq!(last(&mut low_water, 99_999, 1, 1), Speed::Slow);
    }
}
