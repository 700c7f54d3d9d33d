//! Packet filter rules of nf_tables that drop packets, and their counts
//! (`NFT_MSG_GETRULE`; include/uapi/linux/netfilter/nf_tables.h, nfnetlink.h). Rules that the program
//! iptables adds through nf_tables are included; rules of the older x_tables are not.

use netlink_sys::protocols::NETLINK_NETFILTER;

use crate::NetlinkError;
use crate::raw::{RawMessage, attributes};
use crate::socket::NetlinkSocket;

const NFNL_SUBSYS_NFTABLES: u16 = 10;
const NFT_MSG_NEWRULE: u16 = 6;
const NFT_MSG_GETRULE: u16 = 7;
/// `struct nfgenmsg`: family, version, resource.
const HEADER_BYTES: usize = 4;
const NFTA_RULE_EXPRESSIONS: u16 = 4;
const NFTA_EXPR_NAME: u16 = 1;
const NFTA_EXPR_DATA: u16 = 2;
const NFTA_COUNTER_PACKETS: u16 = 2;
const NFTA_IMMEDIATE_DATA: u16 = 2;
const NFTA_DATA_VERDICT: u16 = 2;
const NFTA_VERDICT_CODE: u16 = 1;
const NF_DROP: u32 = 0;

/// The rules of a network namespace, all families together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PacketFilter {
    /// Number of rules.
    pub rules: u64,
    /// Rules that drop or reject matching packets.
    pub drop_rules: u64,
    /// Dropping rules without a counter.
    pub uncounted_drop_rules: u64,
    /// Packets that matched the dropping rules with a counter.
    pub dropped_packets: u64,
    /// Rules that match only up to a rate, as policers do.
    pub limit_rules: u64,
}

/// The rules of the calling thread's network namespace.
pub fn packet_filter() -> Result<PacketFilter, NetlinkError> {
    let mut netlink = NetlinkSocket::open(NETLINK_NETFILTER)?;
    let question = RawMessage {
        kind: NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETRULE,
        body: vec![0; HEADER_BYTES],
    };
    let replies = netlink.dump("list the rules of the packet filter", question)?;
    Ok(sum(&replies))
}

pub(crate) fn sum(replies: &[RawMessage]) -> PacketFilter {
    let mut filter = PacketFilter::default();
    for reply in replies {
        if reply.kind == NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWRULE {
            add(&mut filter, reply);
        }
    }
    filter
}

fn add(filter: &mut PacketFilter, rule: &RawMessage) {
    let (mut counted, mut drops, mut limits) = (None, false, false);
    let list = value(rule.attributes(HEADER_BYTES), NFTA_RULE_EXPRESSIONS).unwrap_or_default();
    for (_, expression) in attributes(list) {
        let name = value(attributes(expression), NFTA_EXPR_NAME).unwrap_or_default();
        let data = value(attributes(expression), NFTA_EXPR_DATA).unwrap_or_default();
        match name.strip_suffix(b"\0").unwrap_or(name) {
            b"counter" => counted = packets(data).or(counted),
            b"immediate" => drops |= is_drop(data),
            b"reject" => drops = true,
            b"limit" => limits = true,
            _ => {}
        }
    }
    filter.rules += 1;
    filter.limit_rules += u64::from(limits);
    if drops {
        filter.drop_rules += 1;
        filter.uncounted_drop_rules += u64::from(counted.is_none());
        filter.dropped_packets = filter.dropped_packets.saturating_add(counted.unwrap_or(0));
    }
}

fn value<'a>(mut list: impl Iterator<Item = (u16, &'a [u8])>, wanted: u16) -> Option<&'a [u8]> {
    list.find(|(kind, _)| *kind == wanted).map(|(_, value)| value)
}

/// netfilter's numbers are in network byte order.
fn packets(counter: &[u8]) -> Option<u64> {
    let packets = value(attributes(counter), NFTA_COUNTER_PACKETS)?;
    packets.first_chunk().map(|bytes| u64::from_be_bytes(*bytes))
}

fn is_drop(immediate: &[u8]) -> bool {
    let code = || {
        let data = value(attributes(immediate), NFTA_IMMEDIATE_DATA)?;
        let verdict = value(attributes(data), NFTA_DATA_VERDICT)?;
        let code = value(attributes(verdict), NFTA_VERDICT_CODE)?;
        code.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
    };
    code() == Some(NF_DROP)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw::attribute;
    use goodput_testing::in_namespace;
    use proptest::prelude::*;

    fn expression(name: &[u8], data: &[u8]) -> Vec<u8> {
        let inner =
            [attribute(NFTA_EXPR_NAME, &[name, b"\0"].concat()), attribute(NFTA_EXPR_DATA, data)];
        attribute(1, &inner.concat())
    }

    fn verdict(code: u32) -> Vec<u8> {
        let code = attribute(NFTA_VERDICT_CODE, &code.to_be_bytes());
        attribute(NFTA_IMMEDIATE_DATA, &attribute(NFTA_DATA_VERDICT, &code))
    }

    fn rule(expressions: &[Vec<u8>]) -> RawMessage {
        let mut body = vec![0; HEADER_BYTES];
        body.extend(attribute(NFTA_RULE_EXPRESSIONS, &expressions.concat()));
        RawMessage { kind: NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWRULE, body }
    }

    #[test]
    fn what_drops_is_distinguished_from_what_lets_pass() {
        let counter = expression(b"counter", &attribute(2, &7u64.to_be_bytes()));
        let replies = [
            rule(&[counter.clone(), expression(b"immediate", &verdict(0))]),
            rule(&[counter, expression(b"immediate", &verdict(1))]),
            rule(&[expression(b"limit", &[]), expression(b"immediate", &verdict(0))]),
            RawMessage { kind: 3, body: Vec::new() },
        ];
        let expected = PacketFilter {
            rules: 3,
            drop_rules: 2,
            uncounted_drop_rules: 1,
            dropped_packets: 7,
            limit_rules: 1,
        };
        assert_eq!(sum(&replies), expected);
    }

    #[test]
    fn a_new_namespace_has_no_rules() {
        in_namespace(|| match packet_filter() {
            Ok(filter) => assert_eq!(filter, PacketFilter::default()),
            // A kernel without nf_tables.
            Err(error) => assert!(error.errno().is_some(), "{error}"),
        });
    }

    proptest! {
        #[test]
        fn no_reply_makes_it_panic(body in prop::collection::vec(0u8..12, 0..120)) {
            let kind = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWRULE;
            let _ = sum(&[RawMessage { kind, body }]);
        }
    }
}
