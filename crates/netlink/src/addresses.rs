//! IP addresses of links.

use std::net::IpAddr;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::address::{
    AddressAttribute, AddressHeaderFlags, AddressMessage, AddressScope,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use crate::{Netlink, NetlinkError};

/// One address of one link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// Index of the link.
    pub index: u32,
    /// The address.
    pub address: IpAddr,
    /// Length of its prefix, bits.
    pub prefix_len: u8,
}

impl Netlink {
    /// All addresses of this namespace, both families.
    pub fn addresses(&mut self) -> Result<Vec<Address>, NetlinkError> {
        let question = RouteNetlinkMessage::GetAddress(AddressMessage::default());
        let replies = self.dump("list the addresses", question)?;
        Ok(replies.iter().filter_map(address).collect())
    }

    /// Gives a link an address. An IPv6 address is usable at once: duplicate address detection is
    /// skipped.
    pub fn add_address(
        &mut self,
        index: u32,
        address: IpAddr,
        prefix_len: u8,
    ) -> Result<(), NetlinkError> {
        let mut message = AddressMessage::default();
        message.header.index = index;
        message.header.prefix_len = prefix_len;
        message.header.scope = AddressScope::Universe;
        message.header.family = match address {
            IpAddr::V4(_) => AddressFamily::Inet,
            IpAddr::V6(_) => AddressFamily::Inet6,
        };
        if address.is_ipv6() {
            message.header.flags = AddressHeaderFlags::Nodad;
        }
        message.attributes =
            vec![AddressAttribute::Local(address), AddressAttribute::Address(address)];
        let operation = format!("add address {address}/{prefix_len} to link {index}");
        let question = RouteNetlinkMessage::NewAddress(message);
        self.request(&operation, question, NLM_F_CREATE | NLM_F_EXCL).map(drop)
    }
}

/// `IFA_LOCAL` is ours; `IFA_ADDRESS` is the peer's on a point-to-point link, ours elsewhere.
pub(crate) fn address(message: &RouteNetlinkMessage) -> Option<Address> {
    let RouteNetlinkMessage::NewAddress(message) = message else { return None };
    let local = message.attributes.iter().find_map(|attribute| match attribute {
        AddressAttribute::Local(address) => Some(*address),
        _ => None,
    });
    let any = message.attributes.iter().find_map(|attribute| match attribute {
        AddressAttribute::Address(address) => Some(*address),
        _ => None,
    });
    let (index, prefix_len) = (message.header.index, message.header.prefix_len);
    local.or(any).map(|address| Address { index, address, prefix_len })
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_testing::in_namespace;

    #[test]
    fn addresses_of_both_families_are_added_and_listed() {
        in_namespace(|| {
            let mut netlink = Netlink::open().unwrap();
            netlink.create_veth("left", "right").unwrap();
            let index = netlink.link("left").unwrap().index;
            for (text, prefix_len) in [("192.0.2.1", 24), ("2001:db8::1", 64)] {
                let address: IpAddr = text.parse().unwrap();
                netlink.add_address(index, address, prefix_len).unwrap();
                let expected = Address { index, address, prefix_len };
                assert!(netlink.addresses().unwrap().contains(&expected), "{text}");
                let again = netlink.add_address(index, address, prefix_len).unwrap_err();
                assert_eq!(again.errno(), Some(libc::EEXIST), "{again}");
            }
        });
    }
}
