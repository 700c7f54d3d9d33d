//! The ethtool ioctl (`SIOCETHTOOL`, include/uapi/linux/ethtool.h): driver, speed, duplex and the result
//! of autonegotiation.
//!
//! This uses the ioctl rather than the netlink family, because every kernel and every driver answers it.

use std::ops::Range;

use crate::NetlinkError;
use crate::ethtool_ioctl::ask_kernel;
use crate::link_modes::LinkModes;

const ETHTOOL_GDRVINFO: u32 = 0x03;
const ETHTOOL_GLINKSETTINGS: u32 = 0x4c;
/// `struct ethtool_drvinfo`.
const DRIVER_INFO_BYTES: usize = 196;
/// Offsets in it of the driver's name and the device's address on its bus.
const DRIVER_NAME: Range<usize> = 4..36;
const BUS_ADDRESS: Range<usize> = 100..132;
/// `struct ethtool_link_settings` without its link mode masks.
const LINK_SETTINGS_BYTES: usize = 48;
/// Offset of `autoneg` in it.
const AUTONEG_AT: usize = 11;
/// Offset of `link_mode_masks_nwords` in it.
const MASK_WORDS_AT: usize = 15;
/// Most words a mask can have, because the count is a signed byte.
const MASK_BYTES: usize = 3 * 127 * 4;
/// `SPEED_UNKNOWN`.
const SPEED_UNKNOWN: u32 = u32::MAX;

/// Whether a link sends and receives at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duplex {
    /// One at a time.
    Half,
    /// Both at once.
    Full,
}

/// The driver's report on a link. Virtual devices invent it: every veth reports 10 Gbit/s.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinkSettings {
    /// Speed, bits per second; `None` if the driver does not know.
    pub speed_bits_per_s: Option<u64>,
    /// Duplex; `None` if the driver does not know.
    pub duplex: Option<Duplex>,
    /// Whether this end negotiates speed and duplex with the other.
    pub autoneg: bool,
    /// What this end can do.
    pub supported: LinkModes,
    /// What this end offers.
    pub advertised: LinkModes,
    /// What the other end offers, if the driver knows it.
    pub partner: LinkModes,
}

/// The driver's report on itself and on its device's place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DriverInfo {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// The device on its bus: "0000:00:03.0", "usb-0000:00:14.0-1"; `None` for virtual devices.
    pub bus_address: Option<String>,
}

/// The driver of `device` and where the device is.
pub fn driver_info(device: &str) -> Result<DriverInfo, NetlinkError> {
    let mut info = [0u8; DRIVER_INFO_BYTES];
    let operation = format!("read the driver of {device}");
    call(&operation, device, ETHTOOL_GDRVINFO, &mut info)?;
    let text = |range: Range<usize>| Some(c_text(&info[range])).filter(|text| !text.is_empty());
    Ok(DriverInfo { name: text(DRIVER_NAME), bus_address: text(BUS_ADDRESS) })
}

/// Name of the driver of `device`; `None` if it has none.
pub fn driver(device: &str) -> Result<Option<String>, NetlinkError> {
    driver_info(device).map(|info| info.name)
}

/// The text up to the first zero byte.
pub(crate) fn c_text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// Speed, duplex and link modes of `device`, as far as its driver knows them.
pub fn link_settings(device: &str) -> Result<LinkSettings, NetlinkError> {
    let operation = format!("read the speed of {device}");
    let mut settings = [0u8; LINK_SETTINGS_BYTES + MASK_BYTES];
    // The first call only agrees on the length of the masks: the kernel answers with its own length,
    // negated.
    call(&operation, device, ETHTOOL_GLINKSETTINGS, &mut settings)?;
    let words = (settings[MASK_WORDS_AT] as i8).checked_neg().filter(|words| *words > 0);
    let words =
        words.ok_or_else(|| NetlinkError::malformed(&operation, "no length of its link modes"))?;
    settings.fill(0);
    settings[MASK_WORDS_AT] = words as u8;
    call(&operation, device, ETHTOOL_GLINKSETTINGS, &mut settings)?;
    Ok(parse_settings(&settings))
}

pub(crate) fn parse_settings(settings: &[u8]) -> LinkSettings {
    let speed = settings.get(4..8).and_then(|bytes| bytes.first_chunk()).copied();
    let speed = speed.map(u32::from_ne_bytes).filter(|mbit| ![0, SPEED_UNKNOWN].contains(mbit));
    let duplex = match settings.get(8) {
        Some(0) => Some(Duplex::Half),
        Some(1) => Some(Duplex::Full),
        _ => None,
    };
    let words = settings.get(MASK_WORDS_AT).copied().unwrap_or(0);
    let mask = 4 * usize::from(words);
    let modes = |place: usize| {
        let start = LINK_SETTINGS_BYTES + place * mask;
        LinkModes::from_bytes(settings.get(start..start + mask).unwrap_or_default())
    };
    LinkSettings {
        speed_bits_per_s: speed.map(|mbit| u64::from(mbit) * 1_000_000),
        duplex,
        autoneg: settings.get(AUTONEG_AT) == Some(&1),
        supported: modes(0),
        advertised: modes(1),
        partner: modes(2),
    }
}

/// One ioctl on `device` of the calling thread's namespace. `data` is the command's structure; its
/// first word becomes the command. Anything that the kernel would write beyond its end is lost. `data` must not
/// be longer than [`crate::ethtool_ioctl::MAX_TABLE_BYTES`].
pub(crate) fn call(
    operation: &str,
    device: &str,
    command: u32,
    data: &mut [u8],
) -> Result<(), NetlinkError> {
    #[cfg(any(test, feature = "scripted"))]
    if let Some(answer) = crate::scripted::answer(device, command, data) {
        return answer.map_err(|cause| NetlinkError::refused(operation, cause));
    }
    ask_kernel(operation, device, command, data)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Netlink;
    use goodput_testing::in_namespace;
    use proptest::prelude::*;

    #[test]
    fn a_veth_names_its_driver_and_invents_a_speed() {
        in_namespace(|| {
            Netlink::open().unwrap().create_veth("left", "right").unwrap();
            let info = driver_info("left").unwrap();
            assert_eq!((info.name.as_deref(), info.bus_address), (Some("veth"), None));
            let settings = link_settings("left").unwrap();
            assert_eq!(settings.speed_bits_per_s, Some(10_000_000_000));
            assert_eq!(settings.duplex, Some(Duplex::Full));
        });
    }

    #[test]
    fn an_unknown_speed_is_none() {
        let mut bytes = [0xff; LINK_SETTINGS_BYTES];
        let settings = parse_settings(&bytes);
        assert_eq!((settings.speed_bits_per_s, settings.duplex), (None, None));
        assert_eq!(settings.supported, LinkModes::default());
        bytes[4..8].copy_from_slice(&0u32.to_ne_bytes());
        assert_eq!(parse_settings(&bytes).speed_bits_per_s, None);
        assert_eq!(parse_settings(&[]), LinkSettings::default());
    }

    #[test]
    fn masks_follow_each_other_at_the_length_that_was_agreed_on() {
        // A card for 10, 100 and 1000 Mbit/s (bits 0 to 3 and 5) that offers all of these, on a wall
        // socket that offers at most 100 Mbit/s.
        let mut bytes = [0u8; LINK_SETTINGS_BYTES + 3 * 8];
        bytes[AUTONEG_AT] = 1;
        bytes[MASK_WORDS_AT] = 2;
        for (place, modes) in [(0, 0b10_1111u32), (1, 0b10_1111), (2, 0b1111)] {
            let start = LINK_SETTINGS_BYTES + place * 8;
            bytes[start..start + 4].copy_from_slice(&modes.to_ne_bytes());
        }
        let settings = parse_settings(&bytes);
        assert!(settings.autoneg);
        assert_eq!(settings.supported.fastest_bits_per_s(), Some(1_000_000_000));
        assert_eq!(settings.advertised, settings.supported);
        assert_eq!(settings.partner.fastest_bits_per_s(), Some(100_000_000));
    }

    proptest! {
        #[test]
        fn no_settings_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse_settings(&bytes);
        }
    }

    #[test]
    fn a_device_that_is_not_there_is_not_found() {
        assert!(driver("no-such-dev").unwrap_err().not_found());
        assert!(driver("a-name-far-too-long").is_err());
    }
}
