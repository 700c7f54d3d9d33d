//! The ethtool ioctl (`SIOCETHTOOL`, include/uapi/linux/ethtool.h): driver, speed and duplex.
//!
//! The ioctl rather than the netlink family, because every kernel and every driver answers it.

use std::os::fd::AsRawFd;

use rustix::net::{AddressFamily, SocketType};

use crate::NetlinkError;

const ETHTOOL_GDRVINFO: u32 = 0x03;
const ETHTOOL_GLINKSETTINGS: u32 = 0x4c;
/// `struct ethtool_drvinfo`; the driver's name is 32 bytes behind the command.
const DRIVER_INFO_BYTES: usize = 196;
/// `struct ethtool_link_settings` without its link mode masks.
const LINK_SETTINGS_BYTES: usize = 48;
/// Offset of `link_mode_masks_nwords` in it.
const MASK_WORDS_AT: usize = 15;
/// Most words a mask can have, as the count is a signed byte.
const MASK_BYTES: usize = 3 * 127 * 4;
/// More than the kernel writes for any command here; the longest reply is the names of the
/// features, 32 bytes each.
const ROOM_BYTES: usize = 64 * 1024;
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

/// What the driver says of a link. Virtual devices invent it: every veth says 10 Gbit/s.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkSettings {
    /// Speed, bits per second; `None` where the driver does not know.
    pub speed_bits_per_s: Option<u64>,
    /// Duplex; `None` where the driver does not know.
    pub duplex: Option<Duplex>,
}

/// Name of the driver of `device`; `None` where it has none to tell.
pub fn driver(device: &str) -> Result<Option<String>, NetlinkError> {
    let mut info = [0u8; DRIVER_INFO_BYTES];
    let operation = format!("read the driver of {device}");
    call(&operation, device, ETHTOOL_GDRVINFO, &mut info)?;
    let name: Vec<u8> = info[4..36].iter().copied().take_while(|byte| *byte != 0).collect();
    let name = String::from_utf8_lossy(&name).into_owned();
    Ok((!name.is_empty()).then_some(name))
}

/// Speed and duplex of `device`, as far as its driver knows them.
pub fn link_settings(device: &str) -> Result<LinkSettings, NetlinkError> {
    let operation = format!("read the speed of {device}");
    let mut settings = [0u8; LINK_SETTINGS_BYTES + MASK_BYTES];
    // The first call only agrees on the length of the masks: the kernel answers with its own,
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

fn parse_settings(settings: &[u8]) -> LinkSettings {
    let speed = settings.get(4..8).and_then(|bytes| bytes.first_chunk()).copied();
    let speed = speed.map(u32::from_ne_bytes).filter(|mbit| ![0, SPEED_UNKNOWN].contains(mbit));
    let duplex = match settings.get(8) {
        Some(0) => Some(Duplex::Half),
        Some(1) => Some(Duplex::Full),
        _ => None,
    };
    LinkSettings { speed_bits_per_s: speed.map(|mbit| u64::from(mbit) * 1_000_000), duplex }
}

/// `struct ethtool_value`: one command, one word.
pub(crate) fn get_word(operation: &str, device: &str, command: u32) -> Result<u32, NetlinkError> {
    let mut value = [0u8; 8];
    call(operation, device, command, &mut value)?;
    Ok(u32::from_ne_bytes([value[4], value[5], value[6], value[7]]))
}

/// `struct ethtool_value`: one command, one word.
pub(crate) fn set_word(
    operation: &str,
    device: &str,
    command: u32,
    word: u32,
) -> Result<(), NetlinkError> {
    let mut value = [0u8; 8];
    value[4..].copy_from_slice(&word.to_ne_bytes());
    call(operation, device, command, &mut value)
}

/// One ioctl on `device` of the calling thread's namespace. `data` is the command's structure; its
/// first word becomes the command. What the kernel writes beyond its end is lost.
#[expect(unsafe_code, reason = "no library covers SIOCETHTOOL")]
pub(crate) fn call(
    operation: &str,
    device: &str,
    command: u32,
    data: &mut [u8],
) -> Result<(), NetlinkError> {
    let refused = |cause: std::io::Error| NetlinkError::refused(operation, cause);
    let mut room = vec![0u8; ROOM_BYTES.max(data.len())];
    room[..data.len()].copy_from_slice(data);
    room[..4].copy_from_slice(&command.to_ne_bytes());
    let mut request = libc::ifreq {
        ifr_name: device_name(operation, device)?,
        ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_data: room.as_mut_ptr().cast() },
    };
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None)
        .map_err(|cause| refused(cause.into()))?;
    // SAFETY: `request` and `room`, at which it points, live through the call, and the kernel
    // writes less than ROOM_BYTES for every command that this crate has.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &mut request) };
    if result < 0 {
        return Err(refused(std::io::Error::last_os_error()));
    }
    data.copy_from_slice(&room[..data.len()]);
    Ok(())
}

fn device_name(
    operation: &str,
    device: &str,
) -> Result<[libc::c_char; libc::IFNAMSIZ], NetlinkError> {
    let mut name = [0; libc::IFNAMSIZ];
    if device.is_empty() || device.len() >= name.len() || device.contains('\0') {
        let why = "a device name has 1 to 15 characters";
        return Err(NetlinkError::impossible(operation, why));
    }
    for (to, from) in name.iter_mut().zip(device.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Netlink;
    use crate::namespace::tests::in_test_namespace;

    #[test]
    fn a_veth_names_its_driver_and_invents_a_speed() {
        in_test_namespace("a_veth_names_its_driver_and_invents_a_speed", || {
            Netlink::open().unwrap().create_veth("left", "right").unwrap();
            assert_eq!(driver("left").unwrap().as_deref(), Some("veth"));
            let settings = link_settings("left").unwrap();
            assert_eq!(settings.speed_bits_per_s, Some(10_000_000_000));
            assert_eq!(settings.duplex, Some(Duplex::Full));
        });
    }

    #[test]
    fn an_unknown_speed_is_none() {
        let mut bytes = [0xff; LINK_SETTINGS_BYTES];
        assert_eq!(parse_settings(&bytes), LinkSettings::default());
        bytes[4..8].copy_from_slice(&0u32.to_ne_bytes());
        assert_eq!(parse_settings(&bytes).speed_bits_per_s, None);
        assert_eq!(parse_settings(&[]), LinkSettings::default());
    }

    #[test]
    fn a_device_that_is_not_there_is_not_found() {
        assert!(driver("no-such-dev").unwrap_err().not_found());
        assert!(driver("a-name-far-too-long").is_err());
    }
}
