//! The host's own device on the path carries less, or more, than the device at the other end of its cable: a mistake
//! that no router reports.

use serde::Deserialize;

use super::{Fault, FaultTarget, Kind, Undo, read};
use crate::error::LabError;
use crate::host_name::HostName;

pub(super) const KIND: Kind = Kind {
    id: "mtu",
    summary: "the MTU of the host's device, whatever the other end's is",
    example: "host = \"far\"\nbytes = 1400",
    read: read::<Mtu>,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mtu {
    host: HostName,
    bytes: u32,
}

impl Fault for Mtu {
    fn host(&self) -> HostName {
        self.host
    }

    fn plant(&self, site: FaultTarget<'_>) -> Result<Undo, LabError> {
        site.host.netlink(|netlink| {
            let index = netlink.link(site.host.device())?.index;
            netlink.set_mtu(index, self.bytes)
        })?;
        Ok(None)
    }

    fn read_back(&self, site: FaultTarget<'_>) -> Result<String, LabError> {
        let link = site.host.netlink(|netlink| netlink.link(site.host.device()))?;
        Ok(format!("mtu {}", link.mtu))
    }
}
