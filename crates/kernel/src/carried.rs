//! What the device of a path carries.

use std::net::SocketAddr;

use goodput_model::Missing;
use goodput_netlink::Netlink;

use crate::context::missing;

/// Counts the bytes that the device of a path has carried since this was made, in both directions, whoever sent them.
#[derive(Debug)]
pub struct Carried {
    netlink: Netlink,
    device: String,
    at_first: u64,
}

impl Carried {
    /// Of the device by which packets go from `local` to `peer`, from now on.
    ///
    /// # Errors
    /// There is no route, or the kernel does not tell.
    pub fn of(local: SocketAddr, peer: SocketAddr) -> Result<Self, Missing> {
        let mut netlink = Netlink::open().map_err(missing)?;
        let scope = if let SocketAddr::V6(peer) = peer { peer.scope_id() } else { 0 };
        let route = netlink.route_from(local.ip(), peer.ip(), scope).map_err(missing)?;
        let index = route.device.ok_or_else(|| Missing::because("the route has no device"))?;
        let device = netlink.link_by_index(index).map_err(missing)?.name;
        let at_first = total(&mut netlink, &device)?;
        Ok(Self { netlink, device, at_first })
    }

    /// Bytes so far.
    ///
    /// # Errors
    /// The device is gone, or was replaced by one with a lower count.
    pub fn bytes(&mut self) -> Result<u64, Missing> {
        let now = total(&mut self.netlink, &self.device)?;
        let since = now.checked_sub(self.at_first);
        since.ok_or_else(|| Missing::because(format!("{} counts anew", self.device)))
    }
}

fn total(netlink: &mut Netlink, device: &str) -> Result<u64, Missing> {
    let stats = netlink.link(device).map_err(missing)?.stats;
    let stats = stats.ok_or_else(|| Missing::because(format!("{device} counts nothing")))?;
    Ok(stats.rx_bytes.wrapping_add(stats.tx_bytes))
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn what_crosses_a_device_is_counted() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let peer = socket.local_addr().unwrap();
        let mut carried = Carried::of(peer, peer).unwrap();
        socket.send_to(&[0; 1000], peer).unwrap();
        socket.recv_from(&mut [0; 1000]).unwrap();
        assert!(carried.bytes().unwrap() >= 1000);
    }
}
