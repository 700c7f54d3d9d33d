//! Pause frames that a device sent and received (`ETHTOOL_MSG_PAUSE_GET` of the generic netlink
//! family "ethtool"; Linux 5.10 and later; include/uapi/linux/ethtool_netlink.h, genetlink.h). The
//! ioctl does not report them. No device at hand counts them: the tests parse replies made according
//! to the headers.

use crate::NetlinkError;
use crate::ethtool_family::{self, ETHTOOL_FLAG_STATS};
use crate::generic::{HEADER_BYTES, number};
use crate::raw::{RawMessage, attributes};

const ETHTOOL_MSG_PAUSE_GET: u8 = 21;
const ETHTOOL_A_PAUSE_HEADER: u16 = 1;
const ETHTOOL_A_PAUSE_STATS: u16 = 5;
const ETHTOOL_A_PAUSE_STAT_TX_FRAMES: u16 = 2;
const ETHTOOL_A_PAUSE_STAT_RX_FRAMES: u16 = 3;

/// Pause frames since the device was created; `None` if the driver does not count them.
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
    let header = (ETHTOOL_A_PAUSE_HEADER, ETHTOOL_FLAG_STATS);
    let reply = ethtool_family::request(&operation, device, ETHTOOL_MSG_PAUSE_GET, header, &[])?;
    Ok(reply.as_ref().map(statistics).unwrap_or_default())
}

pub(crate) fn statistics(reply: &RawMessage) -> PauseStatistics {
    let stats = reply.attributes(HEADER_BYTES).find(|(kind, _)| *kind == ETHTOOL_A_PAUSE_STATS);
    let stats = stats.map(|(_, stats)| stats).unwrap_or_default();
    let frames = |wanted| {
        let (_, value) = attributes(stats).find(|(kind, _)| *kind == wanted)?;
        number(value)
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
    use crate::generic::message;
    use crate::raw::attribute;
    use goodput_testing::in_namespace;
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
        in_namespace(|| {
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
