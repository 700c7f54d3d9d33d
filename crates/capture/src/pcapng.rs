//! Writes packets as pcapng (draft-ietf-opsawg-pcapng), which Wireshark and tcpdump read.

use std::io::{self, Write};

use crate::SNAP_BYTES;
use crate::block::Frame;

// Types of blocks (section 4 of the draft).
const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const STATISTICS: u32 = 5;
const PACKET: u32 = 6;
/// What a section begins with, by which readers see the order of its bytes.
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
/// Packets begin with the header of IPv4 or IPv6 (`LINKTYPE_RAW`, tcpdump.org/linktypes.html).
const LINK_TYPE: u16 = 101;

// Options.
const END: u16 = 0;
const DEVICE_NAME: u16 = 2;
const TIME_UNIT: u16 = 9;
const FLAGS: u16 = 2;
const RECEIVED: u16 = 4;
const DROPPED: u16 = 5;
/// Times are in 10^-9 s.
const NANOSECONDS: u8 = 9;
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;

/// A file with packets of one device.
#[derive(Debug)]
pub struct Writer<W> {
    to: W,
}

impl<W: Write> Writer<W> {
    /// Begins the file.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn begin(to: W, device: &str) -> io::Result<Self> {
        let mut own = Self { to };
        let mut section = BYTE_ORDER.to_le_bytes().to_vec();
        section.extend([1, 0, 0, 0]);
        // How long the section is, is not known yet.
        section.extend((-1i64).to_le_bytes());
        own.block(SECTION, &section)?;
        let mut interface = LINK_TYPE.to_le_bytes().to_vec();
        interface.extend([0, 0]);
        interface.extend(SNAP_BYTES.to_le_bytes());
        option(&mut interface, DEVICE_NAME, device.as_bytes());
        option(&mut interface, TIME_UNIT, &[NANOSECONDS]);
        option(&mut interface, END, &[]);
        own.block(INTERFACE, &interface)?;
        Ok(own)
    }

    /// Adds a packet.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn packet(&mut self, frame: &Frame) -> io::Result<()> {
        let mut body = 0u32.to_le_bytes().to_vec();
        body.extend(time(frame.at_ns));
        body.extend((frame.head.len() as u32).to_le_bytes());
        body.extend(frame.bytes.to_le_bytes());
        padded(&mut body, frame.head);
        let direction = if frame.is_outgoing { OUTBOUND } else { INBOUND };
        option(&mut body, FLAGS, &direction.to_le_bytes());
        option(&mut body, END, &[]);
        self.block(PACKET, &body)
    }

    /// Ends the file with what the kernel counted at `at_ns`: packets that the filter let pass, and those of them that it had to drop.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn end(mut self, at_ns: u64, received: u64, dropped: u64) -> io::Result<W> {
        let mut body = 0u32.to_le_bytes().to_vec();
        body.extend(time(at_ns));
        option(&mut body, RECEIVED, &received.to_le_bytes());
        option(&mut body, DROPPED, &dropped.to_le_bytes());
        option(&mut body, END, &[]);
        self.block(STATISTICS, &body)?;
        self.to.flush()?;
        Ok(self.to)
    }

    /// A block: its type, its length before and after, and its body, a whole number of words.
    fn block(&mut self, kind: u32, body: &[u8]) -> io::Result<()> {
        let length = (body.len() as u32 + 12).to_le_bytes();
        self.to.write_all(&kind.to_le_bytes())?;
        self.to.write_all(&length)?;
        self.to.write_all(body)?;
        self.to.write_all(&length)
    }
}

/// The upper word of a time first.
fn time(at_ns: u64) -> impl Iterator<Item = u8> {
    let (high, low) = ((at_ns >> 32) as u32, at_ns as u32);
    high.to_le_bytes().into_iter().chain(low.to_le_bytes())
}

fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    body.extend(code.to_le_bytes());
    body.extend((value.len() as u16).to_le_bytes());
    padded(body, value);
}

fn padded(body: &mut Vec<u8>, bytes: &[u8]) {
    body.extend(bytes);
    body.resize(body.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use pcap_parser::{Block, PcapBlockOwned, PcapNGReader, traits::PcapReaderIterator};
    use proptest::prelude::*;

    /// What another reader finds in the file: length on the way and kept bytes of each packet, and the number of other blocks.
    fn read(file: &[u8]) -> (Vec<(u32, Vec<u8>, u64)>, usize) {
        let mut reader = PcapNGReader::new(65_536, file).unwrap();
        let (mut packets, mut others) = (Vec::new(), 0);
        while let Ok((size, block)) = reader.next() {
            match block {
                PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                    let at = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
                    let kept = &packet.data[..packet.caplen as usize];
                    packets.push((packet.origlen, kept.to_vec(), at));
                }
                _ => others += 1,
            }
            reader.consume(size);
        }
        (packets, others)
    }

    proptest! {
        #[test]
        fn another_reader_finds_what_was_written(
            packets in proptest::collection::vec((any::<u32>(), proptest::collection::vec(any::<u8>(), 0..129), any::<u64>()), 0..9),
            device in "[a-z0-9]{1,15}",
        ) {
            let mut writer = Writer::begin(Vec::new(), &device).unwrap();
            for (bytes, head, at_ns) in &packets {
                let frame = Frame { at_ns: *at_ns, head, bytes: *bytes, is_outgoing: true, is_loopback: false };
                writer.packet(&frame).unwrap();
            }
            let file = writer.end(7, packets.len() as u64, 0).unwrap();
            prop_assert_eq!(read(&file), (packets, 3));
        }
    }

    #[test]
    fn a_full_disk_is_an_error() {
        let begun = |disk: &mut [u8]| Writer::begin(disk, "eth0").is_ok();
        assert!(!begun(&mut [0; 60]) && begun(&mut [0; 100]));
        let mut disk = [0u8; 100];
        let mut writer = Writer::begin(&mut disk[..], "eth0").unwrap();
        let [is_outgoing, is_loopback] = [false; 2];
        let frame = Frame { at_ns: 0, head: &[7; 128], bytes: 128, is_outgoing, is_loopback };
        assert!(writer.packet(&frame).is_err());
    }
}
