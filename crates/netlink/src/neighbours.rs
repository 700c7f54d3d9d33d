//! Neighbours: whether the next hop answers for its address (`RTM_GETNEIGH`; arp(7)).

use std::net::IpAddr;

use netlink_packet_route::neighbour::{NeighbourAttribute, NeighbourMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use crate::{Netlink, NetlinkError};

/// What the kernel knows about a neighbour's hardware address (`NUD_*`,
/// include/uapi/linux/neighbour.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NeighbourState {
    /// Nothing yet.
    None,
    /// It is being asked for.
    Incomplete,
    /// It was confirmed recently.
    Reachable,
    /// It was known, and will be confirmed when next used.
    Stale,
    /// It is in use and about to be confirmed.
    Delay,
    /// It is in use, and the neighbour is being asked.
    Probe,
    /// The neighbour did not answer.
    Failed,
    /// This link needs none.
    NoArp,
    /// The administrator set it.
    Permanent,
    /// A state that this program does not know.
    Other(u16),
}

impl NeighbourState {
    /// The name that `ip neighbour` prints, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Incomplete => "incomplete",
            Self::Reachable => "reachable",
            Self::Stale => "stale",
            Self::Delay => "delay",
            Self::Probe => "probe",
            Self::Failed => "failed",
            Self::NoArp => "noarp",
            Self::Permanent => "permanent",
            Self::Other(_) => "unknown",
        }
    }

    fn from_bits(bits: u16) -> Self {
        match bits {
            0x00 => Self::None,
            0x01 => Self::Incomplete,
            0x02 => Self::Reachable,
            0x04 => Self::Stale,
            0x08 => Self::Delay,
            0x10 => Self::Probe,
            0x20 => Self::Failed,
            0x40 => Self::NoArp,
            0x80 => Self::Permanent,
            other => Self::Other(other),
        }
    }
}

/// One entry of the kernel's table of neighbours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Neighbour {
    /// What the kernel knows.
    pub state: NeighbourState,
    /// Its hardware address; empty while it is unknown.
    pub hardware_address: Vec<u8>,
}

impl Netlink {
    /// The neighbour with `address` on the link with number `index`. An error that is `not_found` means that the kernel
    /// has no entry. Linux 5.0 and later.
    pub fn neighbour(&mut self, index: u32, address: IpAddr) -> Result<Neighbour, NetlinkError> {
        let operation = format!("find the neighbour {address} on link {index}");
        let mut message = NeighbourMessage::default();
        message.header.family = match address {
            IpAddr::V4(_) => AddressFamily::Inet,
            IpAddr::V6(_) => AddressFamily::Inet6,
        };
        message.header.ifindex = index;
        message.attributes.push(NeighbourAttribute::Destination(address.into()));
        let replies = self.request(&operation, RouteNetlinkMessage::GetNeighbour(message), 0)?;
        let found = replies.iter().find_map(|reply| match reply {
            RouteNetlinkMessage::NewNeighbour(neighbour) => Some(neighbour_of(neighbour)),
            _ => None,
        });
        found.ok_or_else(|| NetlinkError::malformed(operation, "no neighbour in it"))
    }
}

fn neighbour_of(message: &NeighbourMessage) -> Neighbour {
    let hardware_address = message.attributes.iter().find_map(|attribute| match attribute {
        NeighbourAttribute::LinkLayerAddress(address) => Some(address.clone()),
        _ => None,
    });
    Neighbour {
        state: NeighbourState::from_bits(u16::from(message.header.state)),
        hardware_address: hardware_address.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;
    use goodput_testing::in_namespace;

    #[test]
    fn a_neighbour_that_was_never_asked_for_is_not_found_and_then_incomplete() {
        in_namespace(|| {
            let mut netlink = Netlink::open().unwrap();
            netlink.create_veth("left", "right").unwrap();
            let index = netlink.link("left").unwrap().index;
            let right = netlink.link("right").unwrap().index;
            netlink.add_address(index, "192.0.2.1".parse().unwrap(), 24).unwrap();
            netlink.set_up(index).unwrap();
            netlink.set_up(right).unwrap();
            let peer: IpAddr = "192.0.2.2".parse().unwrap();
            assert!(netlink.neighbour(index, peer).unwrap_err().not_found());
            let socket = UdpSocket::bind("192.0.2.1:0").unwrap();
            socket.send_to(b"x", (peer, 9)).unwrap();
            let asked = netlink.neighbour(index, peer).unwrap();
            assert!(
                matches!(asked.state, NeighbourState::Incomplete | NeighbourState::Failed),
                "{asked:?}"
            );
            assert!(asked.hardware_address.is_empty(), "{asked:?}");
        });
    }

    #[test]
    fn each_bit_has_its_state_and_two_at_once_are_unknown() {
        assert_eq!(NeighbourState::from_bits(0x20).name(), "failed");
        assert_eq!(NeighbourState::from_bits(0x02).name(), "reachable");
        assert_eq!(NeighbourState::from_bits(0x22), NeighbourState::Other(0x22));
    }
}
