//! How a card spreads received packets over its queues (RSS): `ETHTOOL_GRSSH` and `ETHTOOL_GRXFH`
//! (include/uapi/linux/ethtool.h; Documentation/networking/scaling.rst). Neither needs a privilege.

use crate::NetlinkError;
use crate::ethtool::call;
use crate::ethtool_ioctl::MAX_TABLE_BYTES;
use crate::raw::word_or_zero;

const ETHTOOL_GRXFH: u32 = 0x29;
const ETHTOOL_GRXRINGS: u32 = 0x2d;
const ETHTOOL_GRSSH: u32 = 0x46;
const ETHTOOL_SRSSH: u32 = 0x47;
/// `struct ethtool_rxfh` without its list: command, context, both lengths, the function and the
/// transform, three reserved bytes and words.
const HASH_BYTES: usize = 24;
/// Offsets in it.
const TABLE_LENGTH_AT: usize = 8;
const KEY_LENGTH_AT: usize = 12;
const FUNCTION_AT: usize = 16;
const TRANSFORM_AT: usize = 17;
/// `ETH_RXFH_INDIR_NO_CHANGE`.
const TABLE_STAYS: u32 = u32::MAX;
/// `ETH_RSS_HASH_TOP`.
const TOEPLITZ: u8 = 1;
/// The first 16 bytes of `struct ethtool_rxnfc`, the only part that these commands use
/// (net/ethtool/ioctl.c, `ethtool_rxnfc_copy_struct`): command, kind of flow, fields or a number.
const FIELDS_BYTES: usize = 16;
/// `RXH_L4_B_0_1` and `RXH_L4_B_2_3`: source and destination port.
const PORTS: u64 = 1 << 6 | 1 << 7;
/// `RXH_IP_SRC` and `RXH_IP_DST`.
const ADDRESSES: u64 = 1 << 4 | 1 << 5;

/// A kind of flow, with the kernel's number (`TCP_V4_FLOW` and the like).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum FlowKind {
    /// TCP over IPv4.
    TcpV4 = 1,
    /// UDP over IPv4.
    UdpV4 = 2,
    /// TCP over IPv6.
    TcpV6 = 5,
    /// UDP over IPv6.
    UdpV6 = 6,
}

/// How a card chooses the queue of a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiveHash {
    /// Whether the hash is the Toeplitz hash of the unchanged fields.
    pub is_toeplitz: bool,
    /// The hash's key.
    pub key: Vec<u8>,
    /// The queue of each remainder of the hash.
    pub table: Vec<u32>,
}

/// The hash of `device`. A device without one refuses, or has an empty table.
pub fn receive_hash(device: &str) -> Result<ReceiveHash, NetlinkError> {
    let operation = format!("read the receive hash of {device}");
    let mut head = [0u8; HASH_BYTES];
    call(&operation, device, ETHTOOL_GRSSH, &mut head)?;
    let (table, key) = (word_or_zero(&head, TABLE_LENGTH_AT), word_or_zero(&head, KEY_LENGTH_AT));
    let bytes = (table as usize).saturating_mul(4).saturating_add(key as usize);
    if bytes > MAX_TABLE_BYTES - HASH_BYTES {
        return Err(NetlinkError::malformed(&operation, "its table is too long"));
    }
    let mut whole = vec![0u8; HASH_BYTES + bytes];
    whole[..HASH_BYTES].copy_from_slice(&head);
    call(&operation, device, ETHTOOL_GRSSH, &mut whole)?;
    parse(&whole).ok_or_else(|| NetlinkError::malformed(&operation, "its table is cut short"))
}

/// Whether the hash of `device` covers addresses and ports of flows of this kind.
pub fn hashes_ports(device: &str, kind: FlowKind) -> Result<bool, NetlinkError> {
    let operation = format!("read the receive hash fields of {device}");
    let mut fields = [0u8; FIELDS_BYTES];
    fields[4..8].copy_from_slice(&(kind as u32).to_ne_bytes());
    call(&operation, device, ETHTOOL_GRXFH, &mut fields)?;
    let all = fields.last_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
    Ok(all & (PORTS | ADDRESSES) == PORTS | ADDRESSES)
}

/// The part of a hash to set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HashPart {
    /// The queue of each remainder, as words in native byte order.
    Table,
    /// The key.
    Key,
}

/// Sets one part of the hash of `device`, and leaves the others unchanged. Needs CAP_NET_ADMIN.
pub fn set_receive_hash(device: &str, part: HashPart, bytes: &[u8]) -> Result<(), NetlinkError> {
    let operation = format!("set the receive hash of {device}");
    let mut head = [0u8; HASH_BYTES];
    call(&operation, device, ETHTOOL_GRSSH, &mut head)?;
    let mut order = order(&head, part, bytes)
        .ok_or_else(|| NetlinkError::impossible(&operation, "it has another length there"))?;
    call(&operation, device, ETHTOOL_SRSSH, &mut order)
}

/// The number of queues that the receive hash of `device` chooses from.
pub fn receive_queues(device: &str) -> Result<u32, NetlinkError> {
    let operation = format!("read the number of receive queues of {device}");
    let mut fields = [0u8; FIELDS_BYTES];
    call(&operation, device, ETHTOOL_GRXRINGS, &mut fields)?;
    let queues = fields.last_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
    u32::try_from(queues).map_err(|_| NetlinkError::malformed(&operation, "there are too many"))
}

/// Makes the kernel spread the table of `device` evenly over its queues again, and forget that anyone has
/// set it (net/ethtool/ioctl.c `ethtool_set_rxfh`: a length of 0 clears `IFF_RXFH_CONFIGURED`). Needs CAP_NET_ADMIN.
pub fn reset_receive_table(device: &str) -> Result<(), NetlinkError> {
    let operation = format!("reset the receive hash table of {device}");
    let mut order = [0u8; HASH_BYTES];
    call(&operation, device, ETHTOOL_GRSSH, &mut order)?;
    let transform = order[TRANSFORM_AT];
    order.fill(0);
    order[TRANSFORM_AT] = transform;
    call(&operation, device, ETHTOOL_SRSSH, &mut order)
}

/// The request for a device that reported this head. A function of 0 changes nothing. The transform stays unchanged;
/// on older kernels it is 0, the only value that they accept.
fn order(head: &[u8; HASH_BYTES], part: HashPart, bytes: &[u8]) -> Option<Vec<u8>> {
    let (table, key) = match part {
        HashPart::Table => (u32::try_from(bytes.len() / 4).ok()?, 0),
        HashPart::Key => (TABLE_STAYS, u32::try_from(bytes.len()).ok()?),
    };
    let fits = match part {
        HashPart::Table => {
            bytes.len().is_multiple_of(4) && table == word_or_zero(head, TABLE_LENGTH_AT)
        }
        HashPart::Key => key == word_or_zero(head, KEY_LENGTH_AT),
    };
    let mut order = [0u8; HASH_BYTES];
    order[TABLE_LENGTH_AT..][..4].copy_from_slice(&table.to_ne_bytes());
    order[KEY_LENGTH_AT..][..4].copy_from_slice(&key.to_ne_bytes());
    order[TRANSFORM_AT] = head[TRANSFORM_AT];
    (fits && !bytes.is_empty()).then(|| [&order[..], bytes].concat())
}

fn parse(whole: &[u8]) -> Option<ReceiveHash> {
    let (head, lists) = whole.split_at_checked(HASH_BYTES)?;
    let (table, key) = (word_or_zero(head, TABLE_LENGTH_AT), word_or_zero(head, KEY_LENGTH_AT));
    let (table, rest) = lists.split_at_checked((table as usize).checked_mul(4)?)?;
    let key = rest.get(..key as usize)?.to_vec();
    let table = table.as_chunks().0.iter().map(|entry| u32::from_ne_bytes(*entry)).collect();
    let is_toeplitz = head[FUNCTION_AT] == TOEPLITZ && head[TRANSFORM_AT] == 0;
    Some(ReceiveHash { is_toeplitz, key, table })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::receive_table::default_receive_table;
    use crate::{Netlink, scripted};
    use goodput_testing::in_namespace;
    use proptest::prelude::*;

    #[test]
    fn table_and_key_follow_the_head() {
        let mut bytes = [0u8; HASH_BYTES].to_vec();
        bytes[TABLE_LENGTH_AT..][..4].copy_from_slice(&2u32.to_ne_bytes());
        bytes[KEY_LENGTH_AT..][..4].copy_from_slice(&3u32.to_ne_bytes());
        bytes[FUNCTION_AT] = TOEPLITZ;
        bytes.extend([7u32, 1].map(u32::to_ne_bytes).concat());
        bytes.extend([0x6d, 0x5a, 0x56]);
        let hash = parse(&bytes).unwrap();
        assert_eq!((hash.is_toeplitz, &hash.table[..]), (true, &[7, 1][..]));
        assert_eq!(hash.key, [0x6d, 0x5a, 0x56]);
        bytes[TRANSFORM_AT] = 1;
        assert!(!parse(&bytes).unwrap().is_toeplitz);
        bytes.pop();
        assert_eq!(parse(&bytes), None);
    }

    #[test]
    fn one_part_is_set_and_the_other_left() {
        let mut head = [0u8; HASH_BYTES];
        head[TABLE_LENGTH_AT..][..4].copy_from_slice(&2u32.to_ne_bytes());
        head[KEY_LENGTH_AT..][..4].copy_from_slice(&3u32.to_ne_bytes());
        (head[FUNCTION_AT], head[TRANSFORM_AT]) = (TOEPLITZ, 1);
        let table = [7u32, 1].map(u32::to_ne_bytes).concat();
        let order_of = order(&head, HashPart::Table, &table).unwrap();
        assert_eq!(
            (word_or_zero(&order_of, TABLE_LENGTH_AT), word_or_zero(&order_of, KEY_LENGTH_AT)),
            (2, 0)
        );
        assert_eq!((order_of[FUNCTION_AT], order_of[TRANSFORM_AT]), (0, 1));
        assert_eq!(order_of[HASH_BYTES..], table);
        let order_of = order(&head, HashPart::Key, &[1, 2, 3]).unwrap();
        assert_eq!(word_or_zero(&order_of, TABLE_LENGTH_AT), TABLE_STAYS);
        assert_eq!(
            (word_or_zero(&order_of, KEY_LENGTH_AT), &order_of[HASH_BYTES..]),
            (3, &[1, 2, 3][..])
        );
        // A device whose number of queues has changed rejects an earlier table.
        for (part, bytes) in [(HashPart::Table, &table[..4]), (HashPart::Key, &[1][..])] {
            assert_eq!(order(&head, part, bytes), None);
        }
        assert_eq!(order(&[0; HASH_BYTES], HashPart::Table, &[]), None, "that would reset it");
    }

    #[test]
    fn a_table_that_is_reset_is_the_kernels_own_and_nobodys() {
        let card = scripted::install("card0", scripted::Card::with_queues(3));
        let (own, key) = (card.card().table, card.card().key);
        assert_eq!(receive_queues("card0").unwrap(), 3);
        assert_eq!(own, default_receive_table(own.len(), 3));
        assert!(default_receive_table(4, 0).is_empty());
        let zeros = vec![0; 4 * own.len()];
        set_receive_hash("card0", HashPart::Table, &zeros).unwrap();
        assert!(card.card().table_is_set());
        reset_receive_table("card0").unwrap();
        assert_eq!((card.card().table, card.card().key), (own, key));
        assert!(!card.card().table_is_set());
    }

    #[test]
    fn a_device_without_a_hash_says_so() {
        in_namespace(|| {
            Netlink::open().unwrap().create_veth("left", "right").unwrap();
            for device in ["lo", "left"] {
                let none = receive_hash(device).map_or(true, |hash| hash.table.is_empty());
                assert!(none, "{device}");
            }
        });
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes);
        }
    }
}
