//! An element that mistakes a super-packet of segmentation offload for one packet that is too long: it drops anything
//! above the limit, though each of the segments would pass (nft(8), `meta length`).

use serde::Deserialize;

use super::filter_rules::FilterRules;
use super::{Kind, read};
use crate::host_name::HostName;

pub(super) const KIND: Kind = Kind {
    id: "oversize",
    summary: "the host drops received packets longer than this, super-packets too",
    example: "host = \"far\"\nbytes = 1500",
    read: read::<Oversize>,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Oversize {
    host: HostName,
    bytes: u32,
}

impl FilterRules for Oversize {
    const KIND: &'static Kind = &KIND;

    fn host(&self) -> HostName {
        self.host
    }

    fn rules(&self) -> String {
        format!(
            "table inet goodput_lab_oversize {{\n chain drop_long {{\n type filter hook prerouting priority -300\n \
             iifname != \"lo\" meta length > {} drop\n }}\n}}\n",
            self.bytes
        )
    }
}
