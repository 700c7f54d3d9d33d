//! Queueing disciplines: reading, setting and deleting them.

use netlink_packet_core::{DefaultNla, Emitable, NLM_F_CREATE, NLM_F_REPLACE, Nla};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcMessage, TcOption, TcStats2};

use crate::htb_root::htb_options;
use crate::rounded_times::written_for;
use crate::{Netlink, NetlinkError, Tbf};

pub(crate) const TCA_OPTIONS: u16 = 2;
/// `TCA_STATS_PKT64`: the packet count if 32 bits are not enough.
const TCA_STATS_PKT64: u16 = 8;

/// One queueing discipline of one link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Qdisc {
    /// Index of the link.
    pub index: u32,
    /// Its own handle, major number in the upper 16 bits; 0 for the kernel's default.
    pub handle: u32,
    /// What it is attached to: [`Qdisc::ROOT`], or a class.
    pub parent: u32,
    /// "tbf", "pfifo", "htb", "noqueue", …
    pub kind: String,
    /// Its parameters.
    pub options: QdiscOptions,
    /// Its counters; not written.
    pub stats: QdiscStats,
}

/// Parameters of a queueing discipline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QdiscOptions {
    /// A token bucket.
    Tbf(Tbf),
    /// A queue of this many packets.
    Pfifo {
        /// Packets that may wait.
        limit_packets: u32,
    },
    /// A queue of this many bytes.
    Bfifo {
        /// Bytes that may wait.
        limit_bytes: u32,
    },
    /// The content of `TCA_OPTIONS` for any other kind; empty if it has none.
    Other(Vec<u8>),
}

/// Counters of a queueing discipline or class (include/uapi/linux/gen_stats.h).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QdiscStats {
    /// Bytes that left.
    pub bytes: u64,
    /// Packets that left.
    pub packets: u64,
    /// Packets dropped.
    pub drops: u64,
    /// Times that sending had to wait for the limit.
    pub overlimits: u64,
    /// Packets put back because the device was busy.
    pub requeues: u64,
    /// Bytes waiting now.
    pub backlog_bytes: u64,
    /// Packets waiting now.
    pub qlen: u64,
}

impl Qdisc {
    /// The parent of a link's root queueing discipline (`TC_H_ROOT`).
    pub const ROOT: u32 = 0xFFFF_FFFF;

    /// A token bucket as the root of a link.
    pub fn root_tbf(index: u32, tbf: Tbf) -> Self {
        Self::root(index, "tbf", QdiscOptions::Tbf(tbf))
    }

    /// A packet queue as the root of a link.
    pub fn root_pfifo(index: u32, limit_packets: u32) -> Self {
        Self::root(index, "pfifo", QdiscOptions::Pfifo { limit_packets })
    }

    /// htb with no classes yet as the root of a link. Packets that no filter assigns to a class go to
    /// `default_class`, of which only the minor number counts.
    pub fn root_htb(index: u32, handle: u32, default_class: u32) -> Self {
        let options = QdiscOptions::Other(htb_options(default_class & 0xffff));
        Self { handle, ..Self::root(index, "htb", options) }
    }

    /// Any kind as the root of a link.
    pub fn root(index: u32, kind: &str, options: QdiscOptions) -> Self {
        let kind = kind.into();
        Self { index, handle: 0, parent: Self::ROOT, kind, options, stats: QdiscStats::default() }
    }

    /// Whether it is the root of its link.
    pub fn is_root(&self) -> bool {
        self.parent == Self::ROOT
    }

    /// Whether it is not a queue but a hook for filters: `ingress` or `clsact` (`TC_H_INGRESS`).
    pub fn is_hook(&self) -> bool {
        self.parent == 0xFFFF_FFF1
    }

    /// Whether it is the kernel's default for the link, which nobody configured.
    pub fn is_default(&self) -> bool {
        self.handle == 0
    }
}

impl Netlink {
    /// The queueing disciplines of a link, the root first.
    pub fn qdiscs(&mut self, index: u32) -> Result<Vec<Qdisc>, NetlinkError> {
        let operation = format!("list the qdiscs of link {index}");
        let message = message_for(&operation, index)?;
        let replies = self.dump(&operation, RouteNetlinkMessage::GetQueueDiscipline(message))?;
        let mut qdiscs: Vec<_> =
            replies.iter().filter_map(qdisc).filter(|qdisc| qdisc.index == index).collect();
        qdiscs.sort_by_key(|qdisc| !qdisc.is_root());
        Ok(qdiscs)
    }

    /// Creates a queueing discipline, or changes the one at its place. A discipline of the same kind is
    /// changed in place and keeps its counters and children; one of another kind is lost with its children.
    pub fn replace_qdisc(&mut self, qdisc: &Qdisc) -> Result<(), NetlinkError> {
        let operation = format!("set qdisc {} on link {}", qdisc.kind, qdisc.index);
        let mut message = addressed(&operation, qdisc)?;
        message.attributes.push(TcAttribute::Kind(qdisc.kind.clone()));
        let options = qdisc.options.emit();
        if !options.is_empty() {
            message.attributes.push(TcAttribute::Other(DefaultNla::new(TCA_OPTIONS, options)));
        }
        let question = RouteNetlinkMessage::NewQueueDiscipline(message);
        self.request(&operation, question, NLM_F_CREATE | NLM_F_REPLACE).map(drop)
    }

    /// Deletes a queueing discipline and its children; the link gets the kernel's default back.
    pub fn delete_qdisc(&mut self, qdisc: &Qdisc) -> Result<(), NetlinkError> {
        let operation = format!("delete qdisc {} of link {}", qdisc.kind, qdisc.index);
        let message = addressed(&operation, qdisc)?;
        let question = RouteNetlinkMessage::DelQueueDiscipline(message);
        self.request(&operation, question, 0).map(drop)
    }
}

impl Netlink {
    /// Whether anything is attached to a queueing discipline that its parameters do not show and that
    /// would be lost with it: filters, or a table of sizes (`TCA_STAB`).
    pub fn has_ties(&mut self, qdisc: &Qdisc) -> Result<bool, NetlinkError> {
        let operation = format!("read what hangs on the qdisc of link {}", qdisc.index);
        let message = message_for(&operation, qdisc.index)?;
        let replies = self.dump(&operation, RouteNetlinkMessage::GetQueueDiscipline(message))?;
        let sized = replies.iter().any(|reply| match reply {
            RouteNetlinkMessage::NewQueueDiscipline(message) => {
                let same = u32::from(message.header.handle) == qdisc.handle
                    && u32::try_from(message.header.index) == Ok(qdisc.index);
                same && message.attributes.iter().any(|a| matches!(a, TcAttribute::Stab(_)))
            }
            _ => false,
        });
        Ok(sized || self.filters_at(qdisc.index, qdisc.handle)?.count > 0)
    }
}

impl QdiscOptions {
    /// The content of `TCA_OPTIONS`.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.emit()
    }

    /// Parameters to write so that a queueing discipline of this kind reads back `bytes`, an earlier content of
    /// `TCA_OPTIONS`: the kernel rounds some times down whenever they are set.
    pub fn to_read_back(kind: &str, bytes: &[u8]) -> Self {
        Self::parse(kind, written_for(kind, bytes))
    }

    fn parse(kind: &str, bytes: Vec<u8>) -> Self {
        let limit = bytes.first_chunk().map(|limit| u32::from_ne_bytes(*limit));
        match (kind, limit) {
            ("tbf", _) => Tbf::parse(&bytes).map_or(Self::Other(bytes), Self::Tbf),
            ("pfifo", Some(limit_packets)) => Self::Pfifo { limit_packets },
            ("bfifo", Some(limit_bytes)) => Self::Bfifo { limit_bytes },
            _ => Self::Other(bytes),
        }
    }

    fn emit(&self) -> Vec<u8> {
        match self {
            Self::Tbf(tbf) => tbf.emit(),
            Self::Pfifo { limit_packets: limit } | Self::Bfifo { limit_bytes: limit } => {
                limit.to_ne_bytes().to_vec()
            }
            Self::Other(bytes) => bytes.clone(),
        }
    }
}

impl QdiscStats {
    /// Reads `TCA_STATS2`.
    pub(crate) fn from_attributes(attributes: &[TcAttribute]) -> Self {
        let mut stats = Self::default();
        for attribute in attributes {
            if let TcAttribute::Stats2(parts) = attribute {
                parts.iter().for_each(|part| stats.note(part));
            }
        }
        stats
    }

    fn note(&mut self, part: &TcStats2) {
        match part {
            TcStats2::Basic(basic) => {
                self.bytes = basic.bytes;
                self.packets = self.packets.max(basic.packets.into());
            }
            TcStats2::Queue(queue) => {
                self.drops = queue.drops.into();
                self.overlimits = queue.overlimits.into();
                self.requeues = queue.requeues.into();
                self.backlog_bytes = queue.backlog.into();
                self.qlen = queue.qlen.into();
            }
            TcStats2::Other(nla) if nla.kind() == TCA_STATS_PKT64 => {
                if let Some(packets) = value(nla).first_chunk() {
                    self.packets = u64::from_ne_bytes(*packets);
                }
            }
            _ => {}
        }
    }
}

pub(crate) fn message_for(operation: &str, index: u32) -> Result<TcMessage, NetlinkError> {
    let index = i32::try_from(index)
        .map_err(|_| NetlinkError::impossible(operation, "no link has such a number"))?;
    Ok(TcMessage::with_index(index))
}

fn addressed(operation: &str, qdisc: &Qdisc) -> Result<TcMessage, NetlinkError> {
    let mut message = message_for(operation, qdisc.index)?;
    message.header.handle = qdisc.handle.into();
    message.header.parent = qdisc.parent.into();
    Ok(message)
}

pub(crate) fn qdisc(message: &RouteNetlinkMessage) -> Option<Qdisc> {
    let RouteNetlinkMessage::NewQueueDiscipline(message) = message else { return None };
    let kind = kind(&message.attributes)?;
    Some(Qdisc {
        index: u32::try_from(message.header.index).ok()?,
        handle: message.header.handle.into(),
        parent: message.header.parent.into(),
        options: QdiscOptions::parse(&kind, option_bytes(&message.attributes)),
        stats: QdiscStats::from_attributes(&message.attributes),
        kind,
    })
}

pub(crate) fn kind(attributes: &[TcAttribute]) -> Option<String> {
    attributes.iter().find_map(|attribute| match attribute {
        TcAttribute::Kind(kind) => Some(kind.clone()),
        _ => None,
    })
}

/// The content of `TCA_OPTIONS`. The library parses it for a few kinds and returns it as one
/// raw attribute for all others.
pub(crate) fn option_bytes(attributes: &[TcAttribute]) -> Vec<u8> {
    let options = attributes.iter().find_map(|attribute| match attribute {
        TcAttribute::Options(options) => Some(options.as_slice()),
        _ => None,
    });
    match options.unwrap_or_default() {
        [TcOption::Other(raw)] => value(raw),
        known => {
            let mut bytes = vec![0; known.buffer_len()];
            known.emit(&mut bytes);
            bytes
        }
    }
}

fn value(nla: &DefaultNla) -> Vec<u8> {
    let mut bytes = vec![0; nla.value_len()];
    nla.emit_value(&mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_testing::in_namespace;

    fn link() -> (Netlink, u32) {
        let mut netlink = Netlink::open().unwrap();
        netlink.create_veth("left", "right").unwrap();
        let index = netlink.link("left").unwrap().index;
        netlink.set_up(index).unwrap();
        (netlink, index)
    }

    fn root(netlink: &mut Netlink, index: u32) -> Qdisc {
        netlink.qdiscs(index).unwrap().into_iter().find(Qdisc::is_root).unwrap()
    }

    #[test]
    fn a_bucket_reads_back_as_it_was_set_and_goes_away() {
        in_namespace(|| {
            let (mut netlink, index) = link();
            assert_eq!(root(&mut netlink, index).kind, "noqueue");
            for (rate, burst) in [(12_500_000, 1250), (125_000_000, 1514), (5_000_000_000, 65_536)]
            {
                let mut tbf = Tbf::new(rate, burst, 300_000);
                netlink.replace_qdisc(&Qdisc::root_tbf(index, tbf.clone())).unwrap();
                let seen = root(&mut netlink, index);
                assert_eq!(seen.options, QdiscOptions::Tbf(tbf.as_read_back()));
                netlink.replace_qdisc(&seen).unwrap();
                assert_eq!(root(&mut netlink, index), seen, "unchanged by its own reading");
                tbf.peak_rate_bytes_per_s = Some(rate * 2);
                tbf.mtu_bytes = Some(1600);
                netlink.replace_qdisc(&Qdisc::root_tbf(index, tbf.clone())).unwrap();
                let seen = root(&mut netlink, index);
                assert_eq!(seen.options, QdiscOptions::Tbf(tbf.as_read_back()));
            }
            let last = root(&mut netlink, index);
            netlink.delete_qdisc(&last).unwrap();
            assert_eq!(root(&mut netlink, index).kind, "noqueue");
        });
    }

    #[test]
    fn a_burst_below_125_mbit_is_exact() {
        let tbf = Tbf::new(12_500_000, 1250, 30_000);
        assert_eq!(tbf.as_read_back().burst_bytes, 1250);
    }

    #[test]
    fn queues_of_packets_and_unknown_kinds_survive_being_written_back() {
        in_namespace(|| {
            let (mut netlink, index) = link();
            netlink.replace_qdisc(&Qdisc::root_pfifo(index, 77)).unwrap();
            let seen = root(&mut netlink, index);
            assert_eq!(seen.options, QdiscOptions::Pfifo { limit_packets: 77 });
            netlink.replace_qdisc(&seen).unwrap();
            assert_eq!(root(&mut netlink, index), seen);
        });
    }

    #[test]
    fn a_kind_the_kernel_does_not_have_is_explained() {
        in_namespace(|| {
            let (mut netlink, index) = link();
            let odd = Qdisc::root(index, "no-such-kind", QdiscOptions::Other(Vec::new()));
            let error = netlink.replace_qdisc(&odd).unwrap_err();
            assert!(error.not_found() && error.to_string().contains("unknown"), "{error}");
        });
    }
}
