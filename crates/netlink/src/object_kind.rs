//! The kinds of objects that the kernel reports, and the structure of their messages.
//!
//! Layouts: include/uapi/linux/{if_addr,rtnetlink,fib_rules,neighbour,nexthop,pkt_sched}.h.

/// A kind of object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectKind {
    /// An address of a link. IPv6's temporary addresses are left out: only the kernel can make them,
    /// and it makes new ones from the address that they belong to (`IFA_F_MANAGETEMPADDR`). An address from a
    /// router advertisement comes back with its lifetimes, which the next advertisement renews.
    Address,
    /// A route of any table. A route from a router advertisement comes back with its protocol and
    /// its remaining lifetime; the next advertisement renews it (net/ipv6/ip6_fib.c
    /// `fib6_add_rt2node`), and without one it expires when it would have anyway.
    Route,
    /// A rule that chooses a table.
    Rule,
    /// A permanent neighbour entry.
    Neighbour,
    /// A next hop, or a group of them, that routes refer to by number.
    NextHop,
    /// A permanent entry in the table of a bridge or of a tunnel.
    Forwarding,
    /// A queueing discipline.
    Qdisc,
    /// A traffic class that has parameters.
    Class,
    /// A filter of a queueing discipline. Only its presence is reported, not its content: its actions contain
    /// counters, and programs can't be read back.
    Filter,
}

/// `RTM_NEWNEXTHOP` and `RTM_NEWTFILTER`.
const NEW_NEXT_HOP: u16 = 104;
const NEW_FILTER: u16 = 44;

impl ObjectKind {
    /// `RTM_NEW…`; the numbers for deleting and listing follow it.
    pub(crate) fn new_message(self) -> u16 {
        match self {
            Self::Address => libc::RTM_NEWADDR,
            Self::Route => libc::RTM_NEWROUTE,
            Self::Rule => libc::RTM_NEWRULE,
            Self::Neighbour | Self::Forwarding => libc::RTM_NEWNEIGH,
            Self::NextHop => NEW_NEXT_HOP,
            Self::Filter => NEW_FILTER,
            Self::Qdisc => libc::RTM_NEWQDISC,
            Self::Class => libc::RTM_NEWTCLASS,
        }
    }

    pub(crate) fn header_bytes(self) -> usize {
        match self {
            Self::Address | Self::NextHop => 8,
            Self::Route | Self::Rule | Self::Neighbour | Self::Forwarding => 12,
            Self::Qdisc | Self::Class | Self::Filter => 20,
        }
    }

    /// The attributes that identify an object among others of its kind.
    pub(crate) fn key_attributes(self) -> &'static [u16] {
        match self {
            // IFA_ADDRESS, IFA_LOCAL.
            Self::Address => &[1, 2],
            // RTA_DST, RTA_SRC, RTA_OIF, RTA_GATEWAY, RTA_PRIORITY, RTA_TABLE, RTA_NH_ID.
            Self::Route => &[1, 2, 4, 5, 6, 15, 30],
            Self::Rule => &[],
            // NDA_DST.
            Self::Neighbour => &[1],
            // NHA_ID.
            Self::NextHop => &[1],
            // NDA_DST, NDA_LLADDR, NDA_VLAN.
            Self::Forwarding => &[1, 2, 5],
            // TCA_KIND, TCA_CHAIN.
            Self::Filter => &[1, 11],
            Self::Qdisc | Self::Class => &[],
        }
    }

    /// The nested attributes that the kernel wants marked as such.
    pub(crate) fn nested_attributes(self) -> &'static [u16] {
        match self {
            // NHA_ENCAP, NHA_RES_GROUP.
            Self::NextHop => &[8, 12],
            _ => &[],
        }
    }

    /// The attributes that change on their own, or that are only reported.
    pub(crate) fn passing_attributes(self) -> &'static [u16] {
        match self {
            // IFA_CACHEINFO.
            Self::Address => &[6],
            // RTA_CACHEINFO, RTA_EXPIRES.
            Self::Route => &[12, 23],
            // FRA_PAD.
            Self::Rule => &[18],
            // NDA_CACHEINFO, NDA_PROBES.
            Self::Neighbour => &[3, 4],
            // NHA_OP_FLAGS, NHA_GROUP_STATS, NHA_HW_STATS_USED.
            Self::NextHop => &[14, 15, 17],
            // The same as for a neighbour, and NDA_MASTER.
            Self::Forwarding => &[3, 4, 9],
            // Everything but its key.
            Self::Filter => &[],
            // TCA_STATS, TCA_XSTATS, TCA_FCNT, TCA_STATS2, TCA_PAD, TCA_HW_OFFLOAD.
            Self::Qdisc | Self::Class => &[3, 4, 6, 7, 9, 12],
        }
    }
}
