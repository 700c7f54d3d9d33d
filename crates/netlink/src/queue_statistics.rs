//! Counters of each queue of a device, under the same names for all drivers
//! (`NETDEV_CMD_QSTATS_GET` of the generic netlink family "netdev"; Linux 6.9 and later;
//! Documentation/netlink/specs/netdev.yaml). The list is empty for drivers without support.

use crate::NetlinkError;
use crate::generic::{Family, HEADER_BYTES, number};
use crate::raw::RawMessage;
use crate::raw::attribute;

const NETDEV_CMD_QSTATS_GET: u8 = 12;
const IFINDEX: u16 = 1;
const QUEUE_TYPE: u16 = 2;
const QUEUE_ID: u16 = 3;
const SCOPE: u16 = 4;
/// `NETDEV_QSTATS_SCOPE_QUEUE`.
const SCOPE_QUEUE: u32 = 1;

/// Names of the counters read, by `NETDEV_A_QSTATS_*`. The numbers below 12 are those of
/// 6.9; later kernels only added to them.
const COUNTERS: [(u16, &str); 11] = [
    (8, "rx_packets"),
    (10, "tx_packets"),
    (12, "rx_alloc_fail"),
    (13, "rx_hw_drops"),
    (14, "rx_hw_drop_overruns"),
    (18, "rx_csum_bad"),
    (23, "rx_hw_drop_ratelimits"),
    (24, "tx_hw_drops"),
    (25, "tx_hw_drop_errors"),
    (32, "tx_hw_drop_ratelimits"),
    (33, "tx_stop"),
];

/// One queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueStatistics {
    /// Whether it sends; otherwise it receives.
    pub sends: bool,
    /// Its number among the queues of its kind.
    pub id: u32,
    /// The driver's counters, by the names of the specification.
    pub counters: Vec<(&'static str, u64)>,
}

/// The queues of the device with number `index`.
pub fn queue_statistics(index: u32) -> Result<Vec<QueueStatistics>, NetlinkError> {
    let operation = format!("read the queues' counters of link {index}");
    let mut family = Family::open(&operation, "netdev")?;
    let wanted =
        [attribute(IFINDEX, &index.to_ne_bytes()), attribute(SCOPE, &SCOPE_QUEUE.to_ne_bytes())];
    let replies = family.dump(&operation, NETDEV_CMD_QSTATS_GET, &wanted.concat())?;
    Ok(replies.iter().filter_map(|reply| queue(reply, index)).collect())
}

pub(crate) fn queue(reply: &RawMessage, index: u32) -> Option<QueueStatistics> {
    let mut queue = QueueStatistics::default();
    let (mut ours, mut numbered) = (false, false);
    for (kind, value) in reply.attributes(HEADER_BYTES) {
        let Some(value) = number(value) else { continue };
        match kind {
            IFINDEX => ours = value == u64::from(index),
            QUEUE_TYPE => queue.sends = value == 1,
            QUEUE_ID => (queue.id, numbered) = (u32::try_from(value).ok()?, true),
            _ => {
                let known = COUNTERS.iter().find(|(number, _)| *number == kind);
                queue.counters.extend(known.map(|(_, name)| (*name, value)));
            }
        }
    }
    (ours && numbered).then_some(queue)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Netlink;
    use crate::generic::message;
    use goodput_testing::in_namespace;
    use proptest::prelude::*;

    #[test]
    fn a_queue_keeps_the_counters_that_are_known_in_either_length() {
        let body = [
            attribute(IFINDEX, &4u32.to_ne_bytes()),
            attribute(QUEUE_TYPE, &0u32.to_ne_bytes()),
            attribute(QUEUE_ID, &2u32.to_ne_bytes()),
            attribute(14, &7u32.to_ne_bytes()),
            attribute(8, &(1u64 << 40).to_ne_bytes()),
            attribute(77, &1u32.to_ne_bytes()),
        ];
        let reply = message(30, NETDEV_CMD_QSTATS_GET, &body.concat());
        let read = queue(&reply, 4).unwrap();
        assert_eq!((read.sends, read.id), (false, 2));
        assert_eq!(read.counters, [("rx_hw_drop_overruns", 7), ("rx_packets", 1 << 40)]);
        assert_eq!(queue(&reply, 5), None);
    }

    #[test]
    fn a_device_that_takes_no_part_has_no_queues() {
        in_namespace(|| {
            let mut netlink = Netlink::open().unwrap();
            netlink.create_veth("left", "right").unwrap();
            match queue_statistics(netlink.link("left").unwrap().index) {
                Ok(queues) => assert_eq!(queues, []),
                // Linux before 6.9 has no such request.
                Err(error) => assert!(error.not_supported() || error.not_found(), "{error}"),
            }
        });
    }

    proptest! {
        #[test]
        fn no_reply_makes_it_panic(body in prop::collection::vec(0u8..40, 0..120)) {
            let _ = queue(&RawMessage { kind: 30, body }, 4);
        }
    }
}
