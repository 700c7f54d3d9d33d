//! An `mtu` on the host's routes: larger packets can't use them (ip-route(8)). On a router it stands for a link behind
//! it that carries less than the links before it, as a tunnel does.

use serde::Deserialize;

use super::{Fault, FaultTarget, Kind, Undo, read};
use crate::error::LabError;
use crate::host_name::HostName;
use crate::route_metrics;

pub(super) const KIND: Kind = Kind {
    id: "route-mtu",
    summary: "the host's routes towards the other end carry no larger packets than this",
    example: "host = \"far\"\nbytes = 1400",
    read: read::<RouteMtu>,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RouteMtu {
    host: HostName,
    bytes: u32,
}

impl Fault for RouteMtu {
    fn host(&self) -> HostName {
        self.host
    }

    fn plant(&self, site: FaultTarget<'_>) -> Result<Undo, LabError> {
        route_metrics::change(site.host, |metrics| metrics.mtu = Some(self.bytes))?;
        Ok(None)
    }

    fn read_back(&self, site: FaultTarget<'_>) -> Result<String, LabError> {
        Ok(format!("mtus {:?}", route_metrics::read(site.host, |metrics| metrics.mtu)?))
    }
}
