//! The largest segment that SYNs offer, made smaller on the way, as firewalls and tunnels do: by the
//! packet filter (nft(8), `tcp option maxseg size set`).

use serde::Deserialize;

use super::{Fault, Kind, Site, Undo, read};
use crate::error::LabError;
use crate::nft;
use crate::scenario::{HostName, Need};

pub(super) const KIND: Kind = Kind {
    id: "syn-mss",
    summary: "what passes the host's packet filter may offer no larger segments than this",
    example: "host = \"far\"\nbytes = 536",
    read: read::<SynMss>,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SynMss {
    host: HostName,
    bytes: u16,
}

impl SynMss {
    fn failed(&self, why: String) -> LabError {
        LabError::Fault { kind: KIND.id, host: self.host.to_string(), why }
    }

    fn rules(&self) -> String {
        format!(
            "table inet goodput_syn_mss {{\n chain rewrite {{\n type filter hook prerouting priority \
             -150\n tcp flags syn tcp option maxseg size set {}\n }}\n}}\n",
            self.bytes
        )
    }
}

impl Fault for SynMss {
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
