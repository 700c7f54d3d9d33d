//! Addresses, routes, rules, neighbours, next hops, bridge entries and queueing disciplines as the
//! kernel reports them, so that they can be compared and created again. Whatever changes on its own (statistics,
//! ages, states) is left out; the remaining lifetime is kept separately.
//!
//! Layouts: include/uapi/linux/{if_addr,rtnetlink,fib_rules,neighbour,nexthop,pkt_sched}.h.

use netlink_packet_core::{NLM_F_APPEND, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};

use crate::lasting::Lasting;
use crate::object_kind::ObjectKind;
use crate::raw::{self, NLA_F_NESTED, RawMessage, word_or_zero};
use crate::{Netlink, NetlinkError};

/// One object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// Its kind.
    pub kind: ObjectKind,
    /// The links that it belongs to, by index; none for a rule.
    pub links: Vec<u32>,
    /// Identifies the object among others of its kind: the same for the same object with other parameters.
    pub key: Vec<u8>,
    /// Everything needed to create the object: the message without what changes on its own.
    pub body: Vec<u8>,
    /// Its remaining lifetime, if limited.
    pub lasting: Option<Lasting>,
}

/// `NUD_NOARP`: an entry of a bridge that does not age.
const STATIC: u16 = 0x40;
/// `NTF_SELF` and `NTF_OFFLOADED`.
const OF_DEVICE: u8 = 0x02;
const OFFLOADED: u8 = 0x20;
/// Where filters of a link attach: its root, and `TC_H_INGRESS` and the two hooks of `TC_H_CLSACT`.
const PARENTS: [u32; 4] = [0, 0xffff_0000, 0xffff_fff2, 0xffff_fff3];
/// `IFA_F_TEMPORARY` of an IPv6 address.
const TEMPORARY: u8 = 0x01;
/// `IFA_F_OPTIMISTIC`, `IFA_F_DADFAILED`, `IFA_F_DEPRECATED`, `IFA_F_TENTATIVE`.
const PASSING: u8 = 0x04 | 0x08 | 0x20 | 0x40;
/// `RTNH_F_ONLINK`, the only flag of a route that is requested rather than reported.
const ONLINK: u32 = 4;
/// `RTM_F_CLONED`: an entry of a cache.
const CLONED: u32 = 0x200;
/// `NUD_PERMANENT`.
const PERMANENT: u16 = 0x80;
const AF_INET6: u8 = libc::AF_INET6 as u8;
const AF_BRIDGE: u8 = libc::AF_BRIDGE as u8;

impl Netlink {
    /// All objects of a kind in this namespace. `links` are all its links, by index: classes are
    /// listed one link at a time.
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
        for mut body in questions(kind, links) {
            body.resize(kind.header_bytes(), 0);
            // RTM_GET… is two after RTM_NEW….
            let question = RawMessage { kind: kind.new_message() + 2, body };
            let messages = self.dump_raw(&operation, question)?;
            all.extend(messages.iter().filter_map(|message| object(kind, message)));
        }
        Ok(all)
    }

    /// Creates an object, or updates the existing object with the same key.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn make_object(&mut self, object: &Object, exists: bool) -> Result<(), NetlinkError> {
        let flags = match object.kind {
            ObjectKind::Rule => NLM_F_CREATE | NLM_F_EXCL,
            // Without it, a new route would replace one beside it.
            ObjectKind::Route if !exists => NLM_F_CREATE | NLM_F_APPEND,
            _ => NLM_F_CREATE | NLM_F_REPLACE,
        };
        let operation = format!("make a {:?} again", object.kind);
        if object.kind == ObjectKind::Filter {
            let why = "only who made it knows all that makes it";
            return Err(NetlinkError::impossible(operation, why));
        }
        let mut body = object.body.clone();
        let lasting = object.lasting.map(|lasting| lasting.attribute(object.kind));
        lasting.iter().for_each(|attribute| put(&mut body, attribute));
        let message = RawMessage { kind: object.kind.new_message(), body };
        self.request_raw(&operation, message, flags)
    }

    /// Deletes an object.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn delete_object(&mut self, object: &Object) -> Result<(), NetlinkError> {
        let operation = format!("delete a {:?}", object.kind);
        let kind = object.kind.new_message() + 1;
        let body = match object.kind {
            // The kernel accepts nothing but the number.
            ObjectKind::NextHop => [&[0; 8][..], &object.key].concat(),
            _ => object.body.clone(),
        };
        self.request_raw(&operation, RawMessage { kind, body }, 0)
    }
}

impl Object {
    /// An object from a saved body and remaining lifetime. `None`: the bytes are no such object.
    pub fn from_body(kind: ObjectKind, body: Vec<u8>, lasting: Option<Lasting>) -> Option<Self> {
        let object = object(kind, &RawMessage { kind: kind.new_message(), body })?;
        Some(Self { lasting, ..object })
    }
}

/// The headers of the requests that list a kind: some kinds are reported one link at a time.
fn questions(kind: ObjectKind, links: &[u32]) -> Vec<Vec<u8>> {
    let of_link = |index: &u32, parent: u32| {
        let words = [0, *index, 0, parent];
        words.iter().flat_map(|word: &u32| word.to_ne_bytes()).collect()
    };
    match kind {
        ObjectKind::Class => links.iter().map(|index| of_link(index, 0)).collect(),
        ObjectKind::Filter => {
            let all = links.iter().flat_map(|index| PARENTS.map(|parent| of_link(index, parent)));
            all.collect()
        }
        ObjectKind::Forwarding => vec![vec![AF_BRIDGE]],
        _ => vec![Vec::new()],
    }
}

fn object(kind: ObjectKind, message: &RawMessage) -> Option<Object> {
    if message.kind != kind.new_message() || message.body.len() < kind.header_bytes() {
        return None;
    }
    let mut header = message.body[..kind.header_bytes()].to_vec();
    let mut attributes: Vec<(u16, Vec<u8>)> = message
        .attributes(kind.header_bytes())
        .map(|(attribute, value)| (attribute, value.to_vec()))
        .collect();
    let lasting = Lasting::from_attributes(kind, &attributes);
    attributes.retain(|(attribute, _)| !kind.passing_attributes().contains(attribute));
    let links = links(kind, &header, &attributes);
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
        ObjectKind::NextHop => {
            // The scope is only reported, as are all flags except one.
            header[1] = 0;
            let flags = word_or_zero(&header, 4) & ONLINK;
            header[4..8].copy_from_slice(&flags.to_ne_bytes());
            true
        }
        ObjectKind::Forwarding => settled_forwarding(&mut header, &attributes),
        ObjectKind::Qdisc | ObjectKind::Class => settled_queue(kind, &mut header, &mut attributes),
        ObjectKind::Filter => settled_filter(&header, &mut attributes),
    };
    kept.then(|| Object {
        kind,
        links,
        key: key(kind, &header, &attributes),
        body: body(kind, &header, &attributes),
        lasting,
    })
}

/// IPv6 addresses with privacy extensions come and go on their own.
fn settled_address(header: &mut [u8], attributes: &mut [(u16, Vec<u8>)]) -> bool {
    header[2] &= !PASSING;
    // IFA_FLAGS.
    for (_, flags) in attributes.iter_mut().filter(|(kind, _)| *kind == 8) {
        flags.iter_mut().take(1).for_each(|low| *low &= !PASSING);
    }
    // For IPv4 the same bit is `IFA_F_SECONDARY`.
    header[0] != AF_INET6 || header[2] & TEMPORARY == 0
}

/// Learned entries age; groups that a device listens to come and go with its addresses.
fn settled_forwarding(header: &mut [u8], attributes: &[(u16, Vec<u8>)]) -> bool {
    header[10] &= !OFFLOADED;
    let state = u16::from_ne_bytes([header[8], header[9]]);
    let address = attributes.iter().find(|(kind, _)| *kind == 2).and_then(|(_, a)| a.first());
    let group = header[10] & OF_DEVICE != 0 && address.is_some_and(|first| first & 1 != 0);
    header[0] == AF_BRIDGE && state & (PERMANENT | STATIC) != 0 && !group
}

/// The kernel also lists each priority, with handle 0, and the hash tables of u32, without a node number
/// (`TC_U32_NODE`).
fn settled_filter(header: &[u8], attributes: &mut Vec<(u16, Vec<u8>)>) -> bool {
    attributes.retain(|(kind, _)| ObjectKind::Filter.key_attributes().contains(kind));
    let is_u32 = attributes.iter().any(|(kind, name)| *kind == 1 && name == b"u32\0");
    let handle = word_or_zero(header, 8);
    handle != 0 && !(is_u32 && handle & 0xfff == 0)
}

fn settled_route(header: &mut [u8], attributes: &mut Vec<(u16, Vec<u8>)>) -> bool {
    let flags = word_or_zero(header, 8);
    header[8..12].copy_from_slice(&(flags & ONLINK).to_ne_bytes());
    // With RTA_NH_ID, RTA_OIF, RTA_GATEWAY, RTA_MULTIPATH and RTA_VIA are only reported.
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
/// currently active flow, or a queue of the device.
fn settled_queue(kind: ObjectKind, header: &mut [u8], attributes: &mut [(u16, Vec<u8>)]) -> bool {
    header[16..20].fill(0);
    let name = attributes.iter().find(|(kind, _)| *kind == 1).map(|(_, name)| name.clone());
    let options = attributes.iter_mut().find(|(kind, _)| *kind == 2).map(|(_, options)| options);
    match (name.as_deref(), options) {
        (Some(b"htb\0"), Some(options)) if kind == ObjectKind::Qdisc => {
            // `direct_pkts`, the last word of TCA_HTB_INIT, is a counter.
            if let Some(count) = options.get_mut(20..24) {
                count.fill(0);
            }
        }
        // `struct tc_sfqred_stats` at the end of `struct tc_sfq_qopt_v1` contains counters.
        (Some(b"sfq\0"), Some(options)) => options.truncate(48),
        (_, None) => return kind == ObjectKind::Qdisc,
        _ => {}
    }
    true
}

fn links(kind: ObjectKind, header: &[u8], attributes: &[(u16, Vec<u8>)]) -> Vec<u32> {
    match kind {
        ObjectKind::Rule => Vec::new(),
        ObjectKind::NextHop => {
            // NHA_OIF.
            let own = attributes.iter().filter(|(kind, value)| *kind == 5 && value.len() >= 4);
            own.map(|(_, value)| word_or_zero(value, 0)).collect()
        }
        ObjectKind::Route => {
            let mut links = Vec::new();
            for (attribute, value) in attributes {
                match attribute {
                    4 if value.len() >= 4 => links.push(word_or_zero(value, 0)),
                    9 => next_hops(&mut value.clone(), |hop| links.push(word_or_zero(hop, 4))),
                    _ => {}
                }
            }
            links
        }
        _ => vec![word_or_zero(header, 4)],
    }
}

fn key(kind: ObjectKind, header: &[u8], attributes: &[(u16, Vec<u8>)]) -> Vec<u8> {
    let mut key = match kind {
        // Family, prefix length and link.
        ObjectKind::Address => [&header[..2], &header[4..8]].concat(),
        // Family, lengths of both prefixes, TOS, table.
        ObjectKind::Route => header[..5].to_vec(),
        ObjectKind::Rule => return body(kind, header, attributes),
        ObjectKind::NextHop => Vec::new(),
        // Family, link, and whether the entry is the device's own.
        ObjectKind::Forwarding => {
            [&header[..1], &header[4..8], &[header[10] & OF_DEVICE][..]].concat()
        }
        // Link, handle, parent, priority and protocol.
        ObjectKind::Filter => header[4..20].to_vec(),
        // Family and link.
        ObjectKind::Neighbour => [&header[..1], &header[4..8]].concat(),
        // Link and parent, which has only one.
        ObjectKind::Qdisc => [&header[4..8], &header[12..16]].concat(),
        // Link and handle.
        ObjectKind::Class => header[4..12].to_vec(),
    };
    let keys = attributes.iter().filter(|(kind_of, _)| kind.key_attributes().contains(kind_of));
    keys.for_each(|attribute| put(&mut key, attribute));
    key
}

fn body(kind: ObjectKind, header: &[u8], attributes: &[(u16, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = header.to_vec();
    for (attribute, value) in attributes {
        let nested = kind.nested_attributes().contains(attribute);
        put(&mut bytes, &(attribute | if nested { NLA_F_NESTED } else { 0 }, value.clone()));
    }
    bytes
}

/// Appends an attribute, aligned to a word.
fn put(bytes: &mut Vec<u8>, (kind, value): &(u16, Vec<u8>)) {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes.extend(raw::attribute(*kind, value));
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_testing::in_namespace;
    use proptest::prelude::*;

    #[test]
    fn what_is_deleted_can_be_made_again() {
        in_namespace(|| {
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

    fn run(words: &str) {
        let mut words = words.split(' ');
        let status = std::process::Command::new(words.next().unwrap()).args(words).status();
        assert!(status.unwrap().success());
    }

    /// The only object of a kind whose body has these bytes.
    fn one(netlink: &mut Netlink, kind: ObjectKind, link: u32, bytes: &[u8]) -> Option<Object> {
        let all = netlink.objects(kind, &[link]).unwrap();
        let mut found = all.into_iter().filter(|o| o.body.windows(bytes.len()).any(|w| w == bytes));
        let first = found.next();
        assert_eq!(found.next(), None);
        first
    }

    #[test]
    fn what_ends_by_itself_comes_back_with_its_lifetimes_and_flags() {
        in_namespace(|| {
            let mut netlink = Netlink::open().unwrap();
            netlink.create_veth("left", "right").unwrap();
            let index = netlink.link("left").unwrap().index;
            netlink.set_up(index).unwrap();
            run("ip address add 2001:db8:5::1/64 dev left valid_lft 9000 preferred_lft 5000 \
                 noprefixroute mngtmpaddr");
            run("ip address add 192.0.2.5/24 dev left valid_lft 9000 preferred_lft 5000");
            run("ip -6 route add 2001:db8:6::/64 dev left proto ra expires 9000");
            for (kind, bytes) in [
                (
                    ObjectKind::Address,
                    &[0x20, 1, 0xd, 0xb8, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1][..],
                ),
                (ObjectKind::Address, &[192, 0, 2, 5]),
                (ObjectKind::Route, &[0x20, 1, 0xd, 0xb8, 0, 6, 0, 0]),
            ] {
                let before = one(&mut netlink, kind, index, bytes).unwrap();
                netlink.delete_object(&before).unwrap();
                assert_eq!(one(&mut netlink, kind, index, bytes), None);
                let lasting = Lasting { preferred_s: Some(3000), valid_s: Some(6000) };
                netlink
                    .make_object(&Object { lasting: Some(lasting), ..before.clone() }, false)
                    .unwrap();
                let after = one(&mut netlink, kind, index, bytes).unwrap();
                let left = after.lasting.unwrap().valid_s.unwrap();
                assert!((1..=6000).contains(&left), "{after:?}");
                assert_eq!(Object { lasting: before.lasting, ..after }, before);
            }
        });
    }

    #[test]
    fn next_hops_and_bridge_entries_can_be_made_again_and_filters_are_seen() {
        in_namespace(|| {
            let mut netlink = Netlink::open().unwrap();
            netlink.create_veth("left", "right").unwrap();
            let index = netlink.link("left").unwrap().index;
            netlink.add_address(index, "192.0.2.1".parse().unwrap(), 24).unwrap();
            netlink.set_up(index).unwrap();
            let right = netlink.link("right").unwrap().index;
            netlink.set_up(right).unwrap();
            run("ip nexthop add id 4242 via 192.0.2.9 dev left");
            run("ip nexthop add id 4243 group 4242");
            run("ip route add 198.51.100.0/24 nhid 4242");
            run("ip link add br0 type bridge");
            run("ip link set left master br0");
            run("bridge fdb add 02:00:00:00:00:77 dev left master static");
            let id = |id: u32| id.to_ne_bytes();
            let fdb = (ObjectKind::Forwarding, vec![2, 0, 0, 0, 0, 0x77]);
            let group = (ObjectKind::NextHop, [&[8, 0, 1, 0][..], &id(4243)].concat());
            let hop = (ObjectKind::NextHop, [&[8, 0, 1, 0][..], &id(4242)].concat());
            let mut route = None;
            for (kind, bytes) in [fdb, group, hop] {
                route = route
                    .or_else(|| one(&mut netlink, ObjectKind::Route, index, &[198, 51, 100, 0]));
                let before = one(&mut netlink, kind, index, &bytes).unwrap();
                netlink.delete_object(&before).unwrap();
                assert_eq!(one(&mut netlink, kind, index, &bytes), None);
                netlink.make_object(&before, false).unwrap();
                assert_eq!(one(&mut netlink, kind, index, &bytes), Some(before));
            }
            // The route disappeared with its next hop.
            assert_eq!(one(&mut netlink, ObjectKind::Route, index, &[198, 51, 100, 0]), None);
            netlink.make_object(&route.clone().unwrap(), false).unwrap();
            assert_eq!(one(&mut netlink, ObjectKind::Route, index, &[198, 51, 100, 0]), route);

            run("tc qdisc add dev left root handle 1: htb");
            run("tc filter add dev left parent 1: protocol ip prio 7 u32 match ip dst 192.0.2.9 \
                 flowid 1:1");
            run("tc qdisc add dev left clsact");
            run("tc filter add dev left ingress protocol ip prio 9 u32 match ip dst 192.0.2.9 \
                 flowid 1:1");
            let filters = netlink.objects(ObjectKind::Filter, &[index]).unwrap();
            assert_eq!(filters.len(), 2, "{filters:?}");
            netlink.delete_object(&filters[0]).unwrap();
            assert_eq!(netlink.objects(ObjectKind::Filter, &[index]).unwrap(), filters[1..]);
            let said = netlink.make_object(&filters[0], false).unwrap_err().to_string();
            assert!(said.contains("who made it"), "{said}");
        });
    }

    proptest! {
        #[test]
        fn no_message_makes_it_panic(body in prop::collection::vec(any::<u8>(), 0..80)) {
            use ObjectKind::{
                Address, Class, Filter, Forwarding, Neighbour, NextHop, Qdisc, Route, Rule,
            };
            for kind in
                [Address, Route, Rule, Neighbour, NextHop, Forwarding, Qdisc, Class, Filter]
            {
                let _ = Object::from_body(kind, body.clone(), None);
            }
        }
    }
}
