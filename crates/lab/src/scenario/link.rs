//! Links of a scenario: their properties as written, and the resulting properties of each direction.

use std::time::Duration;

use goodput_model::units::BitRate;
use serde::Deserialize;

use crate::amount::{self, Percent, Queue, Switch, Time};

/// Default MTU of a link, bytes: that of Ethernet.
pub const DEFAULT_MTU: u32 = 1500;

/// The links of a scenario. `path` alone joins near and far directly; the other two put a router between them.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Links {
    /// Near to far.
    pub path: Option<Link>,
    /// Near to the router.
    pub near_router: Option<Link>,
    /// Router to far.
    pub router_far: Option<Link>,
}

/// One link. Properties hold for both directions, unless `back` has another value.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Link {
    /// Bits per second, Ethernet headers included.
    #[serde(deserialize_with = "amount::optional_rate")]
    pub rate: Option<BitRate>,
    /// Delay of one way; the round trip takes twice as long.
    #[serde(deserialize_with = "amount::optional")]
    pub delay: Option<Time>,
    /// The delay varies by up to this much either way.
    #[serde(deserialize_with = "amount::optional")]
    pub jitter: Option<Time>,
    /// Share of packets lost at random.
    #[serde(deserialize_with = "amount::optional")]
    pub loss: Option<Percent>,
    /// Average number of consecutive lost packets; by default losses are independent.
    pub loss_run: Option<f64>,
    /// Share of packets that get a congestion mark, for flows that support it.
    #[serde(deserialize_with = "amount::optional")]
    pub mark: Option<Percent>,
    /// Larger IP packets vanish without an ICMP error; bytes.
    pub largest: Option<u32>,
    /// Share of packets that overtake those waiting for the delay.
    #[serde(deserialize_with = "amount::optional")]
    pub reorder: Option<Percent>,
    /// Extra delay of these packets, on top of the link's delay.
    #[serde(deserialize_with = "amount::optional")]
    pub displace: Option<Time>,
    /// Size of the queue before the bottleneck.
    #[serde(deserialize_with = "amount::optional")]
    pub queue: Option<Queue>,
    /// Largest IP packet, 1280 to 65535 bytes; 1280 is the minimum for IPv6 (RFC 8200).
    pub mtu: Option<u32>,
    /// Whether super-packets cross an emulated link whole; off by default.
    #[serde(deserialize_with = "amount::optional")]
    pub segmentation: Option<Switch>,
    /// Properties that differ from far to near.
    pub back: Option<Box<Link>>,
}

/// One direction of a link, complete. The default does nothing to packets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkDirection {
    /// Bits per second; `None`: unlimited.
    pub rate: Option<BitRate>,
    /// Delay.
    pub delay: Duration,
    /// Variation of the delay either way.
    pub jitter: Duration,
    /// Share of packets lost, percent.
    pub loss_percent: f64,
    /// Average number of consecutive lost packets.
    pub loss_run: f64,
    /// Share of packets that get a congestion mark, percent.
    pub mark_percent: f64,
    /// Larger IP packets vanish, bytes.
    pub largest: Option<u32>,
    /// Share of packets that overtake, percent.
    pub reorder_percent: f64,
    /// Extra delay of these packets; if it is zero, they overtake.
    pub displace: Duration,
    /// Size of the queue, if the scenario specifies it.
    pub queue: Option<Queue>,
}

impl Default for LinkDirection {
    fn default() -> Self {
        Self {
            rate: None,
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            loss_percent: 0.0,
            loss_run: 1.0,
            mark_percent: 0.0,
            largest: None,
            reorder_percent: 0.0,
            displace: Duration::ZERO,
            queue: None,
        }
    }
}

impl Link {
    /// Largest IP packet, bytes.
    pub fn mtu(&self) -> u32 {
        self.mtu.unwrap_or(DEFAULT_MTU)
    }

    /// Near to far, and far to near.
    pub fn directions(&self) -> (LinkDirection, LinkDirection) {
        let back = self.back.as_deref().cloned().unwrap_or_default();
        let merged = Self {
            rate: back.rate.or(self.rate),
            delay: back.delay.or(self.delay),
            jitter: back.jitter.or(self.jitter),
            loss: back.loss.or(self.loss),
            loss_run: back.loss_run.or(self.loss_run),
            mark: back.mark.or(self.mark),
            largest: back.largest.or(self.largest),
            reorder: back.reorder.or(self.reorder),
            displace: back.displace.or(self.displace),
            queue: back.queue.or(self.queue),
            ..Self::default()
        };
        (self.direction(), merged.direction())
    }

    fn direction(&self) -> LinkDirection {
        let time = |time: Option<Time>| time.map_or(Duration::ZERO, |time| time.0);
        let share = |share: Option<Percent>| share.map_or(0.0, |share| share.0);
        LinkDirection {
            rate: self.rate,
            delay: time(self.delay),
            jitter: time(self.jitter),
            loss_percent: share(self.loss),
            loss_run: self.loss_run.unwrap_or(1.0),
            mark_percent: share(self.mark),
            largest: self.largest,
            reorder_percent: share(self.reorder),
            displace: time(self.displace),
            queue: self.queue,
        }
    }

    /// Whether the link needs more than the kernel's own cable and token bucket.
    pub fn is_emulated(&self) -> bool {
        let (forward, back) = self.directions();
        self.segmentation.is_some() || [forward, back].iter().any(LinkDirection::is_emulated)
    }

    /// Whether only our own relay can emulate it: netem neither marks nor drops by size.
    pub fn needs_relay(&self) -> bool {
        let (forward, back) = self.directions();
        [forward, back].iter().any(LinkDirection::needs_relay)
    }

    /// What is wrong with the link, if anything, as a phrase that follows its name.
    pub fn problem(&self) -> Option<String> {
        let (forward, back) = self.directions();
        let differs = self.back.as_deref();
        if self.mtu.is_some_and(|mtu| !(1280..=65_535).contains(&mtu)) {
            return Some("mtu must be 1280 to 65535".into());
        }
        if differs.is_some_and(|b| b.back.is_some() || b.mtu.is_some() || b.segmentation.is_some())
        {
            return Some("back can't have a back, an mtu or a segmentation of its own".into());
        }
        let whole = self.segmentation == Some(Switch::On);
        [forward, back].iter().find_map(|direction| direction.problem(whole))
    }
}

impl LinkDirection {
    /// Whether this direction delays, loses or reorders.
    pub fn is_emulated(&self) -> bool {
        let late = !self.delay.is_zero() || !self.jitter.is_zero();
        late || self.loss_percent > 0.0 || self.reorder_percent > 0.0 || self.needs_relay()
    }

    fn needs_relay(&self) -> bool {
        let marks = self.mark_percent > 0.0;
        marks || self.largest.is_some() || self.loss_run != 1.0 || !self.displace.is_zero()
    }

    /// Size of the queue, bytes: as specified by the scenario, by default 50 ms at the rate.
    pub fn queue_bytes(&self, mtu: u32) -> u64 {
        const DEFAULT_QUEUE_S: f64 = 0.05;
        // Two super-packets, so that a slow link still accepts what a sender hands down at once.
        const MIN_QUEUE_BYTES: u64 = 128 * 1024;
        match (self.queue, self.rate) {
            (Some(queue), _) => queue.bytes(mtu),
            (None, Some(rate)) => (rate.bytes_in(DEFAULT_QUEUE_S) as u64).max(MIN_QUEUE_BYTES),
            (None, None) => u64::MAX,
        }
    }

    /// This direction followed by that of another link, as one: the lower rate with its queue, the sum of the delays,
    /// and one loss after the other.
    pub fn then(&self, next: &Self) -> Self {
        let slower = match (self.rate, next.rate) {
            (Some(own), Some(other)) if other < own => next,
            (None, Some(_)) => next,
            _ => self,
        };
        let either = |a: f64, b: f64| 100.0 - (100.0 - a) * (100.0 - b) / 100.0;
        Self {
            rate: slower.rate,
            queue: slower.queue,
            delay: self.delay + next.delay,
            jitter: self.jitter + next.jitter,
            loss_percent: either(self.loss_percent, next.loss_percent),
            loss_run: self.loss_run.max(next.loss_run),
            mark_percent: either(self.mark_percent, next.mark_percent),
            largest: [self.largest, next.largest].into_iter().flatten().min(),
            reorder_percent: either(self.reorder_percent, next.reorder_percent),
            displace: self.displace.max(next.displace),
        }
    }

    fn problem(&self, whole: bool) -> Option<String> {
        if self.jitter > self.delay {
            return Some("jitter can't be more than the delay that it varies".into());
        }
        let overtakes = self.reorder_percent > 0.0 && self.displace.is_zero();
        if overtakes && self.delay.is_zero() {
            return Some(
                "reorder needs a delay, which overtaking packets skip, or displace".into(),
            );
        }
        if self.queue.is_some() && self.rate.is_none() {
            return Some("queue needs a rate, because nothing waits without one".into());
        }
        let runs = self.loss_run >= 1.0 && self.loss_run.is_finite();
        if !runs || (self.loss_run > 1.0 && !(0.0..100.0).contains(&self.loss_percent)) {
            return Some("loss_run must be 1 or more packets, with a loss below 100 %".into());
        }
        let spoils = self.loss_percent > 0.0 || self.reorder_percent > 0.0 || self.needs_relay();
        if whole && spoils {
            return Some(
                "loss, marks, sizes and reorder are for single packets: set segmentation = \"off\""
                    .into(),
            );
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_links_in_a_row_are_one() {
        let slow = LinkDirection {
            rate: Some(BitRate(1e6)),
            loss_percent: 10.0,
            ..LinkDirection::default()
        };
        let fast = LinkDirection {
            rate: Some(BitRate(1e9)),
            delay: Duration::from_millis(5),
            loss_percent: 10.0,
            ..LinkDirection::default()
        };
        for both in [slow.then(&fast), fast.then(&slow)] {
            assert_eq!(both.rate, slow.rate);
            assert_eq!(both.delay, fast.delay);
            assert!((both.loss_percent - 19.0).abs() < 1e-9);
        }
        assert_eq!(
            LinkDirection::default().then(&LinkDirection::default()),
            LinkDirection::default()
        );
    }

    #[test]
    fn back_differs_only_where_it_says_so() {
        let text = "rate = \"100mbit\"\ndelay = \"10ms\"\nback = { rate = \"10mbit\" }";
        let (forward, back) = toml::from_str::<Link>(text).unwrap().directions();
        assert_eq!(forward.rate, Some(BitRate(1e8)));
        assert_eq!(back, LinkDirection { rate: Some(BitRate(1e7)), ..forward });
    }
}
