//! The common part of the options of tbf and of an htb class: parameters that begin with two rates, and a
//! separate attribute for each rate that exceeds their 32 bits (net/sched/sch_tbf.c `tbf_change`,
//! net/sched/sch_htb.c `htb_change_class`).

use netlink_packet_core::NlasIterator;

use crate::psched::{RATE_SPEC_BYTES, RateSpec};
use crate::raw;

/// Kinds of the attributes.
pub(crate) struct Kinds {
    pub parms: u16,
    pub first64: u16,
    pub second64: u16,
}

/// Parameters of `BYTES` bytes, as they were read.
pub(crate) struct TwoRates<const BYTES: usize> {
    parms: [u8; BYTES],
    /// The first rate, bytes per second, and how lengths are counted at it.
    pub first: (u64, RateSpec),
    /// The second rate, likewise.
    pub second: (u64, RateSpec),
}

impl<const BYTES: usize> TwoRates<BYTES> {
    /// Reads the content of `TCA_OPTIONS`. `None` if the parameters are incomplete.
    pub(crate) fn parse(options: &[u8], kinds: &Kinds) -> Option<Self> {
        let (mut parms, mut first64, mut second64) = (None, None, None);
        for attribute in NlasIterator::new(options) {
            let attribute = attribute.ok()?;
            let (kind, value) = (attribute.kind(), attribute.value());
            let rate = || value.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes));
            if kind == kinds.parms {
                parms = value.first_chunk().copied();
            } else if kind == kinds.first64 {
                first64 = rate();
            } else if kind == kinds.second64 {
                second64 = rate();
            }
        }
        let parms: [u8; BYTES] = parms?;
        let (first, first32) = RateSpec::parse(parms.first_chunk()?);
        let (second, second32) = RateSpec::parse(parms[RATE_SPEC_BYTES..].first_chunk()?);
        Some(Self {
            parms,
            first: (first64.unwrap_or(first32.into()), first),
            second: (second64.unwrap_or(second32.into()), second),
        })
    }

    /// The word of 32 bits at a byte of the parameters.
    pub(crate) fn word(&self, at: usize) -> Option<u32> {
        raw::word(&self.parms, at)
    }
}

/// The attribute of a rate in bytes per second that exceeds 32 bits; empty for other rates.
pub(crate) fn rate64(kind: u16, rate: u64) -> Vec<u8> {
    if rate > u32::MAX.into() { raw::attribute(kind, &rate.to_ne_bytes()) } else { Vec::new() }
}
