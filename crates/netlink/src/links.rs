//! Links (network devices): their properties and counters, and creating and changing them.

use std::os::fd::{AsRawFd, BorrowedFd};

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkLayerType, LinkMessage,
    Stats64,
};

use crate::{Netlink, NetlinkError};

/// One link.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Link {
    /// Its number in this namespace.
    pub index: u32,
    /// Its name in this namespace.
    pub name: String,
    /// Its hardware address; empty if it has none.
    pub address: Vec<u8>,
    /// Its type if it is virtual (`IFLA_INFO_KIND`): "veth", "bond", "tun"; `None` for
    /// hardware and the loopback device.
    pub kind: Option<String>,
    /// Whether it is the loopback device.
    pub loopback: bool,
    /// Whether its packets begin with an Ethernet header (`ARPHRD_ETHER`); tunnels have none.
    pub ethernet: bool,
    /// Whether the administrator set it up (`IFF_UP`).
    pub up: bool,
    /// Largest packet above the link layer, bytes.
    pub mtu: u32,
    /// The smallest `mtu` that its driver takes, bytes; `None` if it takes any.
    pub least_mtu: Option<u32>,
    /// The largest `mtu` that its driver takes, bytes; `None` if it takes any.
    pub most_mtu: Option<u32>,
    /// Length of the transmit queue, packets.
    pub tx_queue_len: u32,
    /// The bridge, bond or VRF it belongs to, by index.
    pub master_index: Option<u32>,
    /// The peer of a veth, or the lower device of a VLAN (`IFLA_LINK`), by index. The index belongs
    /// to another namespace if `peer_elsewhere` is set.
    pub peer_index: Option<u32>,
    /// Whether `peer_index` belongs to another namespace.
    pub peer_elsewhere: bool,
    /// Kind of its root queueing discipline.
    pub qdisc: Option<String>,
    /// Largest segment handed down before segmentation, bytes.
    pub gso_max_size: Option<u32>,
    /// Most packets into which such a segment may be cut.
    pub gso_max_segs: Option<u32>,
    /// How often the carrier came or went.
    pub carrier_changes: Option<u32>,
    /// Its counters.
    pub stats: Option<LinkStats>,
}

/// Counters of a link since its creation (`struct rtnl_link_stats64`, include/uapi/linux/if_link.h).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Bytes received.
    pub rx_bytes: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Packets received.
    pub rx_packets: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Bad packets received.
    pub rx_errors: u64,
    /// Packets that could not be sent.
    pub tx_errors: u64,
    /// Packets received and dropped for lack of room or interest.
    pub rx_dropped: u64,
    /// Packets dropped on the way out.
    pub tx_dropped: u64,
    /// Packets received with a wrong check sequence.
    pub rx_crc_errors: u64,
    /// Packets lost because the device's own buffer overflowed.
    pub rx_fifo_errors: u64,
    /// Packets lost because the host left the device no buffer.
    pub rx_missed_errors: u64,
    /// Packets received whose length was wrong.
    pub rx_length_errors: u64,
    /// Packets lost because the receive ring overflowed, for drivers that count them separately.
    pub rx_over_errors: u64,
    /// Packets received that did not end on a byte (alignment errors).
    pub rx_frame_errors: u64,
    /// Packets given up while sending, usually after too many collisions.
    pub tx_aborted_errors: u64,
    /// Packets that could not be sent for lack of a carrier.
    pub tx_carrier_errors: u64,
    /// Packets lost because the device's send buffer ran dry.
    pub tx_fifo_errors: u64,
    /// Late collisions while sending.
    pub tx_window_errors: u64,
    /// Collisions while sending.
    pub collisions: u64,
    /// Multicast packets received.
    pub multicast: u64,
}

impl Netlink {
    /// All links of this namespace.
    pub fn links(&mut self) -> Result<Vec<Link>, NetlinkError> {
        let question = RouteNetlinkMessage::GetLink(LinkMessage::default());
        let replies = self.dump("list the links", question)?;
        Ok(replies.iter().filter_map(link).collect())
    }

    /// The link called `name`.
    pub fn link(&mut self, name: &str) -> Result<Link, NetlinkError> {
        let mut message = LinkMessage::default();
        message.attributes.push(LinkAttribute::IfName(name.into()));
        self.one_link(&format!("read link {name}"), message)
    }

    /// The link with number `index`.
    pub fn link_by_index(&mut self, index: u32) -> Result<Link, NetlinkError> {
        self.one_link(&format!("read link {index}"), message_for(index))
    }

    /// Creates a pair of virtual Ethernet devices with these names, both down.
    pub fn create_veth(&mut self, name: &str, peer: &str) -> Result<(), NetlinkError> {
        self.veth(name, peer, &[])
    }

    /// The same, with up to `queues` queues in each direction at each end; only one is used
    /// at first.
    pub fn create_veth_with_queues(
        &mut self,
        name: &str,
        peer: &str,
        queues: u32,
    ) -> Result<(), NetlinkError> {
        let queues = [LinkAttribute::NumRxQueues(queues), LinkAttribute::NumTxQueues(queues)];
        self.veth(name, peer, &queues)
    }

    fn veth(&mut self, name: &str, peer: &str, more: &[LinkAttribute]) -> Result<(), NetlinkError> {
        let mut peer_message = LinkMessage::default();
        peer_message.attributes.push(LinkAttribute::IfName(peer.into()));
        peer_message.attributes.extend_from_slice(more);
        let data = InfoData::Veth(InfoVeth::Peer(peer_message));
        let info = vec![LinkInfo::Kind(InfoKind::Veth), LinkInfo::Data(data)];
        self.create(&format!("create the veth pair {name}, {peer}"), name, info, more)
    }

    /// Sets a link up.
    pub fn set_up(&mut self, index: u32) -> Result<(), NetlinkError> {
        let mut message = message_for(index);
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
        let question = RouteNetlinkMessage::SetLink(message);
        self.request(&format!("set link {index} up"), question, 0).map(drop)
    }

    /// Sets a link down, which removes its IPv6 addresses and the routes over it.
    pub fn set_down(&mut self, index: u32) -> Result<(), NetlinkError> {
        let mut message = message_for(index);
        message.header.change_mask = LinkFlags::Up;
        let question = RouteNetlinkMessage::SetLink(message);
        self.request(&format!("set link {index} down"), question, 0).map(drop)
    }

    /// Sets the largest packet of a link, bytes.
    pub fn set_mtu(&mut self, index: u32, mtu: u32) -> Result<(), NetlinkError> {
        self.set(&format!("set the mtu of link {index} to {mtu}"), index, LinkAttribute::Mtu(mtu))
    }

    /// Sets the length of the transmit queue of a link, packets.
    pub fn set_tx_queue_len(&mut self, index: u32, packets: u32) -> Result<(), NetlinkError> {
        let operation = format!("set the transmit queue of link {index} to {packets} packets");
        self.set(&operation, index, LinkAttribute::TxQueueLen(packets))
    }

    /// Sets the largest segment handed down to a link, bytes.
    pub fn set_gso_max_size(&mut self, index: u32, bytes: u32) -> Result<(), NetlinkError> {
        let operation = format!("set the largest segment of link {index} to {bytes} bytes");
        self.set(&operation, index, LinkAttribute::GsoMaxSize(bytes))
    }

    /// Sets the most packets in a segment handed down to a link.
    pub fn set_gso_max_segs(&mut self, index: u32, packets: u32) -> Result<(), NetlinkError> {
        let operation = format!("set the largest segment of link {index} to {packets} packets");
        self.set(&operation, index, LinkAttribute::GsoMaxSegs(packets))
    }

    /// Moves a link into another network namespace, where it arrives down and without addresses.
    pub fn move_to_netns(
        &mut self,
        index: u32,
        namespace: BorrowedFd<'_>,
    ) -> Result<(), NetlinkError> {
        let target = LinkAttribute::NetNsFd(namespace.as_raw_fd());
        self.set(&format!("move link {index} to another namespace"), index, target)
    }

    fn one_link(&mut self, operation: &str, message: LinkMessage) -> Result<Link, NetlinkError> {
        let replies = self.request(operation, RouteNetlinkMessage::GetLink(message), 0)?;
        let found = replies.iter().find_map(link);
        found.ok_or_else(|| NetlinkError::malformed(operation, "no link in it"))
    }

    fn create(
        &mut self,
        operation: &str,
        name: &str,
        info: Vec<LinkInfo>,
        more: &[LinkAttribute],
    ) -> Result<(), NetlinkError> {
        let mut message = LinkMessage::default();
        message.attributes =
            vec![LinkAttribute::IfName(name.into()), LinkAttribute::LinkInfo(info)];
        message.attributes.extend_from_slice(more);
        let question = RouteNetlinkMessage::NewLink(message);
        self.request(operation, question, NLM_F_CREATE | NLM_F_EXCL).map(drop)
    }

    fn set(
        &mut self,
        operation: &str,
        index: u32,
        attribute: LinkAttribute,
    ) -> Result<(), NetlinkError> {
        let mut message = message_for(index);
        message.attributes.push(attribute);
        self.request(operation, RouteNetlinkMessage::SetLink(message), 0).map(drop)
    }
}

fn message_for(index: u32) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.header.index = index;
    message
}

pub(crate) fn link(message: &RouteNetlinkMessage) -> Option<Link> {
    let RouteNetlinkMessage::NewLink(message) = message else { return None };
    let flags = message.header.flags;
    let mut link = Link {
        index: message.header.index,
        up: flags.contains(LinkFlags::Up),
        loopback: flags.contains(LinkFlags::Loopback),
        ethernet: message.header.link_layer_type == LinkLayerType::Ether,
        ..Link::default()
    };
    for attribute in &message.attributes {
        note(&mut link, attribute);
    }
    Some(link)
}

fn note(link: &mut Link, attribute: &LinkAttribute) {
    match attribute {
        LinkAttribute::IfName(name) => link.name = name.clone(),
        LinkAttribute::Address(address) => link.address = address.clone(),
        LinkAttribute::LinkInfo(infos) => link.kind = kind(infos),
        LinkAttribute::Mtu(mtu) => link.mtu = *mtu,
        // 0: no limit (`dev_validate_mtu`, net/core/dev.c).
        LinkAttribute::MinMtu(mtu) => link.least_mtu = Some(*mtu).filter(|mtu| *mtu > 0),
        LinkAttribute::MaxMtu(mtu) => link.most_mtu = Some(*mtu).filter(|mtu| *mtu > 0),
        LinkAttribute::TxQueueLen(packets) => link.tx_queue_len = *packets,
        LinkAttribute::Controller(index) => link.master_index = Some(*index),
        LinkAttribute::Link(index) => link.peer_index = Some(*index),
        LinkAttribute::LinkNetNsId(_) => link.peer_elsewhere = true,
        LinkAttribute::Qdisc(kind) => link.qdisc = Some(kind.clone()),
        LinkAttribute::GsoMaxSize(bytes) => link.gso_max_size = Some(*bytes),
        LinkAttribute::GsoMaxSegs(packets) => link.gso_max_segs = Some(*packets),
        LinkAttribute::CarrierChanges(count) => link.carrier_changes = Some(*count),
        LinkAttribute::Stats64(stats) => link.stats = Some(counters(stats)),
        _ => {}
    }
}

fn kind(infos: &[LinkInfo]) -> Option<String> {
    infos.iter().find_map(|info| match info {
        LinkInfo::Kind(kind) => Some(kind.to_string()),
        _ => None,
    })
}

fn counters(stats: &Stats64) -> LinkStats {
    LinkStats {
        rx_bytes: stats.rx_bytes,
        tx_bytes: stats.tx_bytes,
        rx_packets: stats.rx_packets,
        tx_packets: stats.tx_packets,
        rx_errors: stats.rx_errors,
        tx_errors: stats.tx_errors,
        rx_dropped: stats.rx_dropped,
        tx_dropped: stats.tx_dropped,
        rx_crc_errors: stats.rx_crc_errors,
        rx_fifo_errors: stats.rx_fifo_errors,
        rx_missed_errors: stats.rx_missed_errors,
        rx_length_errors: stats.rx_length_errors,
        rx_over_errors: stats.rx_over_errors,
        rx_frame_errors: stats.rx_frame_errors,
        tx_aborted_errors: stats.tx_aborted_errors,
        tx_carrier_errors: stats.tx_carrier_errors,
        tx_fifo_errors: stats.tx_fifo_errors,
        tx_window_errors: stats.tx_window_errors,
        collisions: stats.collisions,
        multicast: stats.multicast,
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;
    use crate::namespace::{create, inside};
    use goodput_testing::in_namespace;

    #[test]
    fn a_veth_pair_is_made_and_changed() {
        in_namespace(|| {
            let mut netlink = Netlink::open().unwrap();
            netlink.create_veth("left", "right").unwrap();
            let left = netlink.link("left").unwrap();
            assert_eq!(left.kind.as_deref(), Some("veth"));
            assert_eq!(left.peer_index, Some(netlink.link("right").unwrap().index));
            assert!(!left.up && !left.peer_elsewhere && left.stats.is_some());
            assert!(left.ethernet && !netlink.link("lo").unwrap().ethernet);
            netlink.set_up(left.index).unwrap();
            netlink.set_mtu(left.index, 9000).unwrap();
            netlink.set_tx_queue_len(left.index, 77).unwrap();
            let left = netlink.link_by_index(left.index).unwrap();
            assert_eq!((left.up, left.mtu, left.tx_queue_len), (true, 9000, 77));
        });
    }

    #[test]
    fn a_link_moves_to_another_namespace() {
        in_namespace(|| {
            let mut netlink = Netlink::open().unwrap();
            netlink.create_veth("left", "right").unwrap();
            let (right, other) = (netlink.link("right").unwrap().index, create().unwrap());
            netlink.move_to_netns(right, other.as_fd()).unwrap();
            assert!(netlink.link("right").unwrap_err().not_found());
            let names = inside(other.as_fd(), || {
                let links = Netlink::open().unwrap().links().unwrap();
                links.into_iter().map(|link| link.name).collect::<Vec<_>>()
            });
            assert!(names.unwrap().contains(&"right".to_owned()));
            assert!(netlink.link("left").unwrap().peer_elsewhere);
        });
    }

    #[test]
    fn the_loopback_device_is_no_virtual_kind() {
        in_namespace(|| {
            let lo = Netlink::open().unwrap().link("lo").unwrap();
            assert!(lo.loopback && lo.kind.is_none());
        });
    }

    #[test]
    fn a_name_too_long_is_refused_with_a_reason() {
        in_namespace(|| {
            let error =
                Netlink::open().unwrap().link("a-name-far-too-long-for-a-link").unwrap_err();
            assert!(error.errno().is_some(), "{error}");
        });
    }
}
