//! No report of packets that are too big: a firewall that filters all ICMP swallows the message on which path MTU
//! discovery depends (RFC 1191, RFC 8201), whether this host sends the message or forwards it.

use serde::Deserialize;

use super::filter_rules::FilterRules;
use super::{Kind, read};
use crate::host_name::HostName;

pub(super) const KIND: Kind = Kind {
    id: "icmp-filter",
    summary: "the host neither sends nor forwards reports that a packet is too big",
    example: "host = \"far\"",
    read: read::<IcmpFilter>,
};

const RULES: &str = "table inet goodput_lab_icmp {
 chain own { type filter hook output priority 0
  icmp type destination-unreachable icmp code 4 drop
  icmpv6 type packet-too-big drop
 }
 chain passed { type filter hook forward priority 0
  icmp type destination-unreachable icmp code 4 drop
  icmpv6 type packet-too-big drop
 }
}
";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct IcmpFilter {
    host: HostName,
}

impl FilterRules for IcmpFilter {
    const KIND: &'static Kind = &KIND;

    fn host(&self) -> HostName {
        self.host
    }

    fn rules(&self) -> String {
        RULES.into()
    }
}
