//! The kernel's own emulation of a link, tc-netem(8): its parameters and their bytes
//! (net/sched/sch_netem.c `netem_change`, include/uapi/linux/pkt_sched.h).

use std::time::Duration;

use goodput_netlink::qdiscs::QdiscStats;
use goodput_netlink::{Netlink, Qdisc, QdiscOptions, attribute, namespace};

use crate::scenario::LinkDirection;

const TCA_NETEM_REORDER: u16 = 3;
const TCA_NETEM_RATE: u16 = 6;
const TCA_NETEM_RATE64: u16 = 8;
const TCA_NETEM_LATENCY64: u16 = 10;
const TCA_NETEM_JITTER64: u16 = 11;

/// Packets that may be in flight if no rate bounds them.
const UNBOUNDED_PACKETS: u32 = 200_000;

/// A netem qdisc at the root of link `index` that treats packets as `direction` says.
pub(crate) fn qdisc(index: u32, direction: &LinkDirection, mtu: u32) -> Qdisc {
    Qdisc {
        index,
        handle: 0,
        parent: Qdisc::ROOT,
        kind: "netem".into(),
        options: QdiscOptions::Other(options(direction, mtu)),
        stats: QdiscStats::default(),
    }
}

/// Whether this kernel has netem, determined by trying it in a new network namespace. Starts a thread.
pub(crate) fn is_available() -> bool {
    let nothing = LinkDirection::default();
    let tried = namespace::in_new_namespace(|| {
        let mut netlink = Netlink::open()?;
        let loopback = netlink.link("lo")?.index;
        netlink.replace_qdisc(&qdisc(loopback, &nothing, 1500))
    });
    matches!(tried, Ok(Ok(())))
}

/// The content of `TCA_OPTIONS`: `struct tc_netem_qopt`, then attributes. Times are sent as 64-bit attributes, in
/// nanoseconds, which override those of the structure.
fn options(direction: &LinkDirection, mtu: u32) -> Vec<u8> {
    let gap = u32::from(direction.reorder_percent > 0.0);
    let mut bytes = Vec::new();
    // latency, limit, loss, gap, duplicate, jitter
    for word in [0, limit_packets(direction, mtu), probability(direction.loss_percent), gap, 0, 0] {
        bytes.extend(word.to_ne_bytes());
    }
    bytes.extend(attribute(TCA_NETEM_LATENCY64, &nanoseconds(direction.delay).to_ne_bytes()));
    bytes.extend(attribute(TCA_NETEM_JITTER64, &nanoseconds(direction.jitter).to_ne_bytes()));
    if direction.reorder_percent > 0.0 {
        // struct tc_netem_reorder: probability, correlation
        let words = [probability(direction.reorder_percent), 0].map(u32::to_ne_bytes);
        bytes.extend(attribute(TCA_NETEM_REORDER, words.as_flattened()));
    }
    if let Some(rate) = direction.rate {
        bytes.extend(rate_attributes((rate.0 / 8.0) as u64));
    }
    bytes
}

/// `struct tc_netem_rate`: rate, packet overhead, cell size, cell overhead. If the rate does not fit, it is all ones
/// here, and the 64-bit attribute before it counts.
fn rate_attributes(bytes_per_s: u64) -> Vec<u8> {
    let short = u32::try_from(bytes_per_s).unwrap_or(u32::MAX);
    let words = [short, 0, 0, 0].map(u32::to_ne_bytes);
    let rate = attribute(TCA_NETEM_RATE, words.as_flattened());
    let long = attribute(TCA_NETEM_RATE64, &bytes_per_s.to_ne_bytes());
    if short == u32::MAX { [long, rate].concat() } else { rate }
}

/// netem counts delayed packets as queued, so both need room.
fn limit_packets(direction: &LinkDirection, mtu: u32) -> u32 {
    let Some(rate) = direction.rate else { return UNBOUNDED_PACKETS };
    let packet = u64::from(mtu) + 14;
    let under_way = rate.bytes_in((direction.delay + direction.jitter).as_secs_f64()) as u64;
    let packets = (direction.queue_bytes(mtu) + under_way).div_ceil(packet).max(1);
    u32::try_from(packets).unwrap_or(u32::MAX)
}

/// A share in netem's unit: of 2^32 - 1.
fn probability(percent: f64) -> u32 {
    (percent / 100.0 * f64::from(u32::MAX)).round() as u32
}

fn nanoseconds(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use goodput_model::BitRate;

    use super::*;
    use crate::amount::Queue;

    /// What tc of iproute2 6.1 sent, according to strace, for `netem limit 1234 loss 1% reorder 3% delay 0 rate
    /// 100mbit`; tc puts the delay into the structure, ours follows as attributes.
    const TC_HEAD: &[u8] = b"\0\0\0\0\xd2\x04\0\0\x29\x5c\x8f\x02\x01\0\0\0\0\0\0\0\0\0\0\0";
    const TC_TAIL: &[u8] =
        b"\x0c\0\x03\0\x7b\x14\xae\x07\0\0\0\0\x14\0\x06\0\x20\xbc\xbe\0\0\0\0\0\0\0\0\0\0\0\0\0";

    #[test]
    fn the_bytes_are_those_of_tc() {
        let direction = LinkDirection {
            rate: Some(BitRate(1e8)),
            loss_percent: 1.0,
            reorder_percent: 3.0,
            queue: Some(Queue::Packets(1234)),
            ..LinkDirection::default()
        };
        let bytes = options(&direction, 1500);
        assert!(bytes.starts_with(TC_HEAD), "{bytes:x?}");
        assert!(bytes.ends_with(TC_TAIL), "{bytes:x?}");
    }

    #[test]
    fn times_follow_as_nanoseconds() {
        let direction =
            LinkDirection { delay: Duration::from_millis(20), ..LinkDirection::default() };
        let bytes = options(&direction, 1500);
        let mut expected = vec![12, 0, TCA_NETEM_LATENCY64 as u8, 0];
        expected.extend(20_000_000i64.to_ne_bytes());
        assert_eq!(bytes[24..36], expected);
    }

    #[test]
    fn a_rate_beyond_32_bits_goes_as_64() {
        let direction = LinkDirection { rate: Some(BitRate(40e9)), ..LinkDirection::default() };
        let bytes = options(&direction, 1500);
        let wanted = 5_000_000_000u64.to_ne_bytes();
        assert!(bytes.windows(8).any(|window| window == wanted), "{bytes:x?}");
    }

    #[test]
    fn packets_under_way_need_room_beside_the_queue() {
        let direction = LinkDirection {
            rate: Some(BitRate(1514.0 * 8.0 * 1000.0)),
            delay: Duration::from_millis(20),
            queue: Some(Queue::Packets(10)),
            ..LinkDirection::default()
        };
        assert_eq!(limit_packets(&direction, 1500), 30);
        assert_eq!(limit_packets(&LinkDirection::default(), 1500), UNBOUNDED_PACKETS);
    }
}
