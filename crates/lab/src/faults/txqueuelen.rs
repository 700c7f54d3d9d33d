//! The host's own device holds so few packets that it drops a sender's bursts, like a driver with a shortened ring. A
//! TUN device uses the length for its own ring (drivers/net/tun.c, `tun_queue_resize`).

use serde::Deserialize;

use super::{Fault, FaultTarget, Kind, Undo, read};
use crate::error::LabError;
use crate::host_name::HostName;

pub(super) const KIND: Kind = Kind {
    id: "txqueuelen",
    summary: "the host's device queues at most this many packets and drops the rest",
    example: "host = \"near\"\npackets = 5",
    read: read::<QueueLength>,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct QueueLength {
    host: HostName,
    packets: u32,
}

impl Fault for QueueLength {
    fn host(&self) -> HostName {
        self.host
    }

    fn plant(&self, site: FaultTarget<'_>) -> Result<Undo, LabError> {
        site.host.netlink(|netlink| {
            let index = netlink.link(site.host.device())?.index;
            netlink.set_tx_queue_len(index, self.packets)
        })?;
        Ok(None)
    }

    fn read_back(&self, site: FaultTarget<'_>) -> Result<String, LabError> {
        let link = site.host.netlink(|netlink| netlink.link(site.host.device()))?;
        Ok(format!("txqueuelen {}", link.tx_queue_len))
    }
}
