//! A block of the ring that the kernel fills with packets (`TPACKET_V3`, linux/if_packet.h;
//! Documentation/networking/packet_mmap.rst).

/// Bytes of `tpacket3_hdr`, after which the address of the packet comes (`sockaddr_ll`).
const HEADER_BYTES: usize = 48;
/// Where `sockaddr_ll` has the kind of device and of packet.
const DEVICE_KIND_OFFSET: usize = HEADER_BYTES + 8;
const KIND_OFFSET: usize = HEADER_BYTES + 10;

/// A packet as the kernel left it there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Nanoseconds since 1970.
    pub at_ns: u64,
    /// Its first bytes, from the IP header on.
    pub head: &'a [u8],
    /// All its bytes.
    pub bytes: u32,
    /// Whether this host sends it.
    pub is_outgoing: bool,
    /// Whether the device is the loopback, which has each packet twice: on its way out and on its way in.
    pub is_loopback: bool,
}

/// The packets of a block. Where its numbers lead out of it, they end.
pub fn frames(block: &[u8]) -> impl Iterator<Item = Frame<'_>> {
    // `tpacket_block_desc`: version and offset of private data, then status, number of packets, offset of the first.
    let (count, first) = (word(block, 12).unwrap_or(0), word(block, 16).unwrap_or(0));
    let mut at = Some(first as usize);
    (0..count).map_while(move |_| {
        let start = at?;
        let (frame, next) = read(block.get(start..)?)?;
        // The last one has 0: no other begins where it does.
        at = start.checked_add(next).filter(|next| *next > start);
        Some(frame)
    })
}

/// The packet at the beginning of `bytes`, and where the next one is.
fn read(bytes: &[u8]) -> Option<(Frame<'_>, usize)> {
    let (next, seconds, nanoseconds) = (word(bytes, 0)?, word(bytes, 4)?, word(bytes, 8)?);
    let (kept, whole) = (word(bytes, 12)? as usize, word(bytes, 16)?);
    let from = usize::from(half(bytes, 26)?);
    let frame = Frame {
        at_ns: u64::from(seconds) * 1_000_000_000 + u64::from(nanoseconds),
        head: bytes.get(from..from.checked_add(kept)?)?,
        bytes: whole,
        is_outgoing: *bytes.get(KIND_OFFSET)? == libc::PACKET_OUTGOING,
        is_loopback: half(bytes, DEVICE_KIND_OFFSET)? == libc::ARPHRD_LOOPBACK,
    };
    Some((frame, next as usize))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at.checked_add(4)?)?;
    four.try_into().ok().map(u32::from_ne_bytes)
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    let two = bytes.get(at..at.checked_add(2)?)?;
    two.try_into().ok().map(u16::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A block with a packet of each head, each of 1000 bytes.
    fn block(heads: &[&[u8]]) -> Vec<u8> {
        let mut block = vec![0u8; 48];
        block[12..16].copy_from_slice(&(heads.len() as u32).to_ne_bytes());
        block[16..20].copy_from_slice(&48u32.to_ne_bytes());
        for (n, head) in heads.iter().enumerate() {
            let mut frame = vec![0u8; 80];
            let next = if n + 1 == heads.len() { 0 } else { (80 + head.len()) as u32 };
            for (at, number) in [(0, next), (4, 2), (8, 3), (12, head.len() as u32), (16, 1000)] {
                frame[at..at + 4].copy_from_slice(&number.to_ne_bytes());
            }
            frame[26..28].copy_from_slice(&80u16.to_ne_bytes());
            frame[KIND_OFFSET] = libc::PACKET_OUTGOING;
            block.extend(frame);
            block.extend_from_slice(head);
        }
        block
    }

    #[test]
    fn each_packet_of_a_block_is_found() {
        let block = block(&[&[1, 2, 3], &[4]]);
        let found: Vec<_> = frames(&block).collect();
        assert_eq!(
            found.iter().map(|frame| frame.head).collect::<Vec<_>>(),
            [&[1, 2, 3][..], &[4]]
        );
        assert!(found.iter().all(|frame| frame.at_ns == 2_000_000_003 && frame.bytes == 1000));
        assert!(found.iter().all(|frame| frame.is_outgoing));
        assert_eq!(frames(&block[..block.len() - 1]).count(), 1, "the last is cut off");
    }

    #[test]
    fn a_packet_that_leads_nowhere_is_the_last() {
        let mut block = block(&[&[1, 2, 3]]);
        block[12..16].copy_from_slice(&u32::MAX.to_ne_bytes());
        assert_eq!(frames(&block).count(), 1);
    }

    proptest! {
        #[test]
        fn no_block_makes_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), at in 0usize..200, to: u8) {
            let found = |block: &[u8]| frames(block).count();
            let _ = found(&bytes);
            let mut changed = block(&[&[1, 2, 3], &[4]]);
            changed[at] = to;
            let _ = found(&changed);
        }
    }
}
