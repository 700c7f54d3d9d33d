//! The htb queueing discipline itself, above its classes (net/sched/sch_htb.c).

use netlink_packet_core::NlasIterator;

use crate::raw::attribute;

const TCA_HTB_INIT: u16 = 2;
/// `struct tc_htb_glob`: version, rate2quantum, default class, debug, direct packets.
const ROOT_BYTES: usize = 20;

/// Parameters and a counter of htb itself (net/sched/sch_htb.c `htb_dump`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HtbRoot {
    /// Minor number of the class for packets that no filter matches; 0 if such packets bypass htb.
    pub default_class: u32,
    /// Packets that bypassed it.
    pub direct_packets: u32,
}

/// The content of `TCA_OPTIONS` of a new htb: `TCA_HTB_INIT` with version 3, 10 for rate to quantum and the
/// minor number of the default class, as in tc(8).
pub(crate) fn htb_options(default_class: u32) -> Vec<u8> {
    let init = [3u32, 10, default_class, 0, 0].map(u32::to_ne_bytes);
    attribute(TCA_HTB_INIT, init.as_flattened())
}

impl HtbRoot {
    /// Reads the content of `TCA_OPTIONS`. `None` if the bytes are not htb's.
    pub fn parse(options: &[u8]) -> Option<Self> {
        let init = NlasIterator::new(options)
            .map_while(Result::ok)
            .find(|attribute| attribute.kind() == TCA_HTB_INIT)?;
        let init = init.value().first_chunk::<ROOT_BYTES>()?;
        let word = |at: usize| init[at..].first_chunk().map(|v| u32::from_ne_bytes(*v));
        Some(Self { default_class: word(8)?, direct_packets: word(16)? })
    }
}
