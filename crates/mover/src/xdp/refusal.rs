//! Why frames can't be sent, and what would be needed, in words.

use std::net::IpAddr;

use goodput_netlink::NetlinkError;
use rustix::io::Errno;

use crate::error::{MoveError, Unsupported};
use crate::flow::Flow;

/// The mover's id.
pub(crate) const ID: &str = "xdp";

/// What helps where frames can't be sent.
const OTHER_MOVER: &str = "choose another mover, such as gso";

/// Why frames can't be sent on a path.
#[derive(Debug)]
pub(super) enum Refusal {
    /// It can't be done there.
    Unsupported(Unsupported),
    /// A wait failed.
    Failed(MoveError),
}

impl Refusal {
    /// The error of `flow`.
    pub(super) fn of(self, flow: &Flow) -> MoveError {
        match self {
            Self::Unsupported(why) => MoveError::Unsupported { flow: flow.config.id, why },
            Self::Failed(why) => why,
        }
    }
}

impl From<Unsupported> for Refusal {
    fn from(why: Unsupported) -> Self {
        Self::Unsupported(why)
    }
}

impl From<MoveError> for Refusal {
    fn from(why: MoveError) -> Self {
        Self::Failed(why)
    }
}

fn refused(why: impl Into<String>, needs: impl Into<String>) -> Unsupported {
    Unsupported { mover: ID.into(), why: why.into(), needs: needs.into() }
}

/// No AF_XDP socket (`xsk_create`, net/xdp/xsk.c).
pub(super) fn not_made(cause: Errno) -> Unsupported {
    match cause {
        Errno::AFNOSUPPORT => refused(
            "this kernel has no AF_XDP sockets",
            "it needs Linux 5.4 or later, built with CONFIG_XDP_SOCKETS",
        ),
        Errno::PERM | Errno::ACCESS => refused(
            "this process may not have an AF_XDP socket",
            "it needs CAP_NET_RAW over its network namespace: run it as root, and a server with --no-sandbox",
        ),
        Errno::MFILE | Errno::NFILE => refused(
            format!("no AF_XDP socket available: {cause}"),
            "use fewer flows or raise ulimit -n",
        ),
        cause => refused(format!("the kernel refuses an AF_XDP socket: {cause}"), OTHER_MOVER),
    }
}

/// The memory of `bytes` was not taken (`xdp_umem_create`, net/xdp/xdp_umem.c), or no ring.
pub(super) fn not_registered(cause: Errno, bytes: usize) -> Unsupported {
    let kib = bytes.div_ceil(1024);
    let needs = match cause {
        Errno::NOBUFS | Errno::NOMEM => {
            format!(
                "raise the limit on locked memory by {kib} KiB for each flow (ulimit -l), or use fewer flows"
            )
        }
        _ => OTHER_MOVER.into(),
    };
    refused(format!("the kernel takes no memory for frames: {cause}"), needs)
}

/// The socket is not bound to a queue of `device` (`xsk_bind`, net/xdp/xsk.c).
pub(super) fn not_bound(cause: Errno, device: &str, queues: u32) -> Unsupported {
    match cause {
        Errno::BUSY => refused(
            format!(
                "each flow takes a queue of {device}, and other AF_XDP sockets have all (of {queues})"
            ),
            format!(
                "use fewer flows or end the other program, or give the device more queues (ethtool -L {device})"
            ),
        ),
        Errno::INVAL => refused(
            format!("an AF_XDP socket can't use {device}: {cause}"),
            "it needs Linux 5.4 or later",
        ),
        Errno::NETDOWN => {
            refused(format!("{device} is down"), format!("set it up (ip link set {device} up)"))
        }
        cause => refused(format!("an AF_XDP socket can't use {device}: {cause}"), OTHER_MOVER),
    }
}

/// The kernel does not report the path.
pub(super) fn unknown_path(cause: &NetlinkError) -> Unsupported {
    refused(format!("the path to the peer is unknown: {cause}"), OTHER_MOVER)
}

/// The flow's socket does not report its ends.
pub(super) fn unknown_ends(cause: impl std::fmt::Display) -> Unsupported {
    refused(format!("the flow's socket has no ends: {cause}"), OTHER_MOVER)
}

/// The peer is this host.
pub(super) fn own_host(peer: IpAddr) -> Unsupported {
    refused(
        format!("{peer} is this host itself, and this host ignores frames from its own address"),
        "test to another host, or to another network namespace",
    )
}

/// No single host is at the far end.
pub(super) fn not_unicast(peer: IpAddr) -> Unsupported {
    refused(format!("the route to {peer} does not lead to one host"), OTHER_MOVER)
}

/// The route has no device.
pub(super) fn no_device(peer: IpAddr) -> Unsupported {
    refused(format!("the route to {peer} names no device"), OTHER_MOVER)
}

/// The device carries no Ethernet frames.
pub(super) fn not_ethernet(peer: IpAddr, device: &str) -> Unsupported {
    refused(
        format!(
            "the route to {peer} leads through {device}, which has no Ethernet header, such as a tunnel"
        ),
        "test to an address behind an Ethernet device, or choose another mover, such as gso",
    )
}

/// The datagrams are too long for the path.
pub(super) fn too_long(size: usize, overhead: usize, mtu: usize) -> Unsupported {
    refused(
        format!(
            "datagrams of {size} bytes and {overhead} bytes of headers exceed the MTU of {mtu} bytes, and no frame can be cut"
        ),
        format!("choose a --chunk of at most {}", mtu.saturating_sub(overhead)),
    )
}

/// The next hop does not tell its hardware address.
pub(super) fn no_neighbour(next_hop: IpAddr, device: &str, state: &str) -> Unsupported {
    refused(
        format!(
            "the hardware address of the next hop {next_hop} on {device} is unknown (neighbour state: {state})"
        ),
        format!(
            "check that the next hop is up, or set its address: ip neighbour replace {next_hop} lladdr ADDRESS dev {device}"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_says_what_it_takes() {
        let words = |why: Unsupported| why.to_string();
        assert!(words(not_made(Errno::AFNOSUPPORT)).contains("CONFIG_XDP_SOCKETS"));
        assert!(words(not_made(Errno::PERM)).contains("CAP_NET_RAW"));
        assert!(words(not_registered(Errno::NOBUFS, 1 << 20)).contains("by 1024 KiB"));
        let busy = words(not_bound(Errno::BUSY, "eth0", 4));
        assert!(busy.contains("all (of 4)") && busy.contains("ethtool -L eth0"), "{busy}");
        let long = words(too_long(1473, 28, 1500));
        assert!(long.contains("MTU of 1500") && long.ends_with("at most 1472"), "{long}");
        let tunnel = words(not_ethernet("192.0.2.1".parse().unwrap(), "tun0"));
        assert!(tunnel.contains("tun0") && tunnel.contains("Ethernet device"), "{tunnel}");
    }
}
