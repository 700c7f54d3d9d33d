//! A `window` on the host's route to the other end: the largest window that TCP advertises over it (ip-route(8)).

use goodput_model::units::Bytes;
use serde::Deserialize;

use super::{Fault, FaultTarget, Kind, Undo, read};
use crate::amount;
use crate::error::LabError;
use crate::host_name::HostName;
use crate::route_metrics;

pub(super) const KIND: Kind = Kind {
    id: "route-window",
    summary: "the host's routes allow no larger receive window than this",
    example: "host = \"far\"\nwindow = \"64K\"",
    read: read::<RouteWindow>,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RouteWindow {
    host: HostName,
    #[serde(deserialize_with = "amount::required")]
    window: Bytes,
}

impl Fault for RouteWindow {
    fn host(&self) -> HostName {
        self.host
    }

    fn plant(&self, site: FaultTarget<'_>) -> Result<Undo, LabError> {
        let window = u32::try_from(self.window.0).map_err(|_| LabError::Fault {
            kind: KIND.id,
            host: self.host.to_string(),
            why: "window must be less than 4G".into(),
        })?;
        route_metrics::change(site.host, |metrics| metrics.window = Some(window))?;
        Ok(None)
    }

    fn read_back(&self, site: FaultTarget<'_>) -> Result<String, LabError> {
        Ok(format!("windows {:?}", route_metrics::read(site.host, |metrics| metrics.window)?))
    }
}
