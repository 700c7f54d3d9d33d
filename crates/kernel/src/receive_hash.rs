//! How the device of a path spreads received packets over its queues.

use goodput_model::{Missing, ReceiveHash, Transport};
use goodput_netlink::receive_hash::{FlowKind, hashes_ports, receive_hash as read};

use crate::Context;
use crate::context::missing;

/// The hash by which the path's device chooses the receive queue of a flow. Missing if it has no hash, if the hash
/// leaves out the ports of such flows, or if its function is not Toeplitz's.
pub fn receive_hash(context: &Context, transport: Transport) -> Result<ReceiveHash, Missing> {
    let device = context.device_name()?;
    let because = |why: &str| Missing::because(format!("{device} {why}"));
    let hash = read(&device).map_err(|error| match error.not_supported() {
        true => because("has no receive hash (RSS)"),
        false => missing(error),
    })?;
    let queues = hash.table.iter().any(|queue| *queue != hash.table[0]);
    if !queues {
        return Err(because("has one receive queue, or no hash over several"));
    }
    if !hash.is_toeplitz {
        return Err(because("spreads packets by a hash other than Toeplitz's"));
    }
    let v4 = context.peer.is_some_and(|peer| peer.to_canonical().is_ipv4());
    let kind = match (transport, v4) {
        (Transport::Tcp, true) => FlowKind::TcpV4,
        (Transport::Tcp, false) => FlowKind::TcpV6,
        (Transport::Udp, true) => FlowKind::UdpV4,
        (Transport::Udp, false) => FlowKind::UdpV6,
    };
    if !hashes_ports(&device, kind).map_err(missing)? {
        return Err(because(
            "spreads such flows by their addresses alone (ethtool -n DEVICE rx-flow-hash; \
             ethtool -N DEVICE rx-flow-hash udp4 sdfn adds the ports)",
        ));
    }
    let queue = |queue: &u32| u16::try_from(*queue).ok();
    let table = hash.table.iter().map(queue).collect::<Option<_>>();
    let sound = table.map(|table| ReceiveHash { device: device.clone(), key: hash.key, table });
    sound
        .filter(ReceiveHash::is_sound)
        .ok_or_else(|| because("has a hash key or table of unknown length"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_spreads_over_nothing_and_says_so() {
        let context = Context { device: Some("lo".into()), ..Context::default() };
        let why = receive_hash(&context, Transport::Tcp).unwrap_err().to_string();
        assert_eq!(why, "lo has no receive hash (RSS)");
    }
}
