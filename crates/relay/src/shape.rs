//! How one direction of an emulated link treats a packet, as a pure function of time: drop it, or deliver it at a
//! certain nanosecond.
//!
//! The bottleneck's queue is never stored: a link of a known rate is busy until `free_at`, and the bytes waiting at any
//! time follow from this. This keeps the rate exact however late a thread wakes.

use super::random::Random;
use super::vnet::ETHERNET_BYTES;

/// The properties of one direction of an emulated link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shape {
    /// Bits per second, counting each packet with its 14 bytes of Ethernet header; `None`: no
    /// limit.
    pub rate_bits_per_s: Option<f64>,
    /// Propagation delay, nanoseconds.
    pub delay_ns: u64,
    /// The delay varies uniformly by up to this much either way, nanoseconds; packets keep their
    /// order.
    pub jitter_ns: u64,
    /// Share of packets lost at random, 0 to 1.
    pub loss: f64,
    /// Average number of consecutive lost packets, at least 1. Above 1, losses come in bursts (the two-state chain of
    /// Gilbert, 1960, which loses everything in its bad state), with `loss` as the overall share.
    pub loss_run: f64,
    /// Share of packets that get a congestion mark, out of those whose flow supports it.
    pub mark: f64,
    /// Larger IP packets vanish, bytes.
    pub largest_bytes: u64,
    /// Share of packets that overtake: they leave without the delay, as with netem (tc-netem(8)).
    pub reorder: f64,
    /// Extra delay of these packets, nanoseconds; 0 for none.
    pub displace_ns: u64,
    /// Bytes that may wait for the bottleneck; only relevant with a rate.
    pub queue_bytes: u64,
    /// Seed of loss, jitter and reordering.
    pub seed: u64,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            rate_bits_per_s: None,
            delay_ns: 0,
            jitter_ns: 0,
            loss: 0.0,
            loss_run: 1.0,
            mark: 0.0,
            largest_bytes: u64::MAX,
            reorder: 0.0,
            displace_ns: 0,
            queue_bytes: u64::MAX,
            seed: 1,
        }
    }
}

/// The fate of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// Deliver at this time, in order.
    At(u64),
    /// Deliver at this time, ahead of packets that wait for the delay.
    Overtaking(u64),
    /// Deliver at this time, behind packets that came later.
    HeldBack(u64),
    /// No room in the bottleneck's queue.
    QueueFull,
    /// Lost at random, or because of its size.
    Lost,
}

/// One direction of an emulated link.
#[derive(Debug)]
pub(super) struct Shaper {
    shape: Shape,
    random: Random,
    free_at: u64,
    last_delivery: u64,
    losing: bool,
}

impl Shaper {
    pub(super) fn new(shape: Shape) -> Self {
        Self {
            shape,
            random: Random::seeded(shape.seed),
            free_at: 0,
            last_delivery: 0,
            losing: false,
        }
    }

    /// Decides about a packet of `wire_bytes` that came at `now`; times are nanoseconds of one clock that never runs
    /// backwards.
    pub(super) fn admit(&mut self, now: u64, wire_bytes: u64) -> Fate {
        let Some(sent_at) = self.serialise(now, wire_bytes) else { return Fate::QueueFull };
        let too_large = wire_bytes.saturating_sub(ETHERNET_BYTES) > self.shape.largest_bytes;
        if too_large || self.loses() {
            return Fate::Lost;
        }
        let displaced = self.random.hit(self.shape.reorder);
        if displaced && self.shape.displace_ns == 0 {
            return Fate::Overtaking(sent_at);
        }
        let jitter = self.random.around_zero(self.shape.jitter_ns);
        let due = (sent_at + self.shape.delay_ns).saturating_add_signed(jitter).max(sent_at);
        self.last_delivery = self.last_delivery.max(due);
        if displaced {
            return Fate::HeldBack(self.last_delivery + self.shape.displace_ns);
        }
        Fate::At(self.last_delivery)
    }

    /// Whether a delivered packet gets a congestion mark.
    pub(super) fn marks(&mut self) -> bool {
        self.random.hit(self.shape.mark)
    }

    fn loses(&mut self) -> bool {
        let Shape { loss, loss_run, .. } = self.shape;
        if loss_run <= 1.0 {
            return self.random.hit(loss);
        }
        // In equilibrium, the bad state takes the fraction `loss` of the packets.
        let chance =
            if self.losing { 1.0 - 1.0 / loss_run } else { loss / (1.0 - loss) / loss_run };
        self.losing = self.random.hit(chance);
        self.losing
    }

    /// When the last bit has left the bottleneck; `None` if the packet finds no room.
    fn serialise(&mut self, now: u64, wire_bytes: u64) -> Option<u64> {
        let Some(rate) = self.shape.rate_bits_per_s else { return Some(now) };
        let start = self.free_at.max(now);
        let waiting_bytes = (start - now) as f64 * rate / 8e9;
        // A packet that finds the bottleneck idle never waits, whatever its size.
        if start > now && waiting_bytes + wire_bytes as f64 > self.shape.queue_bytes as f64 {
            return None;
        }
        self.free_at = start + (wire_bytes as f64 * 8e9 / rate) as u64;
        Some(self.free_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_rate_spaces_packets_by_their_length() {
        let mut shaper =
            Shaper::new(Shape { rate_bits_per_s: Some(1e9), delay_ns: 10_000, ..Shape::default() });
        assert_eq!(shaper.admit(0, 1250), Fate::At(20_000));
        assert_eq!(shaper.admit(0, 1250), Fate::At(30_000));
        assert_eq!(shaper.admit(100_000, 125), Fate::At(111_000));
    }

    #[test]
    fn what_finds_no_room_is_dropped_and_takes_no_time() {
        let shape = Shape { rate_bits_per_s: Some(8e9), queue_bytes: 2500, ..Shape::default() };
        let mut shaper = Shaper::new(shape);
        let fates: Vec<_> = (0..4).map(|_| shaper.admit(0, 1000)).collect();
        use Fate::{At, QueueFull};
        assert_eq!(fates, [At(1000), At(2000), QueueFull, QueueFull]);
        assert_eq!(shaper.admit(1000, 1000), At(3000));
    }

    #[test]
    fn an_overtaker_leaves_without_the_delay() {
        let shape = Shape { delay_ns: 5_000, reorder: 1.0, ..Shape::default() };
        assert_eq!(Shaper::new(shape).admit(10, 100), Fate::Overtaking(10));
    }

    #[test]
    fn what_is_held_back_comes_later_and_delays_nobody() {
        let shape = Shape { delay_ns: 500, reorder: 1.0, displace_ns: 90, ..Shape::default() };
        let mut shaper = Shaper::new(shape);
        assert_eq!(shaper.admit(10, 100), Fate::HeldBack(600));
        shaper.shape.reorder = 0.0;
        assert_eq!(shaper.admit(20, 100), Fate::At(520));
    }

    #[test]
    fn what_is_too_large_vanishes() {
        let mut shaper = Shaper::new(Shape { largest_bytes: 1400, ..Shape::default() });
        assert_eq!([1414, 1415].map(|bytes| shaper.admit(0, bytes)), [Fate::At(0), Fate::Lost]);
    }

    #[test]
    fn bursts_are_as_long_and_as_many_as_asked() {
        let shape = Shape { loss: 0.01, loss_run: 5.0, ..Shape::default() };
        let mut shaper = Shaper::new(shape);
        let lost: Vec<_> = (0..1_000_000).map(|_| shaper.admit(0, 100) == Fate::Lost).collect();
        let all = lost.iter().filter(|lost| **lost).count();
        let bursts = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count();
        // 10,000 in 2,000 bursts; the deviation of the mean of 2,000 geometric lengths is 2 %.
        assert!((9_000..11_000).contains(&all), "{all}");
        assert!((1_800..2_200).contains(&bursts), "{bursts}");
    }

    proptest! {
        #[test]
        fn deliveries_in_order_stay_in_order(
            gaps in proptest::collection::vec(0u64..50_000, 1..200),
            jitter_ns in 0u64..30_000, seed: u64,
        ) {
            let shape = Shape { delay_ns: 30_000, jitter_ns, seed,
                rate_bits_per_s: Some(1e9), ..Shape::default() };
            let (mut shaper, mut now, mut last) = (Shaper::new(shape), 0, 0);
            for gap in gaps {
                now += gap;
                let Fate::At(due) = shaper.admit(now, 1514) else { panic!("dropped") };
                prop_assert!(due >= last && due >= now);
                last = due;
            }
        }
    }
}
