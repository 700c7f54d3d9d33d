//! Generic netlink: looks up families by name, and sends commands with attributes
//! (include/uapi/linux/genetlink.h).

use netlink_sys::protocols::NETLINK_GENERIC;

use crate::NetlinkError;
use crate::raw::{RawMessage, attribute};
use crate::socket::NetlinkSocket;

/// `struct genlmsghdr`: command, version, two reserved bytes.
pub(crate) const HEADER_BYTES: usize = 4;
const GENL_ID_CTRL: u16 = 0x10;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;

/// A conversation with one family.
pub(crate) struct Family {
    socket: NetlinkSocket,
    id: u16,
}

impl Family {
    /// Looks up the number that the family called `name` has in this boot.
    pub(crate) fn open(operation: &str, name: &str) -> Result<Self, NetlinkError> {
        let mut socket = NetlinkSocket::open(NETLINK_GENERIC)?;
        let name = attribute(CTRL_ATTR_FAMILY_NAME, &[name.as_bytes(), b"\0"].concat());
        let question = message(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, &name);
        let replies = socket.request(operation, question, 0)?;
        let id = replies.iter().find_map(|reply| {
            let mut attributes = reply.attributes(HEADER_BYTES);
            let (_, id) = attributes.find(|(kind, _)| *kind == CTRL_ATTR_FAMILY_ID)?;
            id.first_chunk().map(|id| u16::from_ne_bytes(*id))
        });
        let id =
            id.ok_or_else(|| NetlinkError::malformed(operation, "the family has no number"))?;
        Ok(Self { socket, id })
    }

    /// Asks for one object.
    pub(crate) fn request(
        &mut self,
        operation: &str,
        command: u8,
        attributes: &[u8],
    ) -> Result<Vec<RawMessage>, NetlinkError> {
        self.socket.request(operation, message(self.id, command, attributes), 0)
    }

    /// Asks for all objects of a kind.
    pub(crate) fn dump(
        &mut self,
        operation: &str,
        command: u8,
        attributes: &[u8],
    ) -> Result<Vec<RawMessage>, NetlinkError> {
        self.socket.dump(operation, message(self.id, command, attributes))
    }
}

/// A message of the family with number `kind`.
pub(crate) fn message(kind: u16, command: u8, attributes: &[u8]) -> RawMessage {
    let mut body = vec![command, 1, 0, 0];
    body.extend(attributes);
    RawMessage { kind, body }
}

/// A number of 1, 2, 4 or 8 bytes in native byte order; `None` for other lengths.
pub(crate) fn number(value: &[u8]) -> Option<u64> {
    match value {
        [byte] => Some(u64::from(*byte)),
        _ => match value.len() {
            2 => value.first_chunk().map(|bytes| u64::from(u16::from_ne_bytes(*bytes))),
            4 => value.first_chunk().map(|bytes| u64::from(u32::from_ne_bytes(*bytes))),
            8 => value.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes)),
            _ => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_as_long_as_it_is() {
        assert_eq!(number(&[7]), Some(7));
        assert_eq!(number(&7u32.to_ne_bytes()), Some(7));
        assert_eq!(number(&u64::MAX.to_ne_bytes()), Some(u64::MAX));
        assert_eq!(number(&[1, 2, 3]), None);
    }

    #[test]
    fn a_family_that_is_not_there_is_not_found() {
        let error = Family::open("try", "no-such-family").err().unwrap();
        assert!(error.not_found(), "{error}");
    }
}
