//! Requests to the generic netlink family "ethtool" (Linux 5.6 and later;
//! include/uapi/linux/ethtool_netlink.h), for what the ioctl does not report.

use crate::NetlinkError;
use crate::generic::Family;
use crate::raw::RawMessage;
use crate::raw::{NLA_F_NESTED, attribute};

const ETHTOOL_A_HEADER_DEV_NAME: u16 = 2;
const ETHTOOL_A_HEADER_FLAGS: u16 = 3;
/// Requests counters too.
pub(crate) const ETHTOOL_FLAG_STATS: u32 = 1 << 2;

/// Sends the request `command` about `device`, with attribute `header` as its header and `more`
/// attributes after it. `None` if the only reply is an acknowledgement.
pub(crate) fn request(
    operation: &str,
    device: &str,
    command: u8,
    (header, flags): (u16, u32),
    more: &[u8],
) -> Result<Option<RawMessage>, NetlinkError> {
    let mut family = Family::open(operation, "ethtool")?;
    let inner = [
        attribute(ETHTOOL_A_HEADER_DEV_NAME, &[device.as_bytes(), b"\0"].concat()),
        attribute(ETHTOOL_A_HEADER_FLAGS, &flags.to_ne_bytes()),
    ];
    let mut attributes = attribute(header | NLA_F_NESTED, &inner.concat());
    attributes.extend(more);
    Ok(family.request(operation, command, &attributes)?.into_iter().next())
}
