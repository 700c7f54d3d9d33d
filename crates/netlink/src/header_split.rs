//! Whether a device puts the headers and the payload of received TCP packets into separate buffers, and from which length
//! on (`ETHTOOL_MSG_RINGS_GET` and `ETHTOOL_MSG_RINGS_SET` of the generic netlink family "ethtool";
//! include/uapi/linux/ethtool_netlink_generated.h, net/ethtool/rings.c). Devices report the split since Linux 5.17 and
//! change it since 6.4; the threshold came with 6.14. The ioctl knows neither.

use crate::NetlinkError;
use crate::ethtool_family;
use crate::generic::{HEADER_BYTES, number};
use crate::raw::{RawMessage, attribute};

const ETHTOOL_MSG_RINGS_GET: u8 = 15;
const ETHTOOL_MSG_RINGS_SET: u8 = 16;
const HEADER: u16 = 1;
const TCP_DATA_SPLIT: u16 = 11;
const HDS_THRESH: u16 = 17;
const HDS_THRESH_MAX: u16 = 18;
/// `ETHTOOL_TCP_DATA_SPLIT_DISABLED` and `_ENABLED`; 0 is unknown.
const SPLIT: [u8; 2] = [1, 2];

/// How a device separates headers from payload. `None`: its driver, or this kernel, does not report it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HeaderSplit {
    /// Whether payload has buffers of its own.
    pub on: Option<bool>,
    /// Packets up to this length are not separated, bytes; 0 separates all.
    pub threshold: Option<u32>,
    /// The largest `threshold` that the driver takes, bytes.
    pub most: Option<u32>,
}

/// How `device` of the calling thread's namespace separates headers from payload. A device without rings refuses.
pub fn header_split(device: &str) -> Result<HeaderSplit, NetlinkError> {
    let operation = format!("read the header split of {device}");
    let reply = ask(&operation, device, ETHTOOL_MSG_RINGS_GET, &[])?;
    Ok(reply.as_ref().map(parse).unwrap_or_default())
}

/// Switches the separation on or off. A device that can't refuses.
pub fn set_header_split(device: &str, on: bool) -> Result<(), NetlinkError> {
    let operation = format!("switch the header split of {device}");
    let wanted = attribute(TCP_DATA_SPLIT, &[SPLIT[usize::from(on)]]);
    ask(&operation, device, ETHTOOL_MSG_RINGS_SET, &wanted).map(drop)
}

/// Sets the length up to which packets are not separated, bytes. A device that can't refuses.
pub fn set_header_split_threshold(device: &str, bytes: u32) -> Result<(), NetlinkError> {
    let operation = format!("set the header split threshold of {device} to {bytes}");
    let wanted = attribute(HDS_THRESH, &bytes.to_ne_bytes());
    ask(&operation, device, ETHTOOL_MSG_RINGS_SET, &wanted).map(drop)
}

fn ask(
    operation: &str,
    device: &str,
    command: u8,
    more: &[u8],
) -> Result<Option<RawMessage>, NetlinkError> {
    #[cfg(any(test, feature = "scripted"))]
    if let Some(answer) = crate::scripted::answer_rings(device, more) {
        return answer.map(Some).map_err(|cause| NetlinkError::refused(operation, cause));
    }
    ethtool_family::request(operation, device, command, (HEADER, 0), more)
}

fn parse(reply: &RawMessage) -> HeaderSplit {
    let mut found = HeaderSplit::default();
    for (kind, value) in reply.attributes(HEADER_BYTES) {
        let Some(value) = number(value) else { continue };
        match kind {
            TCP_DATA_SPLIT => {
                let state = SPLIT.iter().position(|state| value == u64::from(*state));
                found.on = state.map(|state| state == 1);
            }
            HDS_THRESH => found.threshold = u32::try_from(value).ok(),
            HDS_THRESH_MAX => found.most = u32::try_from(value).ok(),
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Netlink;
    use crate::generic::message;
    use crate::scripted::{Card, install};
    use goodput_testing::in_namespace;
    use proptest::prelude::*;

    #[test]
    fn what_a_driver_does_not_report_is_missing() {
        let reply = |attributes: &[u8]| parse(&message(20, ETHTOOL_MSG_RINGS_GET, attributes));
        assert_eq!(reply(&[]), HeaderSplit::default());
        assert_eq!(reply(&attribute(TCP_DATA_SPLIT, &[0])), HeaderSplit::default());
        let all = [
            attribute(TCP_DATA_SPLIT, &[2]),
            attribute(HDS_THRESH, &256u32.to_ne_bytes()),
            attribute(HDS_THRESH_MAX, &1023u32.to_ne_bytes()),
        ];
        let whole = HeaderSplit { on: Some(true), threshold: Some(256), most: Some(1023) };
        assert_eq!(reply(&all.concat()), whole);
        assert_eq!(reply(&attribute(TCP_DATA_SPLIT, &[1])).on, Some(false));
    }

    #[test]
    fn a_card_takes_the_split_and_its_threshold_one_by_one() {
        let _card = install("card0", Card::with_queues(4));
        set_header_split("card0", true).unwrap();
        set_header_split_threshold("card0", 256).unwrap();
        let whole = HeaderSplit { on: Some(true), threshold: Some(256), most: Some(1023) };
        assert_eq!(header_split("card0").unwrap(), whole);
        assert!(set_header_split_threshold("card0", 1024).is_err());
        set_header_split("card0", false).unwrap();
        assert_eq!(header_split("card0").unwrap(), HeaderSplit { on: Some(false), ..whole });
    }

    #[test]
    fn a_veth_has_no_rings_to_split() {
        in_namespace(|| {
            Netlink::open().unwrap().create_veth("left", "right").unwrap();
            for error in [
                header_split("left").unwrap_err(),
                set_header_split("left", true).unwrap_err(),
                set_header_split_threshold("left", 1).unwrap_err(),
            ] {
                assert!(error.not_supported(), "{error}");
            }
            assert!(header_split("absent").unwrap_err().not_found());
        });
    }

    proptest! {
        #[test]
        fn no_reply_makes_it_panic(body in prop::collection::vec(0u8..20, 0..80)) {
            let _ = parse(&RawMessage { kind: 20, body });
        }
    }
}
