//! The driver's own counters of a device, by the driver's own names (`ETHTOOL_GSTATS`,
//! include/uapi/linux/ethtool.h).

use crate::NetlinkError;
use crate::ethtool::call;
use crate::ethtool_ioctl::MAX_TABLE_BYTES;
use crate::strings::{self, NAME_BYTES};

const ETHTOOL_GSTATS: u32 = 0x1d;
/// `ETH_SS_STATS`: the set of strings that names the counters.
const STATISTIC_NAMES: u32 = 1;
/// As many names as the longest answer can hold: over 16 000. A card with 128 queues has about
/// 8 000 counters.
const MAX_STATISTICS: u32 = (MAX_TABLE_BYTES / NAME_BYTES - 1) as u32;

/// The counters of `device` with their names, in the driver's order; empty if the driver has
/// none.
pub fn statistics(device: &str) -> Result<Vec<(String, u64)>, NetlinkError> {
    let operation = format!("read the driver's counters of {device}");
    let count = strings::count(&operation, device, STATISTIC_NAMES)?;
    if count == 0 {
        return Ok(Vec::new());
    }
    if count > MAX_STATISTICS {
        let why = format!("it has {count} counters, and {MAX_STATISTICS} at most are read");
        return Err(NetlinkError::impossible(operation, why));
    }
    let names = strings::names(&operation, device, STATISTIC_NAMES, count)?;
    let mut data = vec![0u8; 8 + 8 * count as usize];
    data[4..8].copy_from_slice(&count.to_ne_bytes());
    call(&operation, device, ETHTOOL_GSTATS, &mut data)?;
    if count_of(&data) != Some(count) {
        let why = "the number of counters changed while they were read";
        return Err(NetlinkError::malformed(operation, why));
    }
    Ok(names.into_iter().zip(values(&data)).collect())
}

/// `struct ethtool_stats`: the command, the count, the values.
fn count_of(data: &[u8]) -> Option<u32> {
    data.get(4..8)?.first_chunk().map(|count| u32::from_ne_bytes(*count))
}

fn values(data: &[u8]) -> impl Iterator<Item = u64> {
    let values = data.get(8..).unwrap_or_default().chunks_exact(8);
    values.filter_map(|value| value.first_chunk()).map(|value| u64::from_ne_bytes(*value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Netlink;
    use goodput_testing::in_namespace;
    use proptest::prelude::*;

    #[test]
    fn a_veth_names_its_counters_and_the_loopback_device_has_none() {
        in_namespace(|| {
            Netlink::open().unwrap().create_veth("left", "right").unwrap();
            let statistics = statistics("left").unwrap();
            let index = statistics.iter().find(|(name, _)| name == "peer_ifindex").unwrap().1;
            let right = Netlink::open().unwrap().link("right").unwrap().index;
            assert_eq!(index, u64::from(right));
            let lo = super::statistics("lo");
            assert!(lo.is_err() || lo.unwrap().is_empty());
        });
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(data in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = count_of(&data);
            prop_assert!(values(&data).count() <= data.len() / 8);
        }
    }
}
