//! Classes of classful queueing disciplines, and what htb's are configured to.

use netlink_packet_core::NlasIterator;
use netlink_packet_route::RouteNetlinkMessage;

use crate::psched::{Clock, RATE_SPEC_BYTES, RateSpec};
use crate::qdiscs::{QdiscStats, kind, message_for, option_bytes};
use crate::{Netlink, NetlinkError};

const TCA_HTB_PARMS: u16 = 1;
const TCA_HTB_RATE64: u16 = 6;
const TCA_HTB_CEIL64: u16 = 7;
/// `struct tc_htb_opt`: rate, ceil, buffer, cbuffer, quantum, level, prio.
const PARMS_BYTES: usize = 2 * RATE_SPEC_BYTES + 20;

/// One class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    /// Its handle: major number of its qdisc, minor of its own.
    pub handle: u32,
    /// Handle of the class above, or of the root.
    pub parent: u32,
    /// Kind of its qdisc.
    pub kind: String,
    /// Its parameters where the kind is "htb".
    pub htb: Option<HtbClass>,
    /// What it counted.
    pub stats: QdiscStats,
}

/// Parameters of one htb class (net/sched/sch_htb.c `htb_dump_class`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HtbClass {
    /// Rate it is assured of, bytes per second.
    pub rate_bytes_per_s: u64,
    /// Rate it may reach by borrowing, bytes per second.
    pub ceil_bytes_per_s: u64,
    /// Burst at its rate, bytes, to the kernel's step of 64 ns.
    pub burst_bytes: u32,
    /// Burst at its ceiling, bytes, to the kernel's step of 64 ns.
    pub cburst_bytes: u32,
    /// 0 for a leaf, through which packets really pass.
    pub level: u32,
}

impl Netlink {
    /// The classes of a link; empty where its qdisc has none.
    pub fn classes(&mut self, index: u32) -> Result<Vec<Class>, NetlinkError> {
        let operation = format!("list the traffic classes of link {index}");
        let message = message_for(&operation, index)?;
        let replies = self.dump(&operation, RouteNetlinkMessage::GetTrafficClass(message))?;
        Ok(replies.iter().filter_map(class).collect())
    }
}

impl HtbClass {
    fn parse(options: &[u8]) -> Option<Self> {
        let (mut parms, mut rate64, mut ceil64) = (None, None, None);
        for attribute in NlasIterator::new(options) {
            let attribute = attribute.ok()?;
            let value = attribute.value();
            match attribute.kind() {
                TCA_HTB_PARMS => parms = value.first_chunk::<PARMS_BYTES>().copied(),
                TCA_HTB_RATE64 => rate64 = value.first_chunk().map(|v| u64::from_ne_bytes(*v)),
                TCA_HTB_CEIL64 => ceil64 = value.first_chunk().map(|v| u64::from_ne_bytes(*v)),
                _ => {}
            }
        }
        let parms = parms?;
        let (rate_spec, rate32) = RateSpec::parse(parms.first_chunk()?);
        let (ceil_spec, ceil32) = RateSpec::parse(parms[RATE_SPEC_BYTES..].first_chunk()?);
        let word = |at: usize| parms[at..].first_chunk().map(|v| u32::from_ne_bytes(*v));
        let rate = rate64.unwrap_or(rate32.into());
        let ceil = ceil64.unwrap_or(ceil32.into());
        Some(Self {
            rate_bytes_per_s: rate,
            ceil_bytes_per_s: ceil,
            burst_bytes: Clock::new(rate, rate_spec)?.bytes(word(24)?),
            cburst_bytes: Clock::new(ceil, ceil_spec)?.bytes(word(28)?),
            level: word(36)?,
        })
    }
}

fn class(message: &RouteNetlinkMessage) -> Option<Class> {
    let RouteNetlinkMessage::NewTrafficClass(message) = message else { return None };
    let kind = kind(&message.attributes)?;
    let options = option_bytes(&message.attributes);
    Some(Class {
        handle: message.header.handle.into(),
        parent: message.header.parent.into(),
        htb: (kind == "htb").then(|| HtbClass::parse(&options)).flatten(),
        stats: QdiscStats::from_attributes(&message.attributes),
        kind,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read_by_their_offsets_and_short_ones_are_none() {
        let mut parms = RateSpec::default().emit(12_500_000).to_vec();
        parms.extend(RateSpec::default().emit(25_000_000));
        for word in [1600u32, 800, 0, 0, 3] {
            parms.extend(word.to_ne_bytes());
        }
        let mut options = vec![48, 0, 1, 0];
        options.extend(&parms);
        let htb = HtbClass::parse(&options).unwrap();
        assert_eq!((htb.rate_bytes_per_s, htb.ceil_bytes_per_s), (12_500_000, 25_000_000));
        assert_eq!((htb.burst_bytes, htb.cburst_bytes, htb.level), (1280, 1280, 0));
        for length in 0..options.len() {
            assert_eq!(HtbClass::parse(&options[..length]), None, "{length}");
        }
    }
}
