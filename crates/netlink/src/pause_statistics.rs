//! Pause frames that a device sent and received (`ETHTOOL_MSG_PAUSE_GET` of the generic netlink
//! family "ethtool"; Linux 5.10 and later; include/uapi/linux/ethtool_netlink.h, genetlink.h). The
//! ioctl does not tell them. No device at hand counts them: the reply's form is tested on bytes made
//! after the headers.

use netlink_sys::protocols::NETLINK_GENERIC;

use crate::NetlinkError;
use crate::channel::Channel;
use crate::raw::{RawMessage, attributes};

/// `struct genlmsghdr`: command, version, two reserved bytes.
const HEADER_BYTES: usize = 4;
const GENL_ID_CTRL: u16 = 0x10;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const ETHTOOL_MSG_PAUSE_GET: u8 = 21;
const ETHTOOL_A_PAUSE_HEADER: u16 = 1;
const ETHTOOL_A_PAUSE_STATS: u16 = 5;
/// Mark of an attribute that holds others, which this family insists on.
const NLA_F_NESTED: u16 = 1 << 15;
const ETHTOOL_A_HEADER_DEV_NAME: u16 = 2;
const ETHTOOL_A_HEADER_FLAGS: u16 = 3;
const ETHTOOL_FLAG_STATS: u32 = 1 << 2;
const ETHTOOL_A_PAUSE_STAT_TX_FRAMES: u16 = 2;
const ETHTOOL_A_PAUSE_STAT_RX_FRAMES: u16 = 3;

/// Pause frames since the device exists; `None` where the driver does not count them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PauseStatistics {
    /// Received: the other end asked us to stop.
    pub rx_frames: Option<u64>,
    /// Sent: we asked the other end to stop.
    pub tx_frames: Option<u64>,
}

/// The pause frames of `device`.
pub fn pause_statistics(device: &str) -> Result<PauseStatistics, NetlinkError> {
    let operation = format!("count the pause frames of {device}");
    let mut channel = Channel::open(NETLINK_GENERIC)?;
    let family = family(&mut channel, &operation)?;
    let header = [
        attribute(ETHTOOL_A_HEADER_DEV_NAME, &[device.as_bytes(), b"\0"].concat()),
        attribute(ETHTOOL_A_HEADER_FLAGS, &ETHTOOL_FLAG_STATS.to_ne_bytes()),
    ];
    let header = attribute(ETHTOOL_A_PAUSE_HEADER | NLA_F_NESTED, &header.concat());
    let replies =
        channel.request(&operation, message(family, ETHTOOL_MSG_PAUSE_GET, &header), 0)?;
    Ok(replies.first().map(statistics).unwrap_or_default())
}

/// The number that the family "ethtool" has since this boot.
fn family(channel: &mut Channel, operation: &str) -> Result<u16, NetlinkError> {
    let name = attribute(CTRL_ATTR_FAMILY_NAME, b"ethtool\0");
    let question = message(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, &name);
    let replies = channel.request(operation, question, 0)?;
    let id = replies.iter().find_map(|reply| {
        let (_, id) =
            reply.attributes(HEADER_BYTES).find(|(kind, _)| *kind == CTRL_ATTR_FAMILY_ID)?;
        id.first_chunk().map(|id| u16::from_ne_bytes(*id))
    });
    id.ok_or_else(|| NetlinkError::malformed(operation, "the family has no number"))
}

fn message(kind: u16, command: u8, attributes: &[u8]) -> RawMessage {
    let mut body = vec![command, 1, 0, 0];
    body.extend(attributes);
    RawMessage { kind, body }
}

/// Length and type, then the value, padded to words.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(4 + value.len()).unwrap_or(u16::MAX);
    let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn statistics(reply: &RawMessage) -> PauseStatistics {
    let stats = reply.attributes(HEADER_BYTES).find(|(kind, _)| *kind == ETHTOOL_A_PAUSE_STATS);
    let stats = stats.map(|(_, stats)| stats).unwrap_or_default();
    let frames = |wanted| {
        let (_, value) = attributes(stats).find(|(kind, _)| *kind == wanted)?;
        value.first_chunk().map(|value| u64::from_ne_bytes(*value))
    };
    PauseStatistics {
        rx_frames: frames(ETHTOOL_A_PAUSE_STAT_RX_FRAMES),
        tx_frames: frames(ETHTOOL_A_PAUSE_STAT_TX_FRAMES),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Netlink;
    use crate::namespace::tests::in_test_namespace;
    use proptest::prelude::*;

    #[test]
    fn both_counters_are_read_where_there_are_any() {
        let stats = [
            attribute(ETHTOOL_A_PAUSE_STAT_TX_FRAMES, &7u64.to_ne_bytes()),
            attribute(ETHTOOL_A_PAUSE_STAT_RX_FRAMES, &9u64.to_ne_bytes()),
        ];
        let reply = message(20, 22, &attribute(ETHTOOL_A_PAUSE_STATS, &stats.concat()));
        let expected = PauseStatistics { rx_frames: Some(9), tx_frames: Some(7) };
        assert_eq!(statistics(&reply), expected);
        assert_eq!(statistics(&message(20, 22, &[])), PauseStatistics::default());
    }

    #[test]
    fn the_family_is_there_and_a_veth_has_no_pause_frames() {
        in_test_namespace("the_family_is_there_and_a_veth_has_no_pause_frames", || {
            Netlink::open().unwrap().create_veth("left", "right").unwrap();
            let error = pause_statistics("left").unwrap_err();
            assert!(error.not_supported(), "{error}");
            assert!(pause_statistics("absent").unwrap_err().not_found());
        });
    }

    proptest! {
        #[test]
        fn no_reply_makes_it_panic(body in prop::collection::vec(0u8..12, 0..80)) {
            let _ = statistics(&RawMessage { kind: 20, body });
        }
    }
}
