//! The route to the peer: how the kernel would send now, and what the route prescribes for TCP.

use std::net::IpAddr;

use goodput_model::{Missing, NOT_SET, Snapshot};
use goodput_netlink::routes::destination_text;
use goodput_netlink::{Netlink, Route, RouteMetrics};

use super::Source;
use crate::Context;
use crate::context::missing;

pub(super) struct RouteSource;

impl Source for RouteSource {
    fn id(&self) -> &'static str {
        "route"
    }

    fn summary(&self) -> &'static str {
        "the route to the peer: device, gateway, source, and its TCP metrics"
    }

    fn can_run(&self, context: &Context) -> Result<(), Missing> {
        peer(context).map(drop)
    }

    fn snapshot(&self, context: &Context, snapshot: &mut Snapshot) -> Result<(), Missing> {
        let peer = peer(context)?;
        let mut netlink = Netlink::open().map_err(missing)?;
        let chosen = netlink.route_to(peer, context.scope).map_err(missing)?;
        decision(snapshot, &mut netlink, &chosen);
        // Kernels before 4.13 (IPv4) and 4.20 (IPv6) can't name the matching entry.
        match netlink.entry_for(peer, context.scope) {
            Ok(entry) => {
                snapshot.put("route.destination", destination_text(&entry));
                metrics(snapshot, &entry.metrics);
            }
            Err(error) => {
                snapshot.lacks("route.destination", error.to_string());
                metrics(snapshot, &chosen.metrics);
            }
        }
        Ok(())
    }

    fn lasts(&self, _name: &str) -> bool {
        true
    }
}

fn peer(context: &Context) -> Result<IpAddr, Missing> {
    context.peer.ok_or_else(|| Missing::because("no peer to find a route to"))
}

fn decision(snapshot: &mut Snapshot, netlink: &mut Netlink, chosen: &Route) {
    match chosen.device.map(|index| netlink.link_by_index(index)) {
        Some(Ok(link)) => snapshot.put("route.device", link.name),
        Some(Err(error)) => snapshot.lacks("route.device", error.to_string()),
        None => snapshot.lacks("route.device", "the route has no device"),
    }
    match chosen.gateway {
        Some(gateway) => snapshot.put("route.gateway", gateway.to_string()),
        None => snapshot.lacks("route.gateway", "the peer is reached without a gateway"),
    }
    match chosen.preferred_source {
        Some(source) => snapshot.put("route.source", source.to_string()),
        None => snapshot.lacks("route.source", "the kernel named no source address"),
    }
}

fn metrics(snapshot: &mut Snapshot, metrics: &RouteMetrics) {
    let numbers = [
        ("window", metrics.window),
        ("mtu", metrics.mtu),
        ("advmss", metrics.advmss),
        ("initcwnd", metrics.initcwnd),
        ("initrwnd", metrics.initrwnd),
    ];
    for (name, value) in numbers {
        let name = format!("route.{name}");
        match value {
            Some(value) => snapshot.put(name, u64::from(value)),
            None => snapshot.lacks(name, NOT_SET),
        }
    }
    match &metrics.congctl {
        Some(congctl) => snapshot.put("route.congctl", congctl.as_str()),
        None => snapshot.lacks("route.congctl", NOT_SET),
    }
}
