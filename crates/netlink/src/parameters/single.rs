//! One parameter of a device among rings, channels, coalescing and pause frames: reads it, or changes
//! it without changing the other fields of its structure (include/uapi/linux/ethtool.h).

use super::{ETHTOOL_GCHANNELS, ETHTOOL_GCOALESCE, ETHTOOL_GPAUSEPARAM, ETHTOOL_GRINGPARAM};
use crate::NetlinkError;
use crate::ethtool::call;

/// Most words in any of these structures.
const MAX_WORDS: usize = 23;

/// One parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parameter {
    /// Receive descriptors of each queue.
    RingRx,
    /// Transmit descriptors of each queue.
    RingTx,
    /// Channels that only receive.
    ChannelsRx,
    /// Channels that only send.
    ChannelsTx,
    /// Channels that do both.
    ChannelsCombined,
    /// Longest wait after a frame was received before an interrupt, microseconds.
    CoalesceRxUs,
    /// Longest wait after a frame was sent before an interrupt, microseconds.
    CoalesceTxUs,
    /// Whether the driver adapts the receive side to the traffic: 0 or 1.
    CoalesceAdaptiveRx,
    /// Whether this end heeds pause frames: 0 or 1.
    PauseRx,
    /// Whether this end sends pause frames: 0 or 1.
    PauseTx,
}

/// Parameters that are read and written together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// The number of queues.
    Channels,
    /// The number of descriptors.
    Rings,
    /// How long the device waits before it interrupts.
    Coalescing,
    /// Whether pause frames are used.
    Pause,
}

impl Group {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Channels, Self::Rings, Self::Coalescing, Self::Pause];

    fn in_words(self) -> &'static str {
        match self {
            Self::Channels => "the channels",
            Self::Rings => "the rings",
            Self::Coalescing => "the coalescing",
            Self::Pause => "the pause frames",
        }
    }

    fn of(self) -> Parameter {
        match self {
            Self::Channels => Parameter::ChannelsRx,
            Self::Rings => Parameter::RingRx,
            Self::Coalescing => Parameter::CoalesceRxUs,
            Self::Pause => Parameter::PauseRx,
        }
    }
}

/// All words of a group after its command, as the driver reports them.
pub fn get_group(device: &str, group: Group) -> Result<Vec<u32>, NetlinkError> {
    let words = read(device, group.of(), &group.of().place())?;
    Ok(words.iter().skip(1).map(|word| u32::from_ne_bytes(*word)).collect())
}

/// Writes all words of a group as [`get_group`] reported them.
pub fn set_group(device: &str, group: Group, words: &[u32]) -> Result<(), NetlinkError> {
    let place = group.of().place();
    let mut data = vec![[0u8; 4]; place.words];
    for (to, from) in data.iter_mut().skip(1).zip(words) {
        *to = from.to_ne_bytes();
    }
    let operation = format!("set {} of {device}", group.in_words());
    call(&operation, device, place.set, data.as_flattened_mut())
}

/// The location of a parameter: the commands that get and set its structure, the structure's length in words,
/// and the index of the parameter's word.
struct Place {
    get: u32,
    set: u32,
    words: usize,
    word: usize,
}

impl Parameter {
    /// What it is, for a message.
    fn in_words(self) -> &'static str {
        match self {
            Self::RingRx => "the receive ring",
            Self::RingTx => "the transmit ring",
            Self::ChannelsRx => "the receive channels",
            Self::ChannelsTx => "the transmit channels",
            Self::ChannelsCombined => "the combined channels",
            Self::CoalesceRxUs => "the receive coalescing time",
            Self::CoalesceTxUs => "the transmit coalescing time",
            Self::CoalesceAdaptiveRx => "the adaptive receive coalescing",
            Self::PauseRx => "the received pause frames",
            Self::PauseTx => "the sent pause frames",
        }
    }

    fn place(self) -> Place {
        let (get, words, word) = match self {
            Self::RingRx => (ETHTOOL_GRINGPARAM, 9, 5),
            Self::RingTx => (ETHTOOL_GRINGPARAM, 9, 8),
            Self::ChannelsRx => (ETHTOOL_GCHANNELS, 9, 5),
            Self::ChannelsTx => (ETHTOOL_GCHANNELS, 9, 6),
            Self::ChannelsCombined => (ETHTOOL_GCHANNELS, 9, 8),
            Self::CoalesceRxUs => (ETHTOOL_GCOALESCE, MAX_WORDS, 1),
            Self::CoalesceTxUs => (ETHTOOL_GCOALESCE, MAX_WORDS, 5),
            Self::CoalesceAdaptiveRx => (ETHTOOL_GCOALESCE, MAX_WORDS, 10),
            Self::PauseRx => (ETHTOOL_GPAUSEPARAM, 4, 2),
            Self::PauseTx => (ETHTOOL_GPAUSEPARAM, 4, 3),
        };
        // Each is set by the next command: ETHTOOL_SRINGPARAM and so on.
        Place { get, set: get + 1, words, word }
    }
}

/// The value of `parameter` of `device` in the calling thread's namespace. A device without it
/// refuses with EOPNOTSUPP.
pub fn get_parameter(device: &str, parameter: Parameter) -> Result<u32, NetlinkError> {
    let place = parameter.place();
    let words = read(device, parameter, &place)?;
    Ok(u32::from_ne_bytes(words[place.word]))
}

/// Changes `parameter` of `device`. Drivers may round it: read it afterwards.
pub fn set_parameter(device: &str, parameter: Parameter, value: u32) -> Result<(), NetlinkError> {
    let place = parameter.place();
    let mut words = read(device, parameter, &place)?;
    with(&mut words, &place, value);
    let operation = format!("set {} of {device} to {value}", parameter.in_words());
    call(&operation, device, place.set, words.as_flattened_mut())
}

fn read(device: &str, parameter: Parameter, place: &Place) -> Result<Vec<[u8; 4]>, NetlinkError> {
    let mut words = vec![[0u8; 4]; place.words];
    let operation = format!("read {} of {device}", parameter.in_words());
    call(&operation, device, place.get, words.as_flattened_mut())?;
    Ok(words)
}

fn with(words: &mut [[u8; 4]], place: &Place, value: u32) {
    words[place.word] = value.to_ne_bytes();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Netlink;
    use crate::parameters::channels;
    use goodput_testing::in_namespace;

    /// `struct ethtool_ringparam` of a card with at most 4096 of each and 256 now.
    const RINGS: [u32; 9] = [0x10, 4096, 0, 0, 4096, 256, 0, 0, 256];
    /// `struct ethtool_pauseparam`: negotiated, both ways.
    const PAUSE: [u32; 4] = [0x12, 1, 1, 1];

    fn changed<const N: usize>(from: [u32; N], parameter: Parameter, value: u32) -> Vec<u32> {
        let mut words = from.map(u32::to_ne_bytes);
        with(&mut words, &parameter.place(), value);
        words.map(u32::from_ne_bytes).to_vec()
    }

    #[test]
    fn one_word_changes_and_the_others_go_back_as_they_came() {
        assert_eq!(
            changed(RINGS, Parameter::RingRx, 4096),
            [0x10, 4096, 0, 0, 4096, 4096, 0, 0, 256]
        );
        assert_eq!(
            changed(RINGS, Parameter::RingTx, 512),
            [0x10, 4096, 0, 0, 4096, 256, 0, 0, 512]
        );
        assert_eq!(changed(PAUSE, Parameter::PauseRx, 0), [0x12, 1, 0, 1]);
        assert_eq!(changed(PAUSE, Parameter::PauseTx, 0), [0x12, 1, 1, 0]);
        let coalescing: [u32; 23] = std::array::from_fn(|place| place as u32);
        let words = changed(coalescing, Parameter::CoalesceAdaptiveRx, 1);
        assert_eq!((words[9], words[10], words[11]), (9, 1, 11));
    }

    #[test]
    fn commands_are_those_of_the_header() {
        let commands = |parameter: Parameter| (parameter.place().get, parameter.place().set);
        assert_eq!(commands(Parameter::RingRx), (0x10, 0x11));
        assert_eq!(commands(Parameter::ChannelsCombined), (0x3c, 0x3d));
        assert_eq!(commands(Parameter::CoalesceRxUs), (0x0e, 0x0f));
        assert_eq!(commands(Parameter::PauseTx), (0x12, 0x13));
    }

    #[test]
    fn the_channels_of_a_veth_change_one_by_one() {
        in_namespace(|| {
            Netlink::open().unwrap().create_veth_with_queues("left", "right", 4).unwrap();
            for (rx, tx) in [(1, 1), (3, 1), (3, 2), (1, 4)] {
                set_parameter("left", Parameter::ChannelsRx, rx).unwrap();
                set_parameter("left", Parameter::ChannelsTx, tx).unwrap();
                let seen = channels("left").unwrap();
                assert_eq!((seen.rx, seen.tx), (rx, tx));
                assert_eq!(get_parameter("left", Parameter::ChannelsRx).unwrap(), rx);
            }
            assert!(set_parameter("left", Parameter::ChannelsRx, 5).is_err());
        });
    }

    #[test]
    fn what_a_veth_does_not_have_is_not_supported() {
        in_namespace(|| {
            Netlink::open().unwrap().create_veth("left", "right").unwrap();
            for parameter in [Parameter::RingRx, Parameter::CoalesceRxUs, Parameter::PauseTx] {
                assert!(get_parameter("left", parameter).unwrap_err().not_supported());
                assert!(set_parameter("left", parameter, 1).unwrap_err().not_supported());
            }
        });
    }
}
