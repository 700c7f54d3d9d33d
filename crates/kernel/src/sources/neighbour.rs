//! Whether the path's next hop answers for its address.

use std::net::IpAddr;

use goodput_model::{Missing, Snapshot};
use goodput_netlink::Netlink;

use super::Source;
use crate::Context;
use crate::context::missing;

pub(super) struct Neighbour;

impl Source for Neighbour {
    fn id(&self) -> &'static str {
        "neighbour"
    }

    fn summary(&self) -> &'static str {
        "the next hop of the path, and the state of its hardware address"
    }

    fn can_run(&self, context: &Context) -> Result<(), Missing> {
        peer(context).map(drop)
    }

    fn snapshot(&self, context: &Context, snapshot: &mut Snapshot) -> Result<(), Missing> {
        let peer = peer(context)?;
        let mut netlink = Netlink::open().map_err(missing)?;
        let route = netlink.route_to(peer, context.scope).map_err(missing)?;
        let next_hop = route.gateway.unwrap_or(peer);
        let index = route
            .device
            .ok_or_else(|| Missing::because(format!("the route to {peer} has no device")))?;
        if netlink.link_by_index(index).map_err(missing)?.loopback {
            return Err(Missing::because("the peer is this host itself"));
        }
        snapshot.put("neighbour.next_hop", next_hop.to_string());
        match netlink.neighbour(index, next_hop) {
            Ok(found) => snapshot.put("neighbour.state", found.state.name()),
            Err(error) if error.not_found() => {
                snapshot
                    .lacks("neighbour.state", "the kernel has not resolved its address recently");
            }
            Err(error) => snapshot.lacks("neighbour.state", error.to_string()),
        }
        Ok(())
    }

    fn lasts(&self, name: &str) -> bool {
        name == "next_hop"
    }
}

fn peer(context: &Context) -> Result<IpAddr, Missing> {
    context.peer.ok_or_else(|| Missing::because("no peer to find a next hop to"))
}
