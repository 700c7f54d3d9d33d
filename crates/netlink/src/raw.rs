//! Raw messages: a type and bytes. For families and objects that the libraries do not know,
//! or reject as a whole if they do not know a part.

use std::convert::Infallible;

use netlink_packet_core::{
    NetlinkDeserializable, NetlinkHeader, NetlinkSerializable, NlasIterator,
};

/// A netlink message without its header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RawMessage {
    /// Its type, which depends on the family.
    pub kind: u16,
    /// The bytes after the header.
    pub body: Vec<u8>,
}

impl RawMessage {
    /// The attributes after a structure of `header_bytes` bytes, by type. Broken ones end the
    /// list.
    pub(crate) fn attributes(&self, header_bytes: usize) -> impl Iterator<Item = (u16, &[u8])> {
        let bytes = self.body.get(header_bytes..).unwrap_or_default();
        attributes(bytes)
    }
}

/// The attributes in `bytes`, by type. Broken ones end the list.
pub fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    NlasIterator::new(bytes).map_while(Result::ok).filter_map(|attribute| {
        let (kind, length) = (attribute.kind(), 4 + attribute.value_length());
        Some((kind, attribute.into_inner().get(4..length)?))
    })
}

/// Marks a nested attribute; newer families insist on it.
pub(crate) const NLA_F_NESTED: u16 = 1 << 15;

/// One attribute as bytes: `struct nlattr` (length and type), then the value, padded to words (netlink(7)).
/// A value too long for the length field gets the largest length, which the kernel refuses.
pub fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(4 + value.len()).unwrap_or(u16::MAX);
    let mut bytes = [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), value].concat();
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// The 32-bit word at a byte offset of a structure, in native byte order; `None` beyond its end.
pub(crate) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The same; 0 if the kernel or a driver reported less.
pub(crate) fn word_or_zero(bytes: &[u8], at: usize) -> u32 {
    word(bytes, at).unwrap_or(0)
}

impl NetlinkSerializable for RawMessage {
    fn message_type(&self) -> u16 {
        self.kind
    }

    fn buffer_len(&self) -> usize {
        self.body.len()
    }

    fn serialize(&self, buffer: &mut [u8]) {
        buffer.copy_from_slice(&self.body);
    }
}

impl NetlinkDeserializable for RawMessage {
    type Error = Infallible;

    fn deserialize(header: &NetlinkHeader, payload: &[u8]) -> Result<Self, Infallible> {
        Ok(Self { kind: header.message_type, body: payload.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn attributes_are_padded_to_words_and_a_broken_one_ends_the_list() {
        let mut bytes = vec![5, 0, 1, 0x80, 9, 0, 0, 0];
        bytes.extend([6, 0, 2, 0, 7, 8, 0, 0, 99, 0, 3, 0]);
        let found: Vec<_> = attributes(&bytes).collect();
        assert_eq!(found, [(1, &[9][..]), (2, &[7, 8][..])]);
    }

    #[test]
    fn a_word_is_there_in_full_or_not_at_all() {
        let bytes = [[0; 4], 7u32.to_ne_bytes()].concat();
        assert_eq!(word(&bytes, 4), Some(7));
        assert_eq!((word(&bytes, 5), word(&bytes, 99)), (None, None));
    }

    proptest! {
        #[test]
        fn an_attribute_is_read_back(kind in 1u16..100, value in prop::collection::vec(any::<u8>(), 0..40)) {
            let bytes = attribute(kind, &value);
            prop_assert!(bytes.len().is_multiple_of(4));
            let read: Vec<_> = attributes(&bytes).collect();
            prop_assert_eq!(read, vec![(kind, value.as_slice())]);
        }

        #[test]
        fn no_bytes_make_it_panic(
            body in prop::collection::vec(0u8..40, 0..80), header in 0usize..90
        ) {
            let message = RawMessage { kind: 0, body };
            prop_assert!(message.attributes(header).count() <= 20);
        }
    }
}
