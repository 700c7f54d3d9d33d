//! A policer: packets beyond a rate that the host receives or forwards are dropped, not queued, by the kernel's packet
//! filter (nft(8), `limit rate over`).
//!
//! It counts packets, because its bucket in bytes is always a second deep (net/netfilter/nft_limit.c,
//! `nft_limit_init`), and assumes that each has full size. A super-packet counts as one packet too: on a link that
//! carries them whole, switch `tso` and `gso` off at the sender.

use goodput_model::units::BitRate;
use serde::Deserialize;

use super::filter_rules::FilterRules;
use super::{Kind, read};
use crate::amount;
use crate::host_name::HostName;
use crate::limits::Limits;

pub(super) const KIND: Kind = Kind {
    id: "policer",
    summary: "the host drops packets above a rate",
    example: "host = \"far\"\nrate = \"100mbit\"\nburst = 20",
    read: read::<Policer>,
};

/// A full-sized IP packet of Ethernet, bits.
const PACKET_BITS: f64 = 12_000.0;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Policer {
    host: HostName,
    #[serde(deserialize_with = "amount::rate")]
    rate: BitRate,
    /// Packets that the bucket holds.
    burst: u32,
}

impl FilterRules for Policer {
    const KIND: &'static Kind = &KIND;

    fn host(&self) -> HostName {
        self.host
    }

    fn limits(&self) -> Limits {
        let polices = self.host != HostName::Near;
        Limits { rate: polices.then_some(self.rate), ..Limits::default() }
    }

    /// Before routing, so that a router also polices packets that it would forward. Small packets, such as
    /// acknowledgements and those of the control connection, pass.
    fn rules(&self) -> String {
        let packets = (self.rate.0 / PACKET_BITS).round().max(1.0);
        format!(
            "table inet goodput_lab_policer {{\n chain police {{\n type filter hook prerouting priority -300\n \
             iifname != \"lo\" meta length > 1000 limit rate over {packets}/second burst {} packets drop\n }}\n}}\n",
            self.burst
        )
    }
}
