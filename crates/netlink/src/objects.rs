//! Addresses, routes, rules, neighbours and queueing disciplines as the kernel tells them, so that
//! they can be compared and made again. What moves by itself (statistics, ages, states) is left
//! out.
//!
//! Layouts: include/uapi/linux/{if_addr,rtnetlink,fib_rules,neighbour,pkt_sched}.h.

use netlink_packet_core::{NLM_F_APPEND, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};

use crate::raw::RawMessage;
use crate::{Netlink, NetlinkError};

/// A kind of object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectKind {
    /// An address of a link; those that the kernel makes and renews itself are left out.
    Address,
    /// A route of any table.
    Route,
    /// A rule that chooses a table.
    Rule,
    /// A neighbour that somebody set for good.
    Neighbour,
    /// A queueing discipline.
    Qdisc,
    /// A traffic class that has parameters.
    Class,
}

/// One object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// Its kind.
    pub kind: ObjectKind,
    /// The links that it belongs to, by index; none for a rule.
    pub links: Vec<u32>,
    /// What tells it from others of its kind: the same for the same object with other parameters.
    pub key: Vec<u8>,
    /// All that makes it: the message without what moves by itself.
    pub body: Vec<u8>,
}

/// `IFA_F_TEMPORARY` of an IPv6 address.
const TEMPORARY: u8 = 0x01;
/// `IFA_F_OPTIMISTIC`, `IFA_F_DADFAILED`, `IFA_F_DEPRECATED`, `IFA_F_TENTATIVE`.
const PASSING: u8 = 0x04 | 0x08 | 0x20 | 0x40;
/// `RTNH_F_ONLINK`, the one flag of a route that is asked for rather than reported.
const ONLINK: u32 = 4;
/// `RTM_F_CLONED`: an entry of a cache.
const CLONED: u32 = 0x200;
/// `NUD_PERMANENT`.
const PERMANENT: u16 = 0x80;
const AF_INET6: u8 = libc::AF_INET6 as u8;
const AF_BRIDGE: u8 = libc::AF_BRIDGE as u8;

impl ObjectKind {
    /// `RTM_NEW…`; the messages that delete and list follow it.
    fn new_message(self) -> u16 {
        match self {
            Self::Address => libc::RTM_NEWADDR,
            Self::Route => libc::RTM_NEWROUTE,
            Self::Rule => libc::RTM_NEWRULE,
            Self::Neighbour => libc::RTM_NEWNEIGH,
            Self::Qdisc => libc::RTM_NEWQDISC,
            Self::Class => libc::RTM_NEWTCLASS,
        }
    }

    fn header_bytes(self) -> usize {
        match self {
            Self::Address => 8,
            Self::Route | Self::Rule | Self::Neighbour => 12,
            Self::Qdisc | Self::Class => 20,
        }
    }

    /// The attributes that tell one from another.
    fn key_attributes(self) -> &'static [u16] {
        match self {
            // IFA_ADDRESS, IFA_LOCAL.
            Self::Address => &[1, 2],
            // RTA_DST, RTA_SRC, RTA_OIF, RTA_GATEWAY, RTA_PRIORITY, RTA_TABLE, RTA_NH_ID.
            Self::Route => &[1, 2, 4, 5, 6, 15, 30],
            Self::Rule => &[],
            // NDA_DST.
            Self::Neighbour => &[1],
            Self::Qdisc | Self::Class => &[],
        }
    }

    /// The attributes that move by themselves, or that are only reported.
    fn passing_attributes(self) -> &'static [u16] {
        match self {
            // IFA_CACHEINFO.
            Self::Address => &[6],
            // RTA_CACHEINFO, RTA_EXPIRES.
            Self::Route => &[12, 23],
            // FRA_PAD.
            Self::Rule => &[18],
            // NDA_CACHEINFO, NDA_PROBES.
            Self::Neighbour => &[3, 4],
            // TCA_STATS, TCA_XSTATS, TCA_FCNT, TCA_STATS2, TCA_PAD, TCA_HW_OFFLOAD.
            Self::Qdisc | Self::Class => &[3, 4, 6, 7, 9, 12],
        }
    }
}

impl Netlink {
    /// All objects of a kind in this namespace. `links` are all its links, by index: classes are
    /// told for one at a time.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn objects(
        &mut self,
        kind: ObjectKind,
        links: &[u32],
    ) -> Result<Vec<Object>, NetlinkError> {
        let operation = format!("list every {kind:?}");
        let mut all = Vec::new();
        let asked: &[u32] = if kind == ObjectKind::Class { links } else { &[0] };
        for index in asked {
            let mut body = vec![0; kind.header_bytes()];
            if kind == ObjectKind::Class {
                body[4..8].copy_from_slice(&index.to_ne_bytes());
            }
            // RTM_GET… is two after RTM_NEW….
            let question = RawMessage { kind: kind.new_message() + 2, body };
            let told = self.dump_raw(&operation, question)?;
            all.extend(told.iter().filter_map(|message| object(kind, message)));
        }
        Ok(all)
    }

    /// Makes an object, or gives the one with its key the parameters that it has.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn make_object(&mut self, object: &Object, exists: bool) -> Result<(), NetlinkError> {
        let flags = match object.kind {
            ObjectKind::Rule => NLM_F_CREATE | NLM_F_EXCL,
            // Without it a route that is not there would replace one beside it.
            ObjectKind::Route if !exists => NLM_F_CREATE | NLM_F_APPEND,
            _ => NLM_F_CREATE | NLM_F_REPLACE,
        };
        let operation = format!("make a {:?} again", object.kind);
        let message = RawMessage { kind: object.kind.new_message(), body: object.body.clone() };
        self.request_raw(&operation, message, flags)
    }

    /// Deletes an object.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn delete_object(&mut self, object: &Object) -> Result<(), NetlinkError> {
        let operation = format!("delete a {:?}", object.kind);
        let kind = object.kind.new_message() + 1;
        self.request_raw(&operation, RawMessage { kind, body: object.body.clone() }, 0)
    }
}

impl Object {
    /// An object of which only the body was kept. `None`: the bytes are none.
    pub fn from_body(kind: ObjectKind, body: Vec<u8>) -> Option<Self> {
        object(kind, &RawMessage { kind: kind.new_message(), body })
    }
}

fn object(kind: ObjectKind, message: &RawMessage) -> Option<Object> {
    if message.kind != kind.new_message() || message.body.len() < kind.header_bytes() {
        return None;
    }
    let mut header = message.body[..kind.header_bytes()].to_vec();
    let mut attributes: Vec<(u16, Vec<u8>)> = message
        .attributes(kind.header_bytes())
        .filter(|(attribute, _)| !kind.passing_attributes().contains(attribute))
        .map(|(attribute, value)| (attribute, value.to_vec()))
        .collect();
    let kept = match kind {
        ObjectKind::Address => settled_address(&mut header, &mut attributes),
        ObjectKind::Route => settled_route(&mut header, &mut attributes),
        ObjectKind::Rule => {
            // FIB_RULE_IIF_DETACHED and FIB_RULE_OIF_DETACHED are reported.
            header[8] &= !(0x08 | 0x10);
            true
        }
        ObjectKind::Neighbour => {
            u16::from_ne_bytes([header[8], header[9]]) & PERMANENT != 0 && header[0] != AF_BRIDGE
        }
        ObjectKind::Qdisc | ObjectKind::Class => settled_queue(kind, &mut header, &mut attributes),
    };
    kept.then(|| Object {
        kind,
        links: links(kind, &header, &attributes),
        key: key(kind, &header, &attributes),
        body: written(&header, &attributes),
    })
}

/// IPv6 addresses with privacy extensions come and go by themselves.
fn settled_address(header: &mut [u8], attributes: &mut [(u16, Vec<u8>)]) -> bool {
    if header[0] != AF_INET6 {
        return true;
    }
    header[2] &= !PASSING;
    // IFA_FLAGS.
    for (_, flags) in attributes.iter_mut().filter(|(kind, _)| *kind == 8) {
        flags.iter_mut().take(1).for_each(|low| *low &= !PASSING);
    }
    header[2] & TEMPORARY == 0
}

fn settled_route(header: &mut [u8], attributes: &mut Vec<(u16, Vec<u8>)>) -> bool {
    let flags = word(header, 8);
    header[8..12].copy_from_slice(&(flags & ONLINK).to_ne_bytes());
    // Beside RTA_NH_ID, RTA_OIF, RTA_GATEWAY, RTA_MULTIPATH and RTA_VIA are only reported.
    if attributes.iter().any(|(kind, _)| *kind == 30) {
        attributes.retain(|(kind, _)| ![4, 5, 9, 18].contains(kind));
    }
    for (_, hops) in attributes.iter_mut().filter(|(kind, _)| *kind == 9) {
        next_hops(hops, |hop| hop[2] &= ONLINK as u8);
    }
    flags & CLONED == 0
}

/// Calls `each` with every `struct rtnexthop` (length, flags, weight, link) of `RTA_MULTIPATH`.
fn next_hops(mut bytes: &mut [u8], mut each: impl FnMut(&mut [u8])) {
    while bytes.len() >= 8 {
        let length = usize::from(u16::from_ne_bytes([bytes[0], bytes[1]])).max(8);
        each(&mut bytes[..8]);
        let next = length.next_multiple_of(4).min(bytes.len());
        bytes = &mut bytes[next..];
    }
}

/// The header's last word counts references, or names the leaf. A class without parameters is a
/// flow that is active now, or a queue of the device.
fn settled_queue(kind: ObjectKind, header: &mut [u8], attributes: &mut [(u16, Vec<u8>)]) -> bool {
    header[16..20].fill(0);
    let name = attributes.iter().find(|(kind, _)| *kind == 1).map(|(_, name)| name.clone());
    let options = attributes.iter_mut().find(|(kind, _)| *kind == 2).map(|(_, options)| options);
    match (name.as_deref(), options) {
        (Some(b"htb\0"), Some(options)) if kind == ObjectKind::Qdisc => {
            // `direct_pkts`, the last word of TCA_HTB_INIT, counts.
            if let Some(count) = options.get_mut(20..24) {
                count.fill(0);
            }
        }
        // `struct tc_sfqred_stats` at the end of `struct tc_sfq_qopt_v1` counts.
        (Some(b"sfq\0"), Some(options)) => options.truncate(48),
        (_, None) => return kind == ObjectKind::Qdisc,
        _ => {}
    }
    true
}

fn links(kind: ObjectKind, header: &[u8], attributes: &[(u16, Vec<u8>)]) -> Vec<u32> {
    match kind {
        ObjectKind::Rule => Vec::new(),
        ObjectKind::Route => {
            let mut links = Vec::new();
            for (attribute, value) in attributes {
                match attribute {
                    4 if value.len() >= 4 => links.push(word(value, 0)),
                    9 => next_hops(&mut value.clone(), |hop| links.push(word(hop, 4))),
                    _ => {}
                }
            }
            links
        }
        _ => vec![word(header, 4)],
    }
}

fn key(kind: ObjectKind, header: &[u8], attributes: &[(u16, Vec<u8>)]) -> Vec<u8> {
    let mut key = match kind {
        // Family, prefix length and link.
        ObjectKind::Address => [&header[..2], &header[4..8]].concat(),
        // Family, lengths of both prefixes, TOS, table.
        ObjectKind::Route => header[..5].to_vec(),
        ObjectKind::Rule => return written(header, attributes),
        // Family and link.
        ObjectKind::Neighbour => [&header[..1], &header[4..8]].concat(),
        // Link and parent, under which there is one.
        ObjectKind::Qdisc => [&header[4..8], &header[12..16]].concat(),
        // Link and handle.
        ObjectKind::Class => header[4..12].to_vec(),
    };
    let told = attributes.iter().filter(|(kind_of, _)| kind.key_attributes().contains(kind_of));
    told.for_each(|attribute| put(&mut key, attribute));
    key
}

fn written(header: &[u8], attributes: &[(u16, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = header.to_vec();
    attributes.iter().for_each(|attribute| put(&mut bytes, attribute));
    bytes
}

/// Adds `struct nlattr` and its value, padded to words.
fn put(bytes: &mut Vec<u8>, (kind, value): &(u16, Vec<u8>)) {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes.extend(u16::try_from(4 + value.len()).unwrap_or(u16::MAX).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |w| u32::from_ne_bytes(*w))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::namespace::tests::in_test_namespace;
    use proptest::prelude::*;

    #[test]
    fn what_is_deleted_can_be_made_again() {
        in_test_namespace("what_is_deleted_can_be_made_again", || {
            let mut netlink = Netlink::open().unwrap();
            netlink.create_veth("left", "right").unwrap();
            let index = netlink.link("left").unwrap().index;
            for (address, length) in [("192.0.2.1", 24), ("2001:db8::1", 64)] {
                netlink.add_address(index, address.parse().unwrap(), length).unwrap();
            }
            netlink.set_up(index).unwrap();
            let all = |netlink: &mut Netlink, kind| netlink.objects(kind, &[index]).unwrap();
            for kind in [ObjectKind::Address, ObjectKind::Route, ObjectKind::Rule] {
                assert!(!all(&mut netlink, kind).is_empty(), "{kind:?}");
            }
            let addresses = all(&mut netlink, ObjectKind::Address);
            let one = addresses.iter().find(|address| address.body[0] == AF_INET6).unwrap();
            netlink.delete_object(one).unwrap();
            assert!(!all(&mut netlink, ObjectKind::Address).contains(one));
            netlink.make_object(one, false).unwrap();
            assert!(all(&mut netlink, ObjectKind::Address).contains(one));
        });
    }

    proptest! {
        #[test]
        fn no_message_makes_it_panic(body in prop::collection::vec(any::<u8>(), 0..80)) {
            use ObjectKind::{Address, Class, Neighbour, Qdisc, Route, Rule};
            for kind in [Address, Route, Rule, Neighbour, Qdisc, Class] {
                let _ = Object::from_body(kind, body.clone());
            }
        }
    }
}
