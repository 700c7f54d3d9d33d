//! No word of packets that are too big: a firewall that filters all ICMP swallows the message by
//! which path MTU discovery lives (RFC 1191, RFC 8201), whether this host sends it or passes it on.

use serde::Deserialize;

use super::{Fault, Kind, Site, Undo, read};
use crate::error::LabError;
use crate::nft;
use crate::scenario::{HostName, Need};

pub(super) const KIND: Kind = Kind {
    id: "icmp-filter",
    summary: "the host tells nobody, and lets nobody tell, that a packet is too big",
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

impl IcmpFilter {
    fn failed(&self, why: String) -> LabError {
        LabError::Fault { kind: KIND.id, host: self.host.to_string(), why }
    }
}

impl Fault for IcmpFilter {
    fn host(&self) -> HostName {
        self.host
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::PacketFilter]
    }

    fn plant(&self, site: Site<'_>) -> Result<Undo, LabError> {
        nft::load(site.host, RULES).map_err(|why| self.failed(why)).map(|()| None)
    }

    fn read_back(&self, site: Site<'_>) -> Result<String, LabError> {
        nft::list(site.host).map_err(|why| self.failed(why))
    }
}
