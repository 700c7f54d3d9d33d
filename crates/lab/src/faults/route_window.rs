//! A `window` on the host's route to the other end: the largest window TCP advertises over it
//! (ip-route(8)).

use std::net::IpAddr;

use goodput_model::units::Bytes;
use serde::Deserialize;

use super::{Fault, Kind, Site, Undo, read};
use crate::error::LabError;
use crate::scenario::HostName;
use crate::scenario::amount;

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

    fn plant(&self, site: Site<'_>) -> Result<Undo, LabError> {
        let window = u32::try_from(self.window.0).map_err(|_| LabError::Fault {
            kind: KIND.id,
            host: self.host.to_string(),
            why: "window must be less than 4G".into(),
        })?;
        site.host.netlink(|netlink| {
            let device = netlink.link(site.host.device())?.index;
            for mut route in netlink.routes()? {
                let unicast_of_main = route.table == 254 && route.kind == 1;
                if unicast_of_main && route.device == Some(device) && !is_link_local(&route) {
                    route.metrics.window = Some(window);
                    netlink.replace_route(&route)?;
                }
            }
            Ok(())
        })?;
        Ok(None)
    }

    fn read_back(&self, site: Site<'_>) -> Result<String, LabError> {
        let windows = site.host.netlink(|netlink| {
            let device = netlink.link(site.host.device())?.index;
            let routes = netlink.routes()?.into_iter().filter(|route| route.table == 254);
            let routes = routes.filter(|route| route.device == Some(device));
            Ok(routes.filter_map(|route| route.metrics.window).collect::<Vec<_>>())
        })?;
        Ok(format!("windows {windows:?}"))
    }
}

fn is_link_local(route: &goodput_netlink::Route) -> bool {
    match route.destination {
        Some((IpAddr::V6(network), _)) => network.is_unicast_link_local() || network.is_multicast(),
        _ => false,
    }
}
