//! Metrics of the routes over a host's path device, for TCP and IP (ip-route(8)).

use std::net::IpAddr;

use goodput_netlink::{Route, RouteMetrics};

use crate::error::LabError;
use crate::host::Host;

/// The main table, `RT_TABLE_MAIN` of include/uapi/linux/rtnetlink.h.
const MAIN: u32 = 254;
/// `RTN_UNICAST`.
const UNICAST: u8 = 1;

/// Changes the metrics of every ordinary route over the path device.
pub(crate) fn change(
    host: &Host,
    edit: impl Fn(&mut RouteMetrics) + Send + Sync,
) -> Result<(), LabError> {
    host.netlink(|netlink| {
        let device = netlink.link(host.device())?.index;
        for mut route in netlink.routes()? {
            let ordinary = route.table == MAIN && route.kind == UNICAST;
            if ordinary && route.device == Some(device) && !is_link_local(&route) {
                edit(&mut route.metrics);
                netlink.replace_route(&route)?;
            }
        }
        Ok(())
    })
}

/// One metric of all routes over the path device that have it.
pub(crate) fn read(
    host: &Host,
    metric: impl Fn(&RouteMetrics) -> Option<u32> + Send + Sync,
) -> Result<Vec<u32>, LabError> {
    host.netlink(|netlink| {
        let device = netlink.link(host.device())?.index;
        let routes = netlink.routes()?.into_iter();
        let over = routes.filter(|route| route.table == MAIN && route.device == Some(device));
        Ok(over.filter_map(|route| metric(&route.metrics)).collect())
    })
}

fn is_link_local(route: &Route) -> bool {
    match route.destination {
        Some((IpAddr::V6(network), _)) => network.is_unicast_link_local() || network.is_multicast(),
        _ => false,
    }
}
