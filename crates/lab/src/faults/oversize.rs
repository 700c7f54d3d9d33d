//! An element that takes a super-packet of segmentation offload for one packet that is too long: what
//! is longer than the limit is dropped, though each of its segments would pass (nft(8), `meta length`).

use serde::Deserialize;

use super::{Fault, Kind, Site, Undo, read};
use crate::error::LabError;
use crate::nft;
use crate::scenario::{HostName, Need};

pub(super) const KIND: Kind = Kind {
    id: "oversize",
    summary: "the host drops what it receives if it is longer than so many bytes, super-packets too",
    example: "host = \"far\"\nbytes = 1500",
    read: read::<Oversize>,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Oversize {
    host: HostName,
    bytes: u32,
}

impl Oversize {
    fn failed(&self, why: String) -> LabError {
        LabError::Fault { kind: KIND.id, host: self.host.to_string(), why }
    }

    fn rules(&self) -> String {
        format!(
            "table inet goodput_lab_oversize {{\n chain drop_long {{\n type filter hook prerouting priority -300\n \
             iifname != \"lo\" meta length > {} drop\n }}\n}}\n",
            self.bytes
        )
    }
}

impl Fault for Oversize {
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
