//! Classes of classful queueing disciplines, and the parameters of htb's.

use netlink_packet_core::{DefaultNla, NLM_F_CREATE, NLM_F_REPLACE};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::TcAttribute;

use crate::psched::{Clock, RATE_SPEC_BYTES, RateSpec};
use crate::qdiscs::{QdiscStats, TCA_OPTIONS, kind, message_for, option_bytes};
use crate::raw::attribute;
use crate::two_rates::{Kinds, TwoRates, rate64};
use crate::{Netlink, NetlinkError};

const TCA_HTB_PARMS: u16 = 1;
const TCA_HTB_RATE64: u16 = 6;
const TCA_HTB_CEIL64: u16 = 7;
const KINDS: Kinds =
    Kinds { parms: TCA_HTB_PARMS, first64: TCA_HTB_RATE64, second64: TCA_HTB_CEIL64 };
/// `struct tc_htb_opt`: rate, ceil, buffer, cbuffer, quantum, level, prio.
const PARMS_BYTES: usize = 2 * RATE_SPEC_BYTES + 20;

/// One class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    /// Its handle: the major number of its qdisc and its own minor number.
    pub handle: u32,
    /// Handle of the class above, or of the root.
    pub parent: u32,
    /// Kind of its qdisc.
    pub kind: String,
    /// Its parameters if the kind is "htb".
    pub htb: Option<HtbClass>,
    /// Its counters.
    pub stats: QdiscStats,
}

/// Parameters of one htb class (net/sched/sch_htb.c `htb_dump_class`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HtbClass {
    /// Guaranteed rate, bytes per second.
    pub rate_bytes_per_s: u64,
    /// Rate that it may reach by borrowing, bytes per second.
    pub ceil_bytes_per_s: u64,
    /// Burst at its rate, bytes, to the kernel's step of 64 ns.
    pub burst_bytes: u32,
    /// Burst at its ceiling, bytes, to the kernel's step of 64 ns.
    pub cburst_bytes: u32,
    /// 0 for a leaf; only leaves carry packets.
    pub level: u32,
    /// Bytes that a leaf sends before the next leaf of its priority has its turn; 0 lets the kernel
    /// choose.
    pub quantum: u32,
    /// Priority, 0 first.
    pub prio: u32,
    rate_spec: RateSpec,
    ceil_spec: RateSpec,
}

impl Netlink {
    /// The classes of a link; empty if its qdisc has none.
    pub fn classes(&mut self, index: u32) -> Result<Vec<Class>, NetlinkError> {
        let operation = format!("list the traffic classes of link {index}");
        let message = message_for(&operation, index)?;
        let replies = self.dump(&operation, RouteNetlinkMessage::GetTrafficClass(message))?;
        Ok(replies.iter().filter_map(class).collect())
    }

    /// Creates an htb class below `parent` of a link, or changes the class with the same handle, which
    /// keeps its counters and children.
    pub fn replace_htb_class(
        &mut self,
        index: u32,
        handle: u32,
        parent: u32,
        htb: &HtbClass,
    ) -> Result<(), NetlinkError> {
        let operation = format!("set class {} of link {index}", handle_text(handle));
        let mut message = message_for(&operation, index)?;
        message.header.handle = handle.into();
        message.header.parent = parent.into();
        message.attributes.push(TcAttribute::Kind("htb".into()));
        message.attributes.push(TcAttribute::Other(DefaultNla::new(TCA_OPTIONS, htb.emit())));
        let question = RouteNetlinkMessage::NewTrafficClass(message);
        self.request(&operation, question, NLM_F_CREATE | NLM_F_REPLACE).map(drop)
    }
}

/// A handle as tc(8) writes it: "1:a".
pub fn handle_text(handle: u32) -> String {
    format!("{:x}:{:x}", handle >> 16, handle & 0xffff)
}

impl HtbClass {
    /// A class that shapes to `rate`, and to `ceil` when it may borrow.
    pub fn new(
        rate_bytes_per_s: u64,
        ceil_bytes_per_s: u64,
        burst_bytes: u32,
        cburst_bytes: u32,
    ) -> Self {
        Self {
            rate_bytes_per_s,
            ceil_bytes_per_s,
            burst_bytes,
            cburst_bytes,
            level: 0,
            quantum: 0,
            prio: 0,
            rate_spec: RateSpec::default(),
            ceil_spec: RateSpec::default(),
        }
    }

    /// How lengths are counted at its rate.
    pub fn counting(&self) -> RateSpec {
        self.rate_spec
    }

    /// The same class as the kernel will report it once set, for verification.
    pub fn as_read_back(&self) -> Self {
        let round = |rate, spec, bytes| match Clock::new(rate, spec) {
            Some(clock) => clock.bytes(clock.ticks(bytes)),
            None => bytes,
        };
        Self {
            burst_bytes: round(self.rate_bytes_per_s, self.rate_spec, self.burst_bytes),
            cburst_bytes: round(self.ceil_bytes_per_s, self.ceil_spec, self.cburst_bytes),
            ..*self
        }
    }

    /// Writes the content of `TCA_OPTIONS`. The kernel takes bursts as times, in ticks.
    fn emit(&self) -> Vec<u8> {
        let ticks = |rate, spec, bytes| Clock::new(rate, spec).map_or(0, |c| c.ticks(bytes));
        let mut parms = self.rate_spec.emit(self.rate_bytes_per_s).to_vec();
        parms.extend(self.ceil_spec.emit(self.ceil_bytes_per_s));
        for word in [
            ticks(self.rate_bytes_per_s, self.rate_spec, self.burst_bytes),
            ticks(self.ceil_bytes_per_s, self.ceil_spec, self.cburst_bytes),
            self.quantum,
            self.level,
            self.prio,
        ] {
            parms.extend(word.to_ne_bytes());
        }
        let mut options = attribute(TCA_HTB_PARMS, &parms);
        options.extend(rate64(TCA_HTB_RATE64, self.rate_bytes_per_s));
        options.extend(rate64(TCA_HTB_CEIL64, self.ceil_bytes_per_s));
        options
    }

    fn parse(options: &[u8]) -> Option<Self> {
        let parms = TwoRates::<PARMS_BYTES>::parse(options, &KINDS)?;
        let ((rate, rate_spec), (ceil, ceil_spec)) = (parms.first, parms.second);
        Some(Self {
            rate_bytes_per_s: rate,
            ceil_bytes_per_s: ceil,
            burst_bytes: Clock::new(rate, rate_spec)?.bytes(parms.word(24)?),
            cburst_bytes: Clock::new(ceil, ceil_spec)?.bytes(parms.word(28)?),
            level: parms.word(36)?,
            quantum: parms.word(32)?,
            prio: parms.word(40)?,
            rate_spec,
            ceil_spec,
        })
    }
}

pub(crate) fn class(message: &RouteNetlinkMessage) -> Option<Class> {
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
    use crate::HtbRoot;
    use crate::Qdisc;
    use goodput_testing::in_namespace;

    #[test]
    fn the_default_class_is_read_and_short_options_are_none() {
        let mut options = vec![24, 0, 2, 0];
        for word in [3u32, 10, 0x20, 0, 7] {
            options.extend(word.to_ne_bytes());
        }
        let expected = HtbRoot { default_class: 0x20, direct_packets: 7 };
        assert_eq!(HtbRoot::parse(&options), Some(expected));
        for length in 0..options.len() {
            assert_eq!(HtbRoot::parse(&options[..length]), None, "{length}");
        }
    }

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
        assert_eq!(htb.emit(), options);
    }

    #[test]
    fn a_class_reads_back_as_it_was_set_and_is_changed_in_place() {
        in_namespace(|| {
            let mut netlink = Netlink::open().unwrap();
            netlink.create_veth("left", "right").unwrap();
            let index = netlink.link("left").unwrap().index;
            netlink.replace_qdisc(&Qdisc::root_htb(index, 0x1_0000, 0)).unwrap();
            for rate in [12_500_000, 125_000_000, 5_000_000_000] {
                let mut class = HtbClass::new(rate, 2 * rate, 65_000, 131_000);
                class.quantum = 60_000;
                netlink.replace_htb_class(index, 0x1_000a, 0x1_0000, &class).unwrap();
                let seen = netlink.classes(index).unwrap().remove(0);
                assert_eq!((seen.handle, handle_text(seen.handle)), (0x1_000a, "1:a".into()));
                assert_eq!(seen.htb, Some(class.as_read_back()));
                let again = seen.htb.unwrap();
                netlink.replace_htb_class(index, seen.handle, seen.parent, &again).unwrap();
                assert_eq!(netlink.classes(index).unwrap()[0].htb, seen.htb);
            }
        });
    }
}
