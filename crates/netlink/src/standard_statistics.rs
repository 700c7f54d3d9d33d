//! Counters that the standards define, independent of the driver's names (`ETHTOOL_MSG_STATS_GET`;
//! Linux 5.13 and later; IEEE 802.3 clause 30, RFC 2819). No device at hand has them: the tests parse
//! replies made according to the headers.

use crate::NetlinkError;
use crate::ethtool_family;
use crate::generic::{HEADER_BYTES, number};
use crate::raw::{NLA_F_NESTED, attribute};
use crate::raw::{RawMessage, attributes};

const ETHTOOL_MSG_STATS_GET: u8 = 32;
const ETHTOOL_A_STATS_HEADER: u16 = 2;
const ETHTOOL_A_STATS_GROUPS: u16 = 3;
const ETHTOOL_A_STATS_GRP: u16 = 4;
const ETHTOOL_A_STATS_GRP_ID: u16 = 2;
const ETHTOOL_A_STATS_GRP_STAT: u16 = 4;
const ETHTOOL_A_BITSET_NOMASK: u16 = 1;
const ETHTOOL_A_BITSET_SIZE: u16 = 2;
const ETHTOOL_A_BITSET_VALUE: u16 = 4;
/// The groups eth-phy, eth-mac, eth-ctrl and rmon.
const GROUPS: u32 = 4;

/// Name, group (`ETHTOOL_STATS_*`) and number in the group (`ETHTOOL_A_STATS_*`) of each counter read.
const COUNTERS: [(&str, u64, u16); 14] = [
    ("symbol_errors", 0, 0),
    ("single_collisions", 1, 1),
    ("multiple_collisions", 1, 2),
    ("fcs_errors", 1, 4),
    ("alignment_errors", 1, 5),
    ("late_collisions", 1, 8),
    ("excessive_collisions", 1, 9),
    ("rx_internal_errors", 1, 13),
    ("too_long_errors", 1, 21),
    ("pause_sent", 2, 0),
    ("pause_received", 2, 1),
    ("undersize", 3, 0),
    ("fragments", 3, 2),
    ("jabbers", 3, 3),
];

/// The standard counters of `device` that its driver has, by name.
pub fn standard_statistics(device: &str) -> Result<Vec<(&'static str, u64)>, NetlinkError> {
    let operation = format!("read the standard counters of {device}");
    let wanted = [
        attribute(ETHTOOL_A_BITSET_NOMASK, &[]),
        attribute(ETHTOOL_A_BITSET_SIZE, &GROUPS.to_ne_bytes()),
        attribute(ETHTOOL_A_BITSET_VALUE, &((1u32 << GROUPS) - 1).to_ne_bytes()),
    ];
    let groups = attribute(ETHTOOL_A_STATS_GROUPS | NLA_F_NESTED, &wanted.concat());
    let header = (ETHTOOL_A_STATS_HEADER, 0);
    let reply =
        ethtool_family::request(&operation, device, ETHTOOL_MSG_STATS_GET, header, &groups)?;
    Ok(reply.as_ref().map(counters).unwrap_or_default())
}

pub(crate) fn counters(reply: &RawMessage) -> Vec<(&'static str, u64)> {
    let groups = reply.attributes(HEADER_BYTES).filter(|(kind, _)| *kind == ETHTOOL_A_STATS_GRP);
    groups.flat_map(|(_, group)| of_group(group)).collect()
}

fn of_group(group: &[u8]) -> Vec<(&'static str, u64)> {
    let id = attributes(group).find(|(kind, _)| *kind == ETHTOOL_A_STATS_GRP_ID);
    let id = id.and_then(|(_, value)| number(value));
    let stats = attributes(group).filter(|(kind, _)| *kind == ETHTOOL_A_STATS_GRP_STAT);
    let each = stats.flat_map(|(_, stat)| attributes(stat));
    each.filter(|(_, value)| value.len() == 8)
        .filter_map(|(stat, value)| {
            let known = COUNTERS.iter().find(|(_, group, at)| Some(*group) == id && *at == stat);
            Some((known?.0, number(value)?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Netlink;
    use crate::generic::message;
    use goodput_testing::in_namespace;
    use proptest::prelude::*;

    fn group(id: u32, stats: &[(u16, u64)]) -> Vec<u8> {
        let mut inner = attribute(ETHTOOL_A_STATS_GRP_ID, &id.to_ne_bytes());
        for (stat, value) in stats {
            let stat = attribute(*stat, &value.to_ne_bytes());
            inner.extend(attribute(ETHTOOL_A_STATS_GRP_STAT | NLA_F_NESTED, &stat));
        }
        attribute(ETHTOOL_A_STATS_GRP | NLA_F_NESTED, &inner)
    }

    #[test]
    fn counters_are_reported_by_group_and_number_and_unknown_ones_passed_over() {
        let mac = group(1, &[(4, 70), (8, 3), (99, 5)]);
        let control = group(2, &[(1, 9)]);
        let novel = group(17, &[(4, 1)]);
        let reply = message(20, 33, &[mac, control, novel].concat());
        let read = counters(&reply);
        assert_eq!(read, [("fcs_errors", 70), ("late_collisions", 3), ("pause_received", 9)]);
    }

    #[test]
    fn a_virtual_device_has_none() {
        in_namespace(|| {
            Netlink::open().unwrap().create_veth("left", "right").unwrap();
            match standard_statistics("left") {
                Ok(counters) => assert_eq!(counters, []),
                Err(error) => assert!(error.not_supported(), "{error}"),
            }
            assert!(standard_statistics("absent").unwrap_err().not_found());
        });
    }

    proptest! {
        #[test]
        fn no_reply_makes_it_panic(body in prop::collection::vec(0u8..12, 0..120)) {
            let _ = counters(&RawMessage { kind: 20, body });
        }
    }
}
