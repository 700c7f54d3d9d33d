//! A TCP option taken out of the SYNs on the way, as firewalls that normalise do: by the packet filter
//! (nft(8), `reset tcp option`), which overwrites it with no-operations.

use std::fmt;

use serde::Deserialize;

use super::{Fault, Kind, Site, Undo, read};
use crate::error::LabError;
use crate::nft;
use crate::scenario::{HostName, Need};

pub(super) const KIND: Kind = Kind {
    id: "syn-without",
    summary: "what passes the host's packet filter loses this TCP option",
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

impl SynWithout {
    fn failed(&self, why: String) -> LabError {
        LabError::Fault { kind: KIND.id, host: self.host.to_string(), why }
    }

    fn rules(&self) -> String {
        format!(
            "table inet goodput_syn_without {{\n chain strip {{\n type filter hook prerouting priority \
             -150\n tcp flags syn reset tcp option {}\n }}\n}}\n",
            self.option
        )
    }
}

impl Fault for SynWithout {
    fn host(&self) -> HostName {
        self.host
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::PacketFilter]
    }

    fn plant(&self, site: Site<'_>) -> Result<Undo, LabError> {
        nft::load(site.host, &self.rules()).map_err(|why| self.failed(why)).map(|()| None)
    }

    fn read_back(&self, site: Site<'_>) -> Result<String, LabError> {
        nft::list(site.host).map_err(|why| self.failed(why))
    }
}
