//! The largest segment that SYNs offer, made smaller on the path, as firewalls and tunnels do: by the packet filter
//! (nft(8), `tcp option maxseg size set`).

use serde::Deserialize;

use super::filter_rules::FilterRules;
use super::{Kind, read};
use crate::host_name::HostName;
use crate::limits::Limits;

pub(super) const KIND: Kind = Kind {
    id: "syn-mss",
    summary: "the host's packet filter limits the segment size (MSS) in SYNs",
    example: "host = \"far\"\nbytes = 536",
    read: read::<SynMss>,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SynMss {
    host: HostName,
    bytes: u16,
}

impl FilterRules for SynMss {
    const KIND: &'static Kind = &KIND;

    fn host(&self) -> HostName {
        self.host
    }

    fn limits(&self) -> Limits {
        Limits { segment_bytes: Some(self.bytes.into()), ..Limits::default() }
    }

    fn rules(&self) -> String {
        format!(
            "table inet goodput_syn_mss {{\n chain rewrite {{\n type filter hook prerouting priority \
             -150\n tcp flags syn tcp option maxseg size set {}\n }}\n}}\n",
            self.bytes
        )
    }
}
