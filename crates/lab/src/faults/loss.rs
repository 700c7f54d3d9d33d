//! Random loss of packets that the host receives, by the kernel's packet filter (nft(8), `numgen`).
//!
//! Unlike the loss of an emulated link, it needs no TUN device, but counts a super-packet as one packet: for packets as
//! on a wire, switch `tso` and `gso` off at the sender.

use serde::Deserialize;

use super::filter_rules::FilterRules;
use super::{Kind, read};
use crate::amount::{self, Percent};
use crate::host_name::HostName;

pub(super) const KIND: Kind = Kind {
    id: "loss",
    summary: "the host loses this share of the packets that it receives",
    example: "host = \"far\"\npercent = 1",
    read: read::<Loss>,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Loss {
    host: HostName,
    #[serde(deserialize_with = "amount::required")]
    percent: Percent,
}

impl FilterRules for Loss {
    const KIND: &'static Kind = &KIND;

    fn host(&self) -> HostName {
        self.host
    }

    /// Drops before routing, so that a router also loses packets that it would forward.
    fn rules(&self) -> String {
        let of_a_million = (self.percent.0 * 1e4).round() as u32;
        format!(
            "table inet goodput_lab {{\n chain lose {{\n type filter hook prerouting priority -300\n \
             iifname != \"lo\" numgen random mod 1000000 < {of_a_million} drop\n }}\n}}\n"
        )
    }
}
