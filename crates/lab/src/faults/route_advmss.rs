//! An `advmss` on the host's routes: the largest segment that it offers to take (ip-route(8)).

use serde::Deserialize;

use super::{Fault, FaultTarget, Kind, Undo, read};
use crate::error::LabError;
use crate::host_name::HostName;
use crate::limits::Limits;
use crate::route_metrics;

pub(super) const KIND: Kind = Kind {
    id: "route-advmss",
    summary: "the host's routes advertise no larger segments than this",
    example: "host = \"far\"\nbytes = 536",
    read: read::<RouteAdvmss>,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RouteAdvmss {
    host: HostName,
    bytes: u32,
}

impl Fault for RouteAdvmss {
    fn host(&self) -> HostName {
        self.host
    }

    fn limits(&self) -> Limits {
        Limits { segment_bytes: Some(self.bytes), ..Limits::default() }
    }

    fn plant(&self, site: FaultTarget<'_>) -> Result<Undo, LabError> {
        route_metrics::change(site.host, |metrics| metrics.advmss = Some(self.bytes))?;
        Ok(None)
    }

    fn read_back(&self, site: FaultTarget<'_>) -> Result<String, LabError> {
        Ok(format!("advmss {:?}", route_metrics::read(site.host, |metrics| metrics.advmss)?))
    }
}
