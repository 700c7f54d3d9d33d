//! The low-water mark of a receiver: a fast stream is read when much of it has come, not at every packet.
//!
//! To wake a thread costs about as much as to copy 64 KiB. `SO_RCVLOWAT` (socket(7)) lets the kernel
//! wake the reader only when that many bytes are there. A slow stream would be counted late by that, so the
//! mark is raised only while a stream reaches it within [`LATEST_NS`], and no wait for it lasts
//! longer. The mark stays far below the receive buffer: the kernel would enlarge a smaller one for
//! its sake (`tcp_set_rcvlowat`, net/ipv4/tcp.c), and what is measured must stay as it is.
//!
//! To wake a thread costs the sender's processor too, if both are on one host. A reader that drops
//! what it reads loses nothing by what has left the cache, so from a rapid stream it just rests for
//! a moment, and nobody has to wake it. The mark then wakes nobody, but says what the kernel
//! acknowledges at once: what has come beyond it waits for the reader if the window is as wide as the
//! buffer (`__tcp_ack_snd_check`, net/ipv4/tcp_input.c), and stops a sender whose congestion window is
//! small.
//!
//! That has a price if the packets are short, like those of a program that writes little at a time: each is
//! acknowledged on its own, and as nothing is left unacknowledged, the sender's kernel gathers no writes
//! (Nagle, RFC 896). Half of what 1500-byte writes brought over a veth pair was lost by it. So what goes
//! back while the mark is raised is counted, and the mark lowered for a while if it is too much.

use std::mem;
use std::os::fd::AsFd;

use crate::clock::now_ns;
use crate::error::MoveError;
use crate::flow::Flow;
use crate::{slice, socket};

/// Highest mark, bytes. More saves little, and has left the processor's cache before it is read.
const MAX_MARK_BYTES: u64 = 256 << 10;
/// Lowest mark that is worth two system calls, bytes.
const MIN_MARK_BYTES: u64 = 32 << 10;
/// How many times the mark the receive buffer must be able to hold. It counts the kernel's overhead
/// too, which for packets of usual size is up to half of it.
const MARKS_PER_BUFFER: u64 = 8;
/// Highest mark while the reader rests, bytes, up to which the kernel acknowledges at once: more does not
/// come within [`LATEST_NS`] of a stream that is just rapid.
const MAX_RESTING_MARK_BYTES: u64 = 4 << 20;
/// Shorter segments than that make a congestion window narrow, which counts them; those of the loopback
/// device have 64 KiB, and to acknowledge each at once only costs.
const LONG_SEGMENT_BYTES: u32 = 16 << 10;
/// How late bytes below the mark may be read, nanoseconds; below 256 KiB in this time, 2.1 Gbit/s, a stream
/// is read as it comes.
const LATEST_NS: u64 = 1_000_000;
/// Bytes by which the speed of a stream is judged.
const JUDGED_BYTES: u64 = 4 * MAX_MARK_BYTES;

/// Least bytes of the stream for each segment that goes back: less is acknowledged packet by packet.
const MIN_BYTES_PER_ACK: u64 = 4 << 10;
/// Bytes of the stream for which a mark that costs too much is not raised again.
const RETRY_AFTER_BYTES: u64 = 256 << 20;

/// How long a rest is, nanoseconds; a stream is rapid if the highest mark and more comes in it, 42 Gbit/s.
const REST_NS: u64 = 50_000;
/// How many times what comes in a rest the receive buffer must hold.
const RESTS_PER_BUFFER: u64 = 4;

/// When to wake for a stream.
#[derive(Debug, Default)]
pub(crate) struct LowWater {
    /// Whether the reader may rest.
    may_rest: bool,
    /// Whether it does.
    rests: bool,
    /// The mark, bytes; zero while it is not raised.
    mark: u64,
    /// Bytes read since the last wait.
    since_wait: u64,
    /// Bytes read since `from_ns`.
    judged: u64,
    from_ns: u64,
    /// What the raised mark costs is not known yet.
    trial: Option<Trial>,
    /// Bytes to come before the mark may be raised.
    spared: u64,
}

/// A mark that was just raised.
#[derive(Debug)]
struct Trial {
    /// Segments that had gone back by then.
    sent: u32,
    /// Bytes that were read since.
    bytes: u64,
}

impl Trial {
    /// Whether too many segments go back, once that is known; `sent` are all by now.
    fn is_dear(&self, sent: u32) -> Option<bool> {
        let acks = u64::from(sent.wrapping_sub(self.sent));
        (self.bytes >= JUDGED_BYTES).then_some(acks * MIN_BYTES_PER_ACK > self.bytes)
    }
}

/// What shall become of the mark.
#[derive(Debug, PartialEq, Eq)]
enum Speed {
    /// The stream has become fast, and brings this many bytes in the time of a rest.
    Fast(u64),
    /// It has become slow.
    Slow,
    /// As before.
    Same,
}

impl LowWater {
    /// For a reader that looks at nothing of what it reads.
    pub(crate) fn dropped() -> Self {
        Self { may_rest: true, ..Self::default() }
    }

    /// `bytes` were read.
    pub(crate) fn read(&mut self, bytes: usize) {
        self.since_wait += bytes as u64;
        self.spared = self.spared.saturating_sub(bytes as u64);
        self.trial.iter_mut().for_each(|trial| trial.bytes += bytes as u64);
    }

    /// Waits for as much as the mark, or for anything if the stream is slow, as far as the stop lets it, or
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

    /// Has the kernel wake for anything, whatever the stream has been.
    pub(crate) fn lower(&mut self, flow: &Flow) {
        self.rests = false;
        self.set_mark(flow, 0);
    }

    /// Leaves the mark where it is for good: what a peer is yet to be asked for never reaches it.
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
        if self.mark > 0 && got < self.mark {
            // Woken with less than the mark, so by the clock. After a rest that is no reason to wake
            // for every packet.
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
        // The kernel takes zero as one.
        let value = (mark as i32).to_ne_bytes();
        let (level, name) = (libc::SOL_SOCKET, libc::SO_RCVLOWAT);
        // If it is refused, the stream is read as it comes.
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

/// The receive buffer as it is by now, bytes; zero if it is not known.
fn buffer_size(flow: &Flow) -> u64 {
    rustix::net::sockopt::socket_recv_buffer_size(&flow.socket).unwrap_or(0) as u64
}

/// The mark of `most` bytes at most that a receive buffer of `size` bytes allows; zero for none.
fn mark_for(size: u64, most: u64) -> u64 {
    let mark = (size / MARKS_PER_BUFFER).min(most);
    if mark < MIN_MARK_BYTES { 0 } else { mark }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads `bytes` every `gap_ns`, `count` times, and returns what was judged last.
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
        // 16 times 64 KiB are what is judged: at 4 of them in a millisecond it is just fast.
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
