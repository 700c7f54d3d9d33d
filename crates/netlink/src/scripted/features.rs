//! The features of the scripted card, with those that the kernel or a driver drops if another one is missing or on.

use std::io;

use super::{invalid, read_words};

/// The features, by their names in the kernel.
const NAMES: [&str; 8] = [
    "rx-checksum",
    "rx-gro",
    "rx-lro",
    "rx-gro-hw",
    "rx-hashing",
    "tx-scatter-gather",
    "tx-tcp-segmentation",
    "rx-ntuple-filter",
];
const RX_CHECKSUM: u32 = 1 << 0;
const LRO: u32 = 1 << 2;
const GRO_HARDWARE: u32 = 1 << 3;
const SCATTER_GATHER: u32 = 1 << 5;
const TSO: u32 = 1 << 6;
const ALL: u32 = (1 << NAMES.len()) - 1;

/// `ETH_SS_FEATURES`.
const SET: u32 = 4;
const NAME_BYTES: usize = 32;

/// The features that somebody has requested.
#[derive(Debug, Clone)]
pub(super) struct Features {
    requested: u32,
}

impl Features {
    /// All but receiving in the device what the stack would join.
    pub(super) fn usual() -> Self {
        Self { requested: ALL & !GRO_HARDWARE }
    }

    /// What a driver would report.
    pub(super) fn words(&self) -> [u32; 2] {
        [self.requested, self.active()]
    }

    /// What of the requested ones takes effect (`netdev_fix_features`, net/core/dev.c; `bnxt_fix_features`).
    fn active(&self) -> u32 {
        let mut active = self.requested;
        let mut without = |missing: bool, dropped: u32| {
            if missing {
                active &= !dropped;
            }
        };
        without(self.requested & SCATTER_GATHER == 0, TSO);
        without(self.requested & RX_CHECKSUM == 0, GRO_HARDWARE);
        without(self.requested & (RX_CHECKSUM | GRO_HARDWARE) == RX_CHECKSUM | GRO_HARDWARE, LRO);
        active
    }

    /// `struct ethtool_sset_info`; `None` if it asks for other names.
    pub(super) fn write_count(data: &mut [u8]) -> Option<io::Result<()>> {
        let asked = data.get(8..16)?.first_chunk().map(|mask| u64::from_ne_bytes(*mask))?;
        if asked != 1 << SET {
            return None;
        }
        data.get_mut(16..20)?.copy_from_slice(&(NAMES.len() as u32).to_ne_bytes());
        Some(Ok(()))
    }

    /// `struct ethtool_gstrings`; `None` if it asks for other names.
    pub(super) fn write_names(data: &mut [u8]) -> Option<io::Result<()>> {
        let [set] = read_words(data.get(4..)?).ok()?;
        if set != SET {
            return None;
        }
        for (room, name) in data.get_mut(12..)?.chunks_exact_mut(NAME_BYTES).zip(NAMES) {
            room[..name.len()].copy_from_slice(name.as_bytes());
        }
        Some(Ok(()))
    }

    /// `struct ethtool_gfeatures` of one block: available, requested, active, never changed.
    pub(super) fn write(&self, data: &mut [u8]) -> io::Result<()> {
        let block = [ALL, self.requested, self.active(), 0].map(u32::to_ne_bytes);
        data.get_mut(8..24).ok_or_else(invalid)?.copy_from_slice(block.as_flattened());
        Ok(())
    }

    /// `struct ethtool_sfeatures` of one block: which ones, and which of these are to be on.
    pub(super) fn set(&mut self, data: &[u8]) -> io::Result<()> {
        let [which, on] = read_words(data.get(8..).ok_or_else(invalid)?)?;
        self.requested = self.requested & !which | on & which;
        Ok(())
    }
}
