//! A device's lists of names: its features, its counters (`ETHTOOL_GSSET_INFO`,
//! `ETHTOOL_GSTRINGS`, include/uapi/linux/ethtool.h).

use crate::NetlinkError;
use crate::ethtool::{c_text, call};

const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
/// `ETH_GSTRING_LEN`.
pub(crate) const NAME_BYTES: usize = 32;

/// Number of names in `set` (`ETH_SS_*`) of `device`; 0 if the device does not have the set.
/// `struct ethtool_sset_info`: the command, a reserved word, a mask of sets, their sizes.
pub(crate) fn count(operation: &str, device: &str, set: u32) -> Result<u32, NetlinkError> {
    let mut data = [0u8; 20];
    data[8..16].copy_from_slice(&(1u64 << set).to_ne_bytes());
    call(operation, device, ETHTOOL_GSSET_INFO, &mut data)?;
    Ok(u32::from_ne_bytes([data[16], data[17], data[18], data[19]]))
}

/// The `count` names of `set`. `struct ethtool_gstrings`: the command, the set, the count, the
/// strings.
pub(crate) fn names(
    operation: &str,
    device: &str,
    set: u32,
    count: u32,
) -> Result<Vec<String>, NetlinkError> {
    let mut data = vec![0u8; 12 + NAME_BYTES * count as usize];
    data[4..8].copy_from_slice(&set.to_ne_bytes());
    data[8..12].copy_from_slice(&count.to_ne_bytes());
    call(operation, device, ETHTOOL_GSTRINGS, &mut data)?;
    Ok(data[12..].chunks_exact(NAME_BYTES).map(c_text).collect())
}
