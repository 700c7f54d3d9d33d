//! A rate that several flows share, within one measurement or across many: a token bucket with turns.

use std::sync::{Mutex, MutexGuard, PoisonError};

use goodput_model::BitRate;

use crate::clock::now_ns;

/// How much flows may catch up after a time in which they moved less. Time that one flow does not save is lost to all
/// flows that share the rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Saved {
    /// Nothing: the first piece of a flow, so that no measurement begins faster than the rate.
    Nothing,
    /// Enough for a late reader on a busy host, a few time slices of others: 50 ms of the rate. Anything beyond it
    /// must not count: datagrams that a path has held up are lost, not late.
    Lateness,
    /// Also enough for a lost segment that the sender retransmits after 200 ms (`TCP_RTO_MIN`, include/net/tcp.h): 300
    /// ms of the rate. A stream then brings all of it at once, and a reader that held it to the rate would look like
    /// the limit.
    Stall,
}

impl Saved {
    /// Nanoseconds of the rate, for pieces that take `piece_ns`. One piece must fit, or a reader would wait after each
    /// piece even if nothing more has come.
    fn ns(self, piece_ns: f64) -> f64 {
        match self {
            Self::Nothing => 0.0,
            Self::Lateness => piece_ns.max(50e6),
            Self::Stall => piece_ns.max(300e6),
        }
    }
}

/// What may wait in the sockets of all flows of datagrams together, seconds of the rate: a receiver counts it after the
/// time in which it came. With [`Saved::Lateness`] this is the burst above the rate.
const QUEUED_S: f64 = 0.05;

/// The most that the kernel joins into one packet (`UDP_GRO`): bytes, and datagrams (`UDP_GRO_CNT_MAX`,
/// net/ipv4/udp_offload.c). A socket must hold two such packets.
const MAX_JOINED_BYTES_AND_DATAGRAMS: (f64, f64) = (65_536.0, 64.0);

/// The kernel's usual limit for a socket's receive queue, bytes (`SK_RMEM_MAX`, include/net/sock.h): no queue is made
/// shorter.
const MIN_QUEUE_BYTES: f64 = 212_992.0;

/// Holds all of its flows to one rate together. They move their pieces in turn, so no flow takes everything.
#[derive(Debug)]
pub struct SharedRate {
    rate: BitRate,
    began_ns: u64,
    /// When the next piece may move, nanoseconds after `began_ns`. `None`: nothing has moved yet.
    next_ns: Mutex<Option<f64>>,
}

impl SharedRate {
    /// Nothing is saved before the first piece, however late it comes, so that no measurement begins faster than the
    /// rate. `None` if `rate` is not a positive number.
    pub fn new(rate: BitRate) -> Option<Self> {
        let began_ns = now_ns();
        let is_rate = rate.0 > 0.0 && rate.0.is_finite();
        is_rate.then(|| Self { rate, began_ns, next_ns: Mutex::default() })
    }

    /// The rate of all flows together.
    pub fn rate(&self) -> BitRate {
        self.rate
    }

    /// Takes a turn for about `bytes`; returns when they may move, on the clock of [`crate::monotonic_ns`].
    pub fn take_turn(&self, bytes: usize, saved: Saved) -> u64 {
        self.take_turn_at(bytes, saved, now_ns())
    }

    fn take_turn_at(&self, bytes: usize, saved: Saved, now_ns: u64) -> u64 {
        let now = now_ns.saturating_sub(self.began_ns) as f64;
        let piece_ns = self.ns_of(bytes as f64);
        let mut next = self.next();
        let turn = next.map_or(now, |next| next.max(now - saved.ns(piece_ns)));
        *next = Some(turn + piece_ns);
        // A cast from float to integer saturates.
        self.began_ns.saturating_add(turn as u64)
    }

    /// `moved` bytes moved in a turn that was taken for `expected` bytes.
    pub fn moved(&self, expected: usize, moved: usize) {
        let more_ns = self.ns_of(moved as f64 - expected as f64);
        if let Some(next) = self.next().as_mut() {
            *next += more_ns;
        }
    }

    /// Takes a turn for `bytes` that have already come, if it is so near that they could wait for it in a socket. If
    /// not, the bytes must not count.
    pub fn admit(&self, bytes: usize) -> bool {
        self.admit_at(bytes, now_ns())
    }

    fn admit_at(&self, bytes: usize, now_ns: u64) -> bool {
        let waits_ns = self.take_turn_at(bytes, Saved::Nothing, now_ns).saturating_sub(now_ns);
        let is_near = waits_ns as f64 <= QUEUED_S * 1e9;
        if !is_near {
            self.moved(bytes, 0);
        }
        is_near
    }

    fn ns_of(&self, bytes: f64) -> f64 {
        bytes * 8e9 / self.rate.0
    }

    fn next(&self) -> MutexGuard<'_, Option<f64>> {
        // A panic in between still leaves a valid number.
        self.next_ns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The most that the socket of each of these `flows` may hold, bytes of the kernel's count (`sk_rcvbuf`), if they share
/// a rate and their datagrams have `size` bytes. Anything beyond is lost, as at any policer.
pub fn queue_bytes(rate: BitRate, flows: u16, size: usize) -> usize {
    let payload = size.max(1) as f64;
    let waiting = rate.bytes_in(QUEUED_S) / f64::from(flows.max(1)) / payload;
    let joined = (MAX_JOINED_BYTES_AND_DATAGRAMS.0 / payload)
        .floor()
        .clamp(1.0, MAX_JOINED_BYTES_AND_DATAGRAMS.1);
    let datagrams = waiting.max(2.0 * joined).ceil();
    // A cast from float to integer saturates.
    (datagrams * true_bytes(size)).max(MIN_QUEUE_BYTES) as usize
}

/// The most that a datagram of `size` bytes takes in a socket by the kernel's count (`skb->truesize`). Its headers and
/// `struct skb_shared_info` lie beside it, in memory that kmalloc rounds up to a power of two (`__alloc_skb`,
/// net/core/skbuff.c); drivers give even a short one 2 KiB. Measured on loopback (6.18): 832 bytes for 64, 2304 for
/// 1470, 16640 for 8972, 66339 for 65507.
fn true_bytes(size: usize) -> f64 {
    let beside = 512;
    (size.saturating_add(beside).checked_next_power_of_two().unwrap_or(usize::MAX) as f64) + 2048.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::os::fd::AsFd;
    use std::time::Duration;

    use crate::socket;
    use proptest::prelude::*;

    const NS_PER_SECOND: u64 = 1_000_000_000;

    /// 1 byte per microsecond.
    fn shared() -> SharedRate {
        SharedRate::new(BitRate(8e6)).unwrap()
    }

    #[test]
    fn flows_move_in_turn_and_none_begins_faster_than_the_rate() {
        let shared = shared();
        let turns = [0; 4]
            .map(|_| shared.take_turn_at(1000, Saved::Lateness, shared.began_ns) - shared.began_ns);
        assert_eq!(turns, [0, 1_000_000, 2_000_000, 3_000_000]);
    }

    #[test]
    fn what_did_not_move_is_left_to_the_others() {
        let shared = shared();
        shared.take_turn_at(1000, Saved::Lateness, shared.began_ns);
        shared.moved(1000, 200);
        assert_eq!(
            shared.take_turn_at(1000, Saved::Lateness, shared.began_ns) - shared.began_ns,
            200_000
        );
        shared.moved(1000, 3000);
        assert_eq!(
            shared.take_turn_at(1, Saved::Lateness, shared.began_ns) - shared.began_ns,
            3_200_000
        );
    }

    #[test]
    fn nothing_is_saved_before_the_first_piece() {
        let shared = shared();
        let now = shared.began_ns + 10 * NS_PER_SECOND;
        let turns = [0; 2].map(|_| shared.take_turn_at(1000, Saved::Lateness, now) - now);
        assert_eq!(turns, [0, 1_000_000]);
    }

    #[test]
    fn of_what_came_before_only_as_much_counts_as_could_wait_in_a_socket() {
        let shared = shared();
        let now = shared.began_ns + NS_PER_SECOND;
        let admitted = (0..1000).filter(|_| shared.admit_at(1000, now)).count();
        assert_eq!(admitted, 51, "50 ms of 1 MB/s, and the piece of now");
        assert_eq!(
            shared.take_turn_at(1000, Saved::Lateness, now) - now,
            51_000_000,
            "the others took no turn"
        );
    }

    /// Two seconds of datagrams at twice the rate, read as [`crate::udp`] reads them, from a socket that holds as many
    /// as on loopback, where each takes 2304 bytes.
    #[test]
    fn a_receiver_counts_no_more_than_the_rate_and_the_burst() {
        let rate = BitRate(50e6);
        let shared = SharedRate::new(rate).unwrap();
        let (from, size, holds) = (shared.began_ns, 1470, queue_bytes(rate, 1, 1470) / 2304 * 1470);
        let gap_ns = (size as f64 * 8e9 / (2.0 * rate.0)) as u64;
        let take = |at| shared.take_turn_at(size, Saved::Lateness, at);
        let (mut queued, mut counted, mut turn) = (0, 0, take(from));
        for at in (0..2 * NS_PER_SECOND).step_by(gap_ns as usize).map(|after| from + after) {
            while turn <= at && queued >= size {
                (queued, counted, turn) = (queued - size, counted + size, take(at));
            }
            queued = (queued + size).min(holds);
        }
        let (allowed, burst) = (rate.bytes_in(2.0), rate.bytes_in(0.15));
        assert!((counted + queued) as f64 <= allowed + burst, "{counted} + {queued}");
        assert!(counted as f64 >= allowed * 0.95, "{counted}");
    }

    #[test]
    fn flows_share_what_may_wait_down_to_what_a_socket_needs() {
        let held = |flows| queue_bytes(BitRate(1e9), flows, 1470);
        assert_eq!(held(1), 4252 * 4096);
        assert_eq!(held(5), 851 * 4096);
        assert_eq!(held(0), held(1));
        assert_eq!(queue_bytes(BitRate(1e6), 1, 64), 128 * 3072, "two packets of 64 datagrams");
        assert_eq!(queue_bytes(BitRate(1e6), 1, 40_000), MIN_QUEUE_BYTES as usize);
        assert_eq!(queue_bytes(BitRate(1e6), 1, 65_507), 2 * (131_072 + 2048));
    }

    /// The kernel counts what is requested for a socket: as many datagrams fit as are to wait.
    #[test]
    fn a_socket_holds_what_may_wait_whatever_the_size_of_its_datagrams() {
        for (rate, size, fit) in
            [(1e6, 65_507, 2), (1e6, 8972, 14), (2e6, 64, 190), (20e6, 1470, 85), (1e6, 1, 128)]
        {
            let (near, far) = (UdpSocket::bind("127.0.0.1:0"), UdpSocket::bind("127.0.0.1:0"));
            let (near, far) = (near.unwrap(), far.unwrap());
            near.connect(far.local_addr().unwrap()).unwrap();
            // Reached only if one is lost.
            far.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            let most = queue_bytes(BitRate(rate), 1, size);
            socket::set_receive_buffer(far.as_fd(), 64 << 20).unwrap();
            socket::limit_queue(far.as_fd(), most).unwrap();
            for _ in 0..fit {
                assert_eq!(near.send(&vec![0; size]).unwrap(), size);
            }
            let mut room = vec![0; size];
            let came = (0..fit).take_while(|_| far.recv(&mut room).is_ok()).count();
            assert_eq!(came, fit, "{size} bytes each");
        }
    }

    #[test]
    fn a_stream_makes_up_for_a_stall_and_datagrams_only_for_lateness() {
        let made_up = |saved| {
            let shared = shared();
            shared.take_turn_at(0, Saved::Nothing, shared.began_ns);
            let now = shared.began_ns + 10 * NS_PER_SECOND;
            (0..).take_while(|_| shared.take_turn_at(1000, saved, now) <= now).count()
        };
        assert_eq!(made_up(Saved::Stall), 301, "300 ms of 1 MB/s, and the piece of now");
        assert_eq!(made_up(Saved::Lateness), 51);
        assert_eq!(made_up(Saved::Nothing), 1);
    }

    /// One retransmission after 200 ms in every second: the path's late delivery still counts as the rate.
    #[test]
    fn a_stream_that_stalls_once_a_second_keeps_its_rate() {
        let shared = shared();
        let (mut now, mut moved) = (shared.began_ns, 0);
        while now < shared.began_ns + 10 * NS_PER_SECOND {
            now = now.max(shared.take_turn_at(1000, Saved::Stall, now));
            if (now - shared.began_ns) % NS_PER_SECOND < NS_PER_SECOND / 5 {
                now += NS_PER_SECOND / 5;
            }
            moved += 1000;
        }
        assert!((9_700_000..=10_310_000).contains(&moved), "{moved} of 10 MB");
    }

    /// 64 KiB at 5 Mbit/s take 105 ms.
    #[test]
    fn a_reader_of_pieces_beyond_what_is_saved_does_not_wait_below_the_rate() {
        let (shared, size) = (SharedRate::new(BitRate(5e6)).unwrap(), 65_507);
        shared.take_turn_at(size, Saved::Nothing, shared.began_ns);
        for piece in 1..10 {
            // Two arrive together, with twice their time between arrivals.
            let now = shared.began_ns + piece / 2 * NS_PER_SECOND / 2;
            let turn = shared.take_turn_at(size, Saved::Lateness, now);
            assert!(piece < 4 || turn <= now, "{piece}: {} ns", turn - now);
        }
    }

    #[test]
    fn a_pause_is_made_up_for_but_not_without_bound() {
        let (shared, mut moved) = (shared(), 0);
        shared.take_turn_at(0, Saved::Lateness, shared.began_ns);
        let now = shared.began_ns + 10 * NS_PER_SECOND;
        while shared.take_turn_at(1000, Saved::Lateness, now) <= now {
            moved += 1000;
        }
        assert_eq!(moved, 50_000 + 1000, "50 ms of 1 MB/s, and the piece of now");
    }

    #[test]
    fn no_rate_is_no_bucket() {
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(SharedRate::new(BitRate(rate)).is_none());
        }
    }

    proptest! {
        #[test]
        fn no_time_has_more_than_the_rate_and_what_was_saved(
            pieces in proptest::collection::vec((1usize..20_000, 0u64..NS_PER_SECOND), 1..200),
        ) {
            let shared = shared();
            let (mut now, mut sent) = (shared.began_ns, Vec::new());
            for (bytes, pause) in pieces {
                now = (now + pause).max(shared.take_turn_at(bytes, Saved::Lateness, now + pause));
                sent.push((now, bytes));
            }
            for (first, (from, _)) in sent.iter().enumerate() {
                let mut bytes = 0.0;
                for (at, moved) in &sent[first..] {
                    // The last piece begins within the time.
                    let most = (at - from) as f64 / 1e3 + 50e3 + 1.0;
                    prop_assert!(bytes <= most, "{bytes} of {most}");
                    bytes += *moved as f64;
                }
            }
        }
    }
}
