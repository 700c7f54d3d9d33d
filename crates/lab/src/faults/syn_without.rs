//! A TCP option removed from the SYNs on the path, as normalising firewalls do: by the packet filter (nft(8), `reset
//! tcp option`), which overwrites it with no-operations.

use std::fmt;

use serde::Deserialize;

use super::filter_rules::FilterRules;
use super::{Kind, read};
use crate::host_name::HostName;

pub(super) const KIND: Kind = Kind {
    id: "syn-without",
    summary: "the host's packet filter removes this TCP option",
    example: "host = \"far\"\noption = \"window\"",
    read: read::<SynWithout>,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SynWithout {
    host: HostName,
    option: TcpOption,
}

/// An option as nft(8) names it.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum TcpOption {
    Window,
    SackPerm,
    Timestamp,
}

impl fmt::Display for TcpOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Window => "window",
            Self::SackPerm => "sack-perm",
            Self::Timestamp => "timestamp",
        })
    }
}

impl FilterRules for SynWithout {
    const KIND: &'static Kind = &KIND;

    fn host(&self) -> HostName {
        self.host
    }

    fn rules(&self) -> String {
        format!(
            "table inet goodput_syn_without {{\n chain strip {{\n type filter hook prerouting priority \
             -150\n tcp flags syn reset tcp option {}\n }}\n}}\n",
            self.option
        )
    }
}
