//! How the scripted card separates headers from payload, as rings.c of net/ethtool and a driver do.

use std::io;

use super::invalid;
use crate::generic::{message, number};
use crate::raw::{RawMessage, attribute, attributes};

/// `ETHTOOL_A_RINGS_*`.
const TCP_DATA_SPLIT: u16 = 11;
const HDS_THRESH: u16 = 17;
const HDS_THRESH_MAX: u16 = 18;
/// `ETHTOOL_TCP_DATA_SPLIT_ENABLED`; one less is off.
const ENABLED: u8 = 2;
/// The largest threshold of the card, bytes: `BNXT_HDS_THRESHOLD_MAX` of bnxt_en.
const MOST: u32 = 1023;

/// The state of the card.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Split {
    on: bool,
    threshold: u32,
}

impl Split {
    /// What a driver would report.
    pub(super) fn words(self) -> [u32; 2] {
        [self.on.into(), self.threshold]
    }

    /// Takes what is wanted, and answers with the state.
    pub(super) fn answer(&mut self, wanted: &[u8]) -> io::Result<RawMessage> {
        for (kind, value) in attributes(wanted) {
            match (kind, number(value)) {
                (TCP_DATA_SPLIT, Some(value)) => self.on = value == u64::from(ENABLED),
                (HDS_THRESH, Some(value)) if value <= u64::from(MOST) => {
                    self.threshold = value as u32;
                }
                _ => return Err(invalid()),
            }
        }
        let state = [
            attribute(TCP_DATA_SPLIT, &[if self.on { ENABLED } else { ENABLED - 1 }]),
            attribute(HDS_THRESH, &self.threshold.to_ne_bytes()),
            attribute(HDS_THRESH_MAX, &MOST.to_ne_bytes()),
        ];
        Ok(message(0, 0, &state.concat()))
    }
}
