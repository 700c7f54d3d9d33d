//! Reads and writes one number of a link (rtnetlink(7)): its MTU, its transmit queue, the largest
//! segment that it receives from the stack.

use std::fs;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use goodput_model::SettingRef;
use goodput_netlink::{Link, Netlink, NetlinkError};

use super::device;
use super::upper_mtu::falls_below;
use crate::error::{SettingError, from_io, from_netlink};
use crate::setting::{Assignment, Machine};
use crate::value;

/// The backend of one number of a link.
pub(crate) struct LinkNumber {
    get: fn(&Link) -> Option<u32>,
    set: fn(&mut Netlink, u32, u32) -> Result<(), NetlinkError>,
    range: RangeInclusive<u32>,
}

/// Length of a queue without a limit of its own, packets.
pub(crate) static TX_QUEUE: LinkNumber = LinkNumber {
    get: |link| Some(link.tx_queue_len),
    set: Netlink::set_tx_queue_len,
    // A queue of 0 would pass nothing in some disciplines and everything in others.
    range: 1..=i32::MAX as u32,
};

/// The largest segment handed to the device.
pub(crate) static GSO_SIZE: LinkNumber = LinkNumber {
    get: |link| link.gso_max_size,
    set: Netlink::set_gso_max_size,
    // Up to `GSO_LEGACY_MAX_SIZE` of include/linux/netdevice.h, IPv4's size follows
    // (net/core/dev.c `netif_set_gso_max_size`). Above it does not, and would be lost on the way back.
    range: 1500..=65536,
};

/// Most packets in such a segment.
pub(crate) static GSO_PACKETS: LinkNumber =
    LinkNumber { get: |link| link.gso_max_segs, set: Netlink::set_gso_max_segs, range: 1..=65535 };

impl Machine for LinkNumber {
    fn read(&self, setting: &SettingRef) -> Result<String, SettingError> {
        let link = link(setting)?;
        let number = (self.get)(&link).ok_or_else(|| SettingError::Gone {
            setting: setting.clone(),
            what: format!("such a number of {} in this kernel", link.name),
        })?;
        Ok(number.to_string())
    }

    fn write(&self, setting: &SettingRef, value: &str) -> Result<(), SettingError> {
        let number = value::number(setting, value, &self.range)?;
        let mut netlink = device::netlink(setting)?;
        let index = device::index(&mut netlink, setting)?;
        (self.set)(&mut netlink, index, number).map_err(|e| {
            from_netlink(setting, format!("change it to {value:?}"), device::name(setting), e)
        })
    }

    fn normalise(&self, setting: &SettingRef, value: &str) -> Result<String, SettingError> {
        // A value outside our range could not be put back either.
        value::number(setting, &self.read(setting)?, &self.range)?;
        value::number(setting, value, &self.range).map(|number| number.to_string())
    }
}

/// The backend of `link.mtu`.
///
/// A change sets IPv6's MTU to the same value (net/ipv6/addrconf.c `addrconf_notify`), though a
/// router may have announced a smaller one; so both are saved.
pub(crate) struct Mtu;

/// Below it the kernel removes every IPv6 address of the device, and they do not come back with the
/// MTU (RFC 8200, section 5; net/ipv6/addrconf.c).
const LEAST_MTU_BYTES: u32 = 1280;
const MTU_RANGE: RangeInclusive<u32> = LEAST_MTU_BYTES..=65535;
/// Separates the two MTUs of [`Machine::capture`].
const AND_IPV6: &str = ", ipv6 ";

impl Machine for Mtu {
    fn read(&self, setting: &SettingRef) -> Result<String, SettingError> {
        Ok(link(setting)?.mtu.to_string())
    }

    fn write(&self, setting: &SettingRef, value: &str) -> Result<(), SettingError> {
        let (value, ipv6) = match value.split_once(AND_IPV6) {
            Some((value, ipv6)) => (value, Some(ipv6)),
            None => (value, None),
        };
        let mtu = value::number(setting, value, &MTU_RANGE)?;
        let operation = || format!("change it to {value:?}");
        let mut netlink = device::netlink(setting)?;
        let index = device::index(&mut netlink, setting)?;
        netlink
            .set_mtu(index, mtu)
            .map_err(|e| from_netlink(setting, operation(), device::name(setting), e))?;
        match ipv6 {
            Some(ipv6) => fs::write(ipv6_file(setting), ipv6)
                .map_err(|e| from_io(setting, operation(), "IPv6 MTU", e)),
            None => Ok(()),
        }
    }

    fn normalise(&self, setting: &SettingRef, value: &str) -> Result<String, SettingError> {
        let mtu = mtu(setting, value, &MTU_RANGE)?;
        let mut netlink = device::netlink(setting)?;
        let index = device::index(&mut netlink, setting)?;
        let links = netlink
            .links()
            .map_err(|e| from_netlink(setting, "list the devices on top of it", "link", e))?;
        if let Some(why) = falls_below(&links, index, mtu, LEAST_MTU_BYTES) {
            return Err(SettingError::BadValue {
                setting: setting.clone(),
                value: value.into(),
                why: with_ipv6(&why),
            });
        }
        Ok(mtu.to_string())
    }

    fn check_new(
        &self,
        setting: &SettingRef,
        value: &str,
        _earlier: &[Assignment],
    ) -> Result<(), SettingError> {
        mtu(setting, value, &mtu_range(&link(setting)?)).map(drop)
    }

    fn capture(&self, setting: &SettingRef) -> Result<String, SettingError> {
        let mtu = self.read(setting)?;
        // A host without IPv6 has no such file.
        match fs::read_to_string(ipv6_file(setting)) {
            Ok(ipv6) => Ok(format!("{mtu}{AND_IPV6}{}", ipv6.trim())),
            Err(_) => Ok(mtu),
        }
    }
}

/// An MTU within `range`; one that is too small for IPv6 is refused with this reason.
///
/// # Errors
/// When it is no number within `range`.
pub fn mtu(
    setting: &SettingRef,
    value: &str,
    range: &RangeInclusive<u32>,
) -> Result<u32, SettingError> {
    let is_for_ipv6 = value.parse().is_ok_and(|mtu: u32| mtu < LEAST_MTU_BYTES);
    value::number(setting, value, range).map_err(|error| match error {
        SettingError::BadValue { setting, value, why } if is_for_ipv6 => {
            SettingError::BadValue { setting, value, why: with_ipv6(&why) }
        }
        error => error,
    })
}

/// A reason, with what smaller MTUs do to IPv6.
fn with_ipv6(why: &str) -> String {
    format!(
        "{why}; below {LEAST_MTU_BYTES} bytes the kernel drops IPv6 addresses and group memberships, which can't be put back"
    )
}

/// The MTUs that both the driver and goodput take.
fn mtu_range(link: &Link) -> RangeInclusive<u32> {
    let (least, most) = (link.least_mtu.unwrap_or(0), link.most_mtu.unwrap_or(u32::MAX));
    least.max(*MTU_RANGE.start())..=most.min(*MTU_RANGE.end())
}

fn ipv6_file(setting: &SettingRef) -> PathBuf {
    ["/proc/sys/net/ipv6/conf", device::name(setting), "mtu"].iter().collect()
}

fn link(setting: &SettingRef) -> Result<Link, SettingError> {
    let mut netlink = device::netlink(setting)?;
    let index = device::index(&mut netlink, setting)?;
    netlink
        .link_by_index(index)
        .map_err(|e| from_netlink(setting, "read it", device::name(setting), e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_mtu_that_ipv6_does_not_survive_is_refused_with_this_reason() {
        let said = |value| {
            let setting = "link.mtu@eth0".parse().unwrap();
            mtu(&setting, value, &MTU_RANGE).unwrap_err().to_string()
        };
        assert!(said("67").contains("the kernel drops IPv6 addresses"));
        assert!(!said("70000").contains("IPv6"));
    }

    #[test]
    fn the_limits_of_the_driver_narrow_those_of_goodput() {
        let range =
            |least_mtu, most_mtu| mtu_range(&Link { least_mtu, most_mtu, ..Link::default() });
        assert_eq!(range(None, None), MTU_RANGE);
        assert_eq!(range(Some(68), Some(9000)), 1280..=9000);
        assert_eq!(range(Some(2000), None), 2000..=65535);
    }
}
