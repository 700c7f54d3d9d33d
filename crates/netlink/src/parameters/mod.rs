//! Device parameters in structures of words: rings, channels, coalescing and pause
//! frames (include/uapi/linux/ethtool.h). A device without them refuses with EOPNOTSUPP.

mod single;

use crate::NetlinkError;
use crate::ethtool::call;
pub use single::{Group, Parameter, get_group, get_parameter, set_group, set_parameter};

const ETHTOOL_GCOALESCE: u32 = 0x0e;
const ETHTOOL_GRINGPARAM: u32 = 0x10;
const ETHTOOL_GPAUSEPARAM: u32 = 0x12;
const ETHTOOL_GCHANNELS: u32 = 0x3c;

/// Rings of descriptors (`struct ethtool_ringparam`). 0 if a ring's size can't be set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rings {
    /// Receive descriptors of each queue.
    pub rx: u32,
    /// The most that the device supports.
    pub rx_max: u32,
    /// Transmit descriptors of each queue.
    pub tx: u32,
    /// The most that the device supports.
    pub tx_max: u32,
}

/// Queues with their own interrupt (`struct ethtool_channels`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Channels {
    /// Channels that only receive.
    pub rx: u32,
    /// The most of them.
    pub rx_max: u32,
    /// Channels that only send.
    pub tx: u32,
    /// The most of them.
    pub tx_max: u32,
    /// Channels that do both.
    pub combined: u32,
    /// The most of them.
    pub combined_max: u32,
}

/// How long the device waits, and for how many frames, before it interrupts
/// (`struct ethtool_coalesce`). A driver also reports 0 for a parameter that it doesn't have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Coalescing {
    /// Longest wait after a frame was received, microseconds.
    pub rx_us: u32,
    /// Most received frames for one interrupt.
    pub rx_frames: u32,
    /// Longest wait after a frame was sent, microseconds.
    pub tx_us: u32,
    /// Most sent frames for one interrupt.
    pub tx_frames: u32,
    /// Whether the driver adapts the receive side to the traffic.
    pub adaptive_rx: bool,
    /// Whether the driver adapts the send side to the traffic.
    pub adaptive_tx: bool,
}

/// Whether pause frames are used (`struct ethtool_pauseparam`; IEEE 802.3 annex 31B).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pause {
    /// Whether the two ends of the link agree on pause frames by autonegotiation.
    pub autoneg: bool,
    /// Whether this end heeds pause frames.
    pub rx: bool,
    /// Whether this end sends pause frames.
    pub tx: bool,
}

/// The rings of `device`.
pub fn rings(device: &str) -> Result<Rings, NetlinkError> {
    let words = words(&format!("read the rings of {device}"), device, ETHTOOL_GRINGPARAM)?;
    Ok(parse_rings(words))
}

/// The channels of `device`.
pub fn channels(device: &str) -> Result<Channels, NetlinkError> {
    let words = words(&format!("read the channels of {device}"), device, ETHTOOL_GCHANNELS)?;
    Ok(parse_channels(words))
}

/// The interrupt coalescing of `device`.
pub fn coalescing(device: &str) -> Result<Coalescing, NetlinkError> {
    let operation = format!("read the interrupt coalescing of {device}");
    Ok(parse_coalescing(words(&operation, device, ETHTOOL_GCOALESCE)?))
}

/// The use of pause frames by `device`.
pub fn pause(device: &str) -> Result<Pause, NetlinkError> {
    let words = words(&format!("read the pause frames of {device}"), device, ETHTOOL_GPAUSEPARAM)?;
    Ok(parse_pause(words))
}

/// The `N` words of a structure that starts with the command.
fn words<const N: usize>(
    operation: &str,
    device: &str,
    command: u32,
) -> Result<[u32; N], NetlinkError> {
    let mut words = [[0u8; 4]; N];
    call(operation, device, command, words.as_flattened_mut())?;
    Ok(words.map(u32::from_ne_bytes))
}

fn parse_rings(words: [u32; 9]) -> Rings {
    let [_command, rx_max, _mini_max, _jumbo_max, tx_max, rx, _mini, _jumbo, tx] = words;
    Rings { rx, rx_max, tx, tx_max }
}

fn parse_channels(words: [u32; 9]) -> Channels {
    let [_command, rx_max, tx_max, _other_max, combined_max, rx, tx, _other, combined] = words;
    Channels { rx, rx_max, tx, tx_max, combined, combined_max }
}

fn parse_coalescing(words: [u32; 23]) -> Coalescing {
    Coalescing {
        rx_us: words[1],
        rx_frames: words[2],
        tx_us: words[5],
        tx_frames: words[6],
        adaptive_rx: words[10] != 0,
        adaptive_tx: words[11] != 0,
    }
}

fn parse_pause(words: [u32; 4]) -> Pause {
    let [_command, autoneg, rx, tx] = words.map(|word| word != 0);
    Pause { autoneg, rx, tx }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Netlink;
    use goodput_testing::in_namespace;

    /// Each word holds its own index in the structure of the header.
    fn places<const N: usize>() -> [u32; N] {
        std::array::from_fn(|place| place as u32)
    }

    #[test]
    fn words_are_taken_from_their_places_in_the_c_structures() {
        assert_eq!(parse_rings(places()), Rings { rx: 5, rx_max: 1, tx: 8, tx_max: 4 });
        let channels =
            Channels { rx: 5, rx_max: 1, tx: 6, tx_max: 2, combined: 8, combined_max: 4 };
        assert_eq!(parse_channels(places()), channels);
        let coalescing = parse_coalescing(places());
        assert_eq!((coalescing.rx_us, coalescing.rx_frames), (1, 2));
        assert_eq!((coalescing.tx_us, coalescing.tx_frames), (5, 6));
        assert!(coalescing.adaptive_rx && coalescing.adaptive_tx);
        assert_eq!(parse_pause([3, 1, 0, 1]), Pause { autoneg: true, rx: false, tx: true });
    }

    #[test]
    fn a_veth_has_channels_and_nothing_to_size_wait_or_pause() {
        in_namespace(|| {
            Netlink::open().unwrap().create_veth("left", "right").unwrap();
            let channels = channels("left").unwrap();
            assert!(channels.rx >= 1 && channels.tx >= 1 && channels.rx <= channels.rx_max);
            assert!(rings("left").unwrap_err().not_supported());
            assert!(coalescing("left").unwrap_err().not_supported());
            assert!(pause("left").unwrap_err().not_supported());
        });
    }

    #[test]
    fn the_loopback_device_has_none_of_it() {
        in_namespace(|| {
            assert!(rings("lo").unwrap_err().not_supported());
            assert!(channels("lo").unwrap_err().not_supported());
            assert!(rings("absent").unwrap_err().not_found());
        });
    }
}
