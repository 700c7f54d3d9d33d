//! The settable attributes of a link, one by one as the kernel reports them, so that they can be
//! compared and written again (`IFLA_*`, include/uapi/linux/if_link.h).

use crate::raw::{RawMessage, attribute, attributes, word};
use crate::{Netlink, NetlinkError};

/// `struct ifinfomsg`.
const HEADER_BYTES: usize = 16;
/// `IFF_UP`, `IFF_DEBUG`, `IFF_NOARP`, `IFF_PROMISC`, `IFF_ALLMULTI`, `IFF_MULTICAST`.
const SETTABLE: u32 = 0x1 | 0x4 | 0x80 | 0x100 | 0x200 | 0x1000;
const IFLA_IFNAME: u16 = 3;
/// `IFLA_AF_SPEC`, in it `AF_INET6`, in it `IFLA_INET6_TOKEN`: the lower half of addresses that the kernel
/// derives from router advertisements (ip-token(8)).
const TOKEN: [u16; 3] = [26, libc::AF_INET6 as u16, 7];
const TOKEN_NAME: &str = "ipv6_token";

/// The attributes that can be set.
const ATTRIBUTES: [(u16, &str); 12] = [
    (1, "address"),
    (4, "mtu"),
    (13, "tx_queue_len"),
    (17, "link_mode"),
    (20, "alias"),
    (27, "group"),
    (40, "gso_max_segs"),
    (41, "gso_max_size"),
    (58, "gro_max_size"),
    (63, "gso_ipv4_max_size"),
    (64, "gro_ipv4_max_size"),
    (10, "master"),
];

/// The settable attributes of one link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkAttributes {
    /// Its number.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// The flags that can be set (`IFF_*`).
    pub flags: u32,
    /// Its attributes by name.
    pub attributes: Vec<(&'static str, Vec<u8>)>,
}

impl Netlink {
    /// The settable attributes of each link of this namespace.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn link_attributes(&mut self) -> Result<Vec<LinkAttributes>, NetlinkError> {
        let question = RawMessage { kind: libc::RTM_GETLINK, body: vec![0; HEADER_BYTES] };
        let messages = self.dump_raw("list what is set of the links", question)?;
        Ok(messages.iter().filter_map(attributes_of).collect())
    }

    /// Sets one of the attributes that [`Netlink::link_attributes`] reports.
    ///
    /// # Errors
    /// When there is no such attribute, or the kernel refuses.
    pub fn set_link_attribute(
        &mut self,
        index: u32,
        name: &str,
        value: &[u8],
    ) -> Result<(), NetlinkError> {
        let operation = format!("set {name} of link {index}");
        let kind = ATTRIBUTES.iter().find(|(_, known)| *known == name).map(|(kind, _)| *kind);
        let attribute = match kind {
            Some(kind) => attribute(kind, value),
            None if name == TOKEN_NAME => {
                let [outer, family, token] = TOKEN;
                attribute(outer, &attribute(family, &attribute(token, value)))
            }
            None => {
                return Err(NetlinkError::impossible(operation, "there is no such attribute"));
            }
        };
        let body = [header(index, 0, 0), attribute].concat();
        self.request_raw(&operation, RawMessage { kind: libc::RTM_SETLINK, body }, 0)
    }

    /// Sets all flags that can be set.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn set_link_flags(&mut self, index: u32, flags: u32) -> Result<(), NetlinkError> {
        let body = header(index, flags & SETTABLE, SETTABLE);
        let message = RawMessage { kind: libc::RTM_SETLINK, body };
        self.request_raw(&format!("set the flags of link {index}"), message, 0)
    }
}

/// Family, padding and type are 0; then link, flags, and the mask of flags to set.
fn header(index: u32, flags: u32, mask: u32) -> Vec<u8> {
    [0, index, flags, mask].iter().flat_map(|word| word.to_ne_bytes()).collect()
}

fn attributes_of(message: &RawMessage) -> Option<LinkAttributes> {
    if message.kind != libc::RTM_NEWLINK {
        return None;
    }
    let all: Vec<(u16, &[u8])> = message.attributes(HEADER_BYTES).collect();
    let value = |kind: u16| all.iter().find(|(other, _)| *other == kind).map(|(_, value)| *value);
    let set = ATTRIBUTES.iter().filter_map(|(kind, name)| Some((*name, value(*kind)?.to_vec())));
    let inner =
        |bytes, wanted| attributes(bytes).find(|(kind, _)| *kind == wanted).map(|(_, value)| value);
    let token = value(TOKEN[0]).and_then(|all| inner(inner(all, TOKEN[1])?, TOKEN[2]));
    let token = token.map(|token| (TOKEN_NAME, token.to_vec()));
    Some(LinkAttributes {
        index: word(&message.body, 4)?,
        name: crate::ethtool::c_text(value(IFLA_IFNAME)?),
        flags: word(&message.body, 8)? & SETTABLE,
        attributes: set.chain(token).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_testing::in_namespace;

    #[test]
    fn every_attribute_is_written_as_reported() {
        in_namespace(|| {
            let mut netlink = Netlink::open().unwrap();
            netlink.create_veth("left", "right").unwrap();
            let left = |netlink: &mut Netlink| {
                let all = netlink.link_attributes().unwrap();
                all.into_iter().find(|link| link.name == "left").unwrap()
            };
            let index = netlink.link("left").unwrap().index;
            netlink.set_up(index).unwrap();
            // A device takes a token only while it asks routers for addresses.
            let token = std::net::Ipv6Addr::new(0, 0, 0, 0, 0, 0, 1, 2).octets();
            netlink.set_link_attribute(index, TOKEN_NAME, &token).unwrap();
            let before = left(&mut netlink);
            assert!(before.attributes.contains(&(TOKEN_NAME, token.to_vec())));
            netlink.set_link_attribute(index, TOKEN_NAME, &[0; 16]).unwrap();
            assert!(before.attributes.iter().any(|(name, _)| *name == "mtu"));
            netlink.set_mtu(before.index, 2000).unwrap();
            for (name, value) in before.attributes.iter().filter(|(name, _)| *name != "link_mode") {
                netlink.set_link_attribute(before.index, name, value).unwrap();
            }
            netlink.set_link_flags(before.index, before.flags).unwrap();
            assert_eq!(left(&mut netlink), before);
            assert!(netlink.set_link_attribute(before.index, "colour", &[]).is_err());
        });
    }
}
