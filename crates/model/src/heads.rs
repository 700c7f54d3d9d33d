//! Heads of packets that a far host captured, as they go to the near one.

use base64ct::{Base64, Encoding};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// Bytes of the packed heads of one measurement at most: about 120 000 packets of TCP.
pub const MAX_HEADS_BYTES: usize = 8 << 20;

/// Bytes of one head at most: the longest headers of IPv4 and TCP, or of IPv6 and TCP.
pub const MAX_HEAD_BYTES: usize = 128;

/// Bytes of packed heads in one string of the JSON. As Base64 they are 4096 characters, the longest text that a
/// message may have.
const CHUNK_BYTES: usize = 3072;

/// Before each head: its time (8 bytes), the length of the packet (4), the length of the head (1), and whether the
/// capturing host sent the packet (1). Numbers are big-endian.
const PREFIX_BYTES: usize = 14;

/// The first bytes of one packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketHead<'a> {
    /// When the capturing host's kernel saw the packet, nanoseconds since 1970.
    pub at_ns: u64,
    /// Length of the packet from its IP header on, bytes.
    pub bytes: u32,
    /// Whether the capturing host sent the packet.
    pub is_outgoing: bool,
    /// The headers, from the IP header on.
    pub head: &'a [u8],
}

/// Heads in the order in which the packets passed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PacketHeads {
    packed: Vec<u8>,
}

impl PacketHeads {
    /// Adds a head, unless `most` packed bytes are exceeded. Of a head that is too long only the beginning is kept.
    /// Returns whether the head was added.
    pub fn push(&mut self, head: &PacketHead<'_>, most: usize) -> bool {
        let kept = &head.head[..head.head.len().min(MAX_HEAD_BYTES)];
        if self.packed.len() + PREFIX_BYTES + kept.len() > most {
            return false;
        }
        self.packed.extend(head.at_ns.to_be_bytes());
        self.packed.extend(head.bytes.to_be_bytes());
        self.packed.extend([kept.len() as u8, u8::from(head.is_outgoing)]);
        self.packed.extend(kept);
        true
    }

    /// The heads.
    pub fn iter(&self) -> impl Iterator<Item = PacketHead<'_>> {
        let mut rest = &self.packed[..];
        std::iter::from_fn(move || {
            let (head, after) = first(rest)?;
            rest = after;
            Some(head)
        })
    }

    /// The same heads in parts of at most `most` packed bytes each, at least one head in each.
    pub fn parts(&self, most: usize) -> Vec<Self> {
        let mut parts: Vec<Self> = Vec::new();
        for head in self.iter() {
            let is_added = parts.last_mut().is_some_and(|last| last.push(&head, most));
            if !is_added {
                let mut next = Self::default();
                next.push(&head, usize::MAX);
                parts.push(next);
            }
        }
        parts
    }

    /// Bytes of the packed heads.
    pub fn bytes(&self) -> usize {
        self.packed.len()
    }
}

/// The first head, and what follows it. `None` if there is no whole head.
fn first(packed: &[u8]) -> Option<(PacketHead<'_>, &[u8])> {
    let (prefix, rest) = packed.split_at_checked(PREFIX_BYTES)?;
    let (head, rest) = rest.split_at_checked(usize::from(prefix[12]))?;
    let head = PacketHead {
        at_ns: u64::from_be_bytes(prefix[..8].try_into().ok()?),
        bytes: u32::from_be_bytes(prefix[8..12].try_into().ok()?),
        is_outgoing: prefix[13] != 0,
        head,
    };
    (head.head.len() <= MAX_HEAD_BYTES).then_some((head, rest))
}

impl Serialize for PacketHeads {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.packed.chunks(CHUNK_BYTES).map(Base64::encode_string))
    }
}

impl<'de> Deserialize<'de> for PacketHeads {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut packed = Vec::new();
        for chunk in Vec::<String>::deserialize(from)? {
            packed.extend(Base64::decode_vec(&chunk).map_err(|_| D::Error::custom("no Base64"))?);
            if packed.len() > MAX_HEADS_BYTES {
                return Err(D::Error::custom("more heads of packets than one measurement has"));
            }
        }
        let mut rest = &packed[..];
        while !rest.is_empty() {
            rest =
                first(rest).ok_or_else(|| D::Error::custom("a head is cut short or too long"))?.1;
        }
        Ok(Self { packed })
    }
}

/// What a far host captured of the packets of one measurement, or a part of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FarHeads {
    /// The heads.
    pub heads: PacketHeads,
    /// Packets that the far host lost because it could not keep up.
    #[serde(default)]
    pub dropped: u64,
    /// Packets that passed after [`MAX_HEADS_BYTES`] were kept.
    #[serde(default)]
    pub not_kept: u64,
    /// Why the capture ended early, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

impl FarHeads {
    /// Messages of at most `most` packed bytes each. The last one has the counts.
    pub fn parts(self, most: usize) -> Vec<Self> {
        let heads = self.heads.parts(most).into_iter();
        let mut parts: Vec<_> = heads.map(|heads| Self { heads, ..Self::default() }).collect();
        let last = Self { heads: PacketHeads::default(), ..self };
        match parts.last_mut() {
            Some(end) => *end = Self { heads: std::mem::take(&mut end.heads), ..last },
            None => parts.push(last),
        }
        parts
    }

    /// Adds the next part.
    pub fn add(&mut self, part: Self) {
        let Self { heads, dropped, not_kept, failure } = part;
        self.heads.packed.extend(heads.packed);
        self.dropped = self.dropped.saturating_add(dropped);
        self.not_kept = self.not_kept.saturating_add(not_kept);
        self.failure = self.failure.take().or(failure);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Packet = (u64, u32, bool, Vec<u8>);

    fn packets() -> impl Strategy<Value = Vec<Packet>> {
        let head = proptest::collection::vec(any::<u8>(), 0..=MAX_HEAD_BYTES);
        proptest::collection::vec((any::<u64>(), any::<u32>(), any::<bool>(), head), 0..60)
    }

    fn heads(packets: &[Packet]) -> PacketHeads {
        let mut heads = PacketHeads::default();
        for (at_ns, bytes, is_outgoing, head) in packets {
            let (at_ns, bytes, is_outgoing) = (*at_ns, *bytes, *is_outgoing);
            assert!(heads.push(&PacketHead { at_ns, bytes, is_outgoing, head }, MAX_HEADS_BYTES));
        }
        heads
    }

    fn unpacked(heads: &PacketHeads) -> Vec<Packet> {
        let all = heads.iter();
        all.map(|one| (one.at_ns, one.bytes, one.is_outgoing, one.head.to_vec())).collect()
    }

    proptest! {
        #[test]
        fn heads_come_back_and_no_text_is_too_long(packets in packets()) {
            let heads = heads(&packets);
            prop_assert_eq!(unpacked(&heads), packets);
            let json = serde_json::to_string(&heads).unwrap();
            prop_assert!(json.split('"').all(|text| text.len() <= 4096));
            prop_assert_eq!(serde_json::from_str::<PacketHeads>(&json).unwrap(), heads);
        }

        #[test]
        fn parts_are_the_whole(packets in packets(), most in 1usize..2000, dropped: u64) {
            let whole = FarHeads { heads: heads(&packets), dropped, ..FarHeads::default() };
            let mut again = FarHeads::default();
            for part in whole.clone().parts(most) {
                let is_one = part.heads.iter().count() <= 1;
                prop_assert!(is_one || part.heads.bytes() <= most);
                again.add(part);
            }
            prop_assert_eq!(again, whole);
        }

        #[test]
        fn any_text_is_read_or_refused(texts in proptest::collection::vec("[A-Za-z0-9+/=]{0,80}", 0..4)) {
            if let Ok(heads) = serde_json::from_value::<PacketHeads>(serde_json::json!(texts)) {
                prop_assert!(heads.iter().all(|head| head.head.len() <= MAX_HEAD_BYTES));
            }
        }
    }

    #[test]
    fn what_exceeds_the_limit_is_not_kept() {
        let mut heads = PacketHeads::default();
        let head = PacketHead { at_ns: 1, bytes: 2, is_outgoing: true, head: &[7; 200] };
        assert!(heads.push(&head, PREFIX_BYTES + MAX_HEAD_BYTES));
        assert!(!heads.push(&head, PREFIX_BYTES + MAX_HEAD_BYTES));
        assert_eq!(heads.iter().next().unwrap().head, [7; MAX_HEAD_BYTES]);
        let texts = vec!["A".repeat(4096); MAX_HEADS_BYTES / CHUNK_BYTES + 1];
        let why = serde_json::from_value::<PacketHeads>(serde_json::json!(texts)).unwrap_err();
        assert!(why.to_string().contains("more heads of packets"), "{why}");
    }
}
