//! A network card in memory, for tests: a driver's answers to ethtool, with the side effects of the
//! kernel and real drivers. It answers for the rings, coalescing, pause frames, channels,
//! receive hash, header split and features of a device in a test namespace; everything else still goes to the kernel.
//!
//! Layouts and checks: include/uapi/linux/ethtool.h and net/ethtool/ioctl.c. The scripted card does what
//! drivers do. It rounds rings up to whole multiples (`ALIGN` in `i40e_set_ringparam`) and times down to the
//! steps of its timer (`ice_set_rc_coalesce` warns about this). A change of the channels recreates the queues,
//! with the driver's default hash table and times.

mod features;
mod split;

use std::cell::RefCell;
use std::io;

use crate::ethtool_ioctl::ask_kernel;
use crate::raw::RawMessage;
use crate::receive_table::default_receive_table;
use features::Features;
use split::Split;

/// `ETHTOOL_G*` and `ETHTOOL_S*` of the groups.
const GET_COALESCE: u32 = 0x0e;
const SET_COALESCE: u32 = 0x0f;
const GET_RINGS: u32 = 0x10;
const SET_RINGS: u32 = 0x11;
const GET_PAUSE: u32 = 0x12;
const SET_PAUSE: u32 = 0x13;
const GET_CHANNELS: u32 = 0x3c;
const SET_CHANNELS: u32 = 0x3d;
const GET_QUEUES: u32 = 0x2d;
const GET_HASH: u32 = 0x46;
const SET_HASH: u32 = 0x47;
const GET_NAMES: u32 = 0x1b;
const GET_NAME_COUNT: u32 = 0x37;
const GET_FEATURES: u32 = 0x3a;
const SET_FEATURES: u32 = 0x3b;

/// Positions of words in the structures, after the command.
const RING_MAXIMA: [(usize, usize); 4] = [(0, 4), (1, 5), (2, 6), (3, 7)];
const RINGS_NOW: [usize; 2] = [4, 7];
const USECS: [usize; 2] = [0, 4];
const ADAPTIVE_RX: usize = 9;
const COMBINED_MAX: usize = 3;
const COMBINED_NOW: usize = 7;

/// Ring sizes are rounded up to multiples of this many descriptors.
const RING_MULTIPLE: u32 = 32;
/// Step of the timer, microseconds.
const TIMER_US: u32 = 2;
/// `struct ethtool_rxfh` without its list, and offsets in it: the lengths of table and key, the function.
const HASH_BYTES: usize = 24;
const LENGTHS_AT: usize = 8;
const FUNCTION_AT: usize = 16;
/// Offset of the number of queues in `struct ethtool_rxnfc`.
const QUEUES_AT: usize = 8;
/// `ETH_RXFH_INDIR_NO_CHANGE`.
const TABLE_STAYS: u32 = u32::MAX;

/// The state of the card.
#[derive(Debug, Clone)]
pub struct Card {
    rings: [u32; 8],
    coalescing: [u32; 22],
    pause: [u32; 3],
    channels: [u32; 8],
    features: Features,
    split: Split,
    /// The queue of each remainder of the hash.
    pub table: Vec<u32>,
    /// The key of the hash.
    pub key: Vec<u8>,
    /// Whether an administrator has set the table (`IFF_RXFH_CONFIGURED`): the kernel then refuses to remove a
    /// channel that is in it.
    table_is_set: bool,
    /// Whether the driver is restarting the card, so that the kernel answers that there is no such device
    /// (`netif_device_present`).
    pub is_detached: bool,
}

impl Card {
    /// A card with this many combined queues, of at most 8: rings of 512 of 4096, 8 and 16 µs, pause frames both
    /// ways.
    pub fn with_queues(queues: u32) -> Self {
        let mut card = Self {
            rings: [4096, 0, 0, 4096, 512, 0, 0, 512],
            coalescing: [0; 22],
            pause: [0, 1, 1],
            channels: [0, 0, 1, 8, 0, 0, 1, queues],
            features: Features::usual(),
            split: Split::default(),
            table: Vec::new(),
            key: (0..40).map(|place: u8| place.wrapping_mul(7)).collect(),
            table_is_set: false,
            is_detached: false,
        };
        card.make_queues_anew();
        card
    }

    /// Whether somebody has set the table.
    pub fn table_is_set(&self) -> bool {
        self.table_is_set
    }

    /// What a driver sets up with its queues.
    fn make_queues_anew(&mut self) {
        self.table = default_receive_table(128, self.channels[COMBINED_NOW]);
        self.coalescing = [0; 22];
        (self.coalescing[USECS[0]], self.coalescing[USECS[1]]) = (8, 16);
        self.coalescing[ADAPTIVE_RX] = 1;
    }

    /// All its state, as a driver would report it.
    pub fn bytes(&self) -> Vec<u8> {
        let (features, split) = (self.features.words(), self.split.words());
        let groups = [&self.rings[..], &self.coalescing, &self.pause, &self.channels];
        let words = [&groups.concat()[..], &features, &split];
        let words =
            [words.concat(), self.table.clone()].concat().into_iter().flat_map(u32::to_ne_bytes);
        words.chain(self.key.iter().copied()).collect()
    }

    fn set_rings(&mut self, wanted: [u32; 8]) -> io::Result<()> {
        if RING_MAXIMA.iter().any(|(most, now)| wanted[*now] > self.rings[*most]) {
            return Err(invalid());
        }
        for place in RINGS_NOW {
            self.rings[place] = wanted[place].next_multiple_of(RING_MULTIPLE);
        }
        Ok(())
    }

    fn set_coalescing(&mut self, mut wanted: [u32; 22]) {
        for place in USECS {
            wanted[place] -= wanted[place] % TIMER_US;
        }
        self.coalescing = wanted;
    }

    fn set_channels(&mut self, wanted: [u32; 8]) -> io::Result<()> {
        let combined = wanted[COMBINED_NOW];
        let highest = self.table.iter().copied().max().unwrap_or(0);
        let others = wanted[4] + wanted[5] > 0;
        if others || !(1..=self.channels[COMBINED_MAX]).contains(&combined) {
            return Err(invalid());
        }
        if self.table_is_set && highest >= combined {
            return Err(invalid());
        }
        self.channels[COMBINED_NOW] = combined;
        self.make_queues_anew();
        Ok(())
    }

    fn write_queues(&self, data: &mut [u8]) -> io::Result<()> {
        let queues = u64::from(self.channels[COMBINED_NOW]).to_ne_bytes();
        data.get_mut(QUEUES_AT..QUEUES_AT + 8).ok_or_else(invalid)?.copy_from_slice(&queues);
        Ok(())
    }

    fn write_hash(&self, data: &mut [u8]) -> io::Result<()> {
        let asked = read_words::<2>(&data[LENGTHS_AT..])?;
        let table: Vec<u8> = self.table.iter().flat_map(|queue| queue.to_ne_bytes()).collect();
        let lengths = [self.table.len() as u32, self.key.len() as u32];
        data[LENGTHS_AT..][..8].copy_from_slice(lengths.map(u32::to_ne_bytes).as_flattened());
        data[FUNCTION_AT] = 1;
        if asked == [0, 0] {
            return Ok(());
        }
        let list = [table, self.key.clone()].concat();
        let room = data.get_mut(HASH_BYTES..HASH_BYTES + list.len()).ok_or_else(invalid)?;
        room.copy_from_slice(&list);
        Ok(())
    }

    fn set_hash(&mut self, data: &[u8]) -> io::Result<()> {
        let [table, key] = read_words::<2>(&data[LENGTHS_AT..])?;
        let list = data.get(HASH_BYTES..).ok_or_else(invalid)?;
        if table == 0 {
            self.table = default_receive_table(self.table.len(), self.channels[COMBINED_NOW]);
            self.table_is_set = false;
        } else if table != TABLE_STAYS {
            let words = list.get(..4 * table as usize).ok_or_else(invalid)?;
            let words: Vec<u32> =
                words.as_chunks().0.iter().map(|word| u32::from_ne_bytes(*word)).collect();
            let beyond = words.iter().any(|queue| *queue >= self.channels[COMBINED_NOW]);
            if beyond || words.len() != self.table.len() {
                return Err(invalid());
            }
            (self.table, self.table_is_set) = (words, true);
        }
        if key > 0 {
            let bytes = list.get(list.len() - key as usize..).ok_or_else(invalid)?;
            self.key = bytes.to_vec();
        }
        Ok(())
    }
}

thread_local! {
    /// The card of this thread, and the device that it serves.
    static CARD: RefCell<Option<(String, Card)>> = const { RefCell::new(None) };
}

/// Removes the card from its device when dropped.
#[derive(Debug)]
pub struct Installed(());

/// Makes `card` answer for `device`, for the calling thread. Its channels become queues of the device, which
/// must have as many.
pub fn install(device: &str, card: Card) -> Installed {
    CARD.with_borrow_mut(|place| *place = Some((device.to_owned(), card)));
    Installed(())
}

impl Installed {
    /// The state of the card now.
    pub fn card(&self) -> Card {
        self.change(|card| card.clone())
    }

    /// Changes the card as its firmware would.
    pub fn change<T>(&self, how: impl FnOnce(&mut Card) -> T) -> T {
        CARD.with_borrow_mut(|place| how(&mut place.as_mut().expect("it is installed").1))
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        CARD.with_borrow_mut(|place| *place = None);
    }
}

/// The card's answer for `device`; `None` if the kernel should answer.
pub(crate) fn answer(device: &str, command: u32, data: &mut [u8]) -> Option<io::Result<()>> {
    let answered = CARD.with_borrow_mut(|place| {
        let (_, card) = place.as_mut().filter(|(name, _)| name == device)?;
        card.answer(command, data)
    })?;
    if command != SET_CHANNELS || answered.is_err() {
        return Some(answered);
    }
    let queues = CARD.with_borrow(|place| place.as_ref().map(|(_, c)| c.channels[COMBINED_NOW]))?;
    Some(make_queues(device, queues))
}

/// The card's answer to what is wanted of the rings of `device` by netlink; `None` if the kernel should answer.
pub(crate) fn answer_rings(device: &str, wanted: &[u8]) -> Option<io::Result<RawMessage>> {
    CARD.with_borrow_mut(|place| {
        let (_, card) = place.as_mut().filter(|(name, _)| name == device)?;
        Some(if card.is_detached { Err(detached()) } else { card.split.answer(wanted) })
    })
}

impl Card {
    fn answer(&mut self, command: u32, data: &mut [u8]) -> Option<io::Result<()>> {
        if self.is_detached {
            return Some(Err(detached()));
        }
        Some(match command {
            GET_RINGS => write_words(&self.rings, data),
            GET_COALESCE => write_words(&self.coalescing, data),
            GET_PAUSE => write_words(&self.pause, data),
            GET_CHANNELS => write_words(&self.channels, data),
            GET_QUEUES => self.write_queues(data),
            GET_HASH => self.write_hash(data),
            SET_RINGS => read_words(&data[4..]).and_then(|words| self.set_rings(words)),
            SET_COALESCE => read_words(&data[4..]).map(|words| self.set_coalescing(words)),
            SET_PAUSE => read_words(&data[4..]).map(|words| self.pause = words),
            SET_CHANNELS => read_words(&data[4..]).and_then(|words| self.set_channels(words)),
            SET_HASH => self.set_hash(data),
            GET_NAME_COUNT => return Features::write_count(data),
            GET_NAMES => return Features::write_names(data),
            GET_FEATURES => self.features.write(data),
            SET_FEATURES => self.features.set(data),
            _ => return None,
        })
    }
}

/// Gives the real device the same number of queues, so that files of removed queues disappear as with a real card.
fn make_queues(device: &str, queues: u32) -> io::Result<()> {
    let words = [SET_CHANNELS, 0, 0, 0, 0, queues, queues, 0, 0].map(u32::to_ne_bytes);
    let operation = format!("make {queues} queues of {device}");
    let asked = ask_kernel(&operation, device, SET_CHANNELS, &mut words.concat());
    asked.map_err(|error| io::Error::other(error.to_string()))
}

fn write_words<const N: usize>(words: &[u32; N], data: &mut [u8]) -> io::Result<()> {
    let room = data.get_mut(4..4 + 4 * N).ok_or_else(invalid)?;
    room.copy_from_slice(words.map(u32::to_ne_bytes).as_flattened());
    Ok(())
}

fn read_words<const N: usize>(bytes: &[u8]) -> io::Result<[u32; N]> {
    let words = bytes.as_chunks::<4>().0.first_chunk::<N>().ok_or_else(invalid)?;
    Ok(words.map(u32::from_ne_bytes))
}

/// What the kernel answers for a driver that restarts its card.
fn detached() -> io::Error {
    io::Error::from_raw_os_error(libc::ENODEV)
}

fn invalid() -> io::Error {
    io::Error::from_raw_os_error(libc::EINVAL)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::{Parameter, get_parameter, rings, set_parameter};
    use crate::receive_hash::{HashPart, receive_hash, set_receive_hash};
    use crate::{Offload, get_offload, set_offload};

    #[test]
    fn a_card_rounds_and_refuses_as_drivers_and_the_kernel_do() {
        let card = install("card0", Card::with_queues(4));
        set_parameter("card0", Parameter::RingRx, 1000).unwrap();
        assert_eq!(rings("card0").unwrap().rx, 1024);
        assert!(set_parameter("card0", Parameter::RingRx, 4097).is_err());
        set_parameter("card0", Parameter::CoalesceRxUs, 51).unwrap();
        assert_eq!(get_parameter("card0", Parameter::CoalesceRxUs).unwrap(), 50);
        let five = 5u32.to_ne_bytes().repeat(128);
        assert!(set_receive_hash("card0", HashPart::Table, &five).is_err(), "it has four queues");
        set_receive_hash("card0", HashPart::Key, &[9; 40]).unwrap();
        let hash = receive_hash("card0").unwrap();
        assert_eq!((hash.key, hash.table), (vec![9; 40], card.card().table));
        drop(card);
        assert!(rings("card0").unwrap_err().not_found());
    }

    #[test]
    fn one_feature_of_a_card_keeps_another_from_taking_effect() {
        let _card = install("card0", Card::with_queues(4));
        let on = |offload| get_offload("card0", offload).unwrap();
        assert!(on(Offload::Lro) && on(Offload::Tso) && !on(Offload::GroHardware));
        set_offload("card0", Offload::GroHardware, true).unwrap();
        assert!(on(Offload::GroHardware) && !on(Offload::Lro), "either joins, not both");
        set_offload("card0", Offload::RxChecksum, false).unwrap();
        assert!(!on(Offload::GroHardware) && on(Offload::Lro));
        set_offload("card0", Offload::ScatterGather, false).unwrap();
        assert!(!on(Offload::Tso) && on(Offload::RxHash));
    }
}
