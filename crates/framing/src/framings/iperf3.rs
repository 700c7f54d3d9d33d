//! iperf3: 12 or 16 bytes in front of every datagram (src/iperf_udp.c, `iperf_udp_send`, 3.12).
//! Numbers are big-endian.
//!
//! | bytes | what |
//! |---|---|
//! | 0-3 | time of sending, seconds of the sender's monotonic clock |
//! | 4-7 | its microseconds |
//! | 8-11 | number of the datagram, from 1; with `--udp-counters-64bit` bytes 8-15 |
//!
//! The end is announced on the control connection.

use super::Kind;
use crate::numbers::Unwrap;
use crate::times::{time_at, time_bytes};
use crate::{Clock, Closing, Datagrams, Framing, Layout, NUMBER_BOUND, Read, Sent};

/// The registry's entry.
pub const KIND: Kind = Kind { id: "iperf3", examples: || vec![iperf3(false), iperf3(true)] };

/// iperf3: each datagram has its sending time and a number from 1; no end marker. `wide`: the number has 64 bits
/// instead of 32 (`--udp-counters-64bit`).
pub fn iperf3(wide: bool) -> Framing {
    Framing::new(Numbered { wide })
}

#[derive(Debug)]
struct Numbered {
    wide: bool,
}

impl Layout for Numbered {
    fn datagrams(&self, _flow: u16, _chunk: usize) -> Box<dyn Datagrams> {
        Box::new(Iperf3::new(self.wide))
    }

    fn ends_elsewhere(&self) -> bool {
        true
    }
}

/// The datagrams of one flow.
#[derive(Debug, Clone)]
struct Iperf3 {
    wide: bool,
    numbers: Unwrap,
}

impl Iperf3 {
    /// With 64-bit numbers if `wide`, otherwise 32-bit numbers.
    fn new(wide: bool) -> Self {
        Self { wide, numbers: Unwrap::default() }
    }
}

impl Datagrams for Iperf3 {
    fn least(&self) -> usize {
        if self.wide { 16 } else { 12 }
    }

    fn clock(&self) -> Clock {
        Clock::Monotonic
    }

    fn write(&self, datagram: &mut [u8], sent: Sent) {
        let time = time_bytes(sent.at_ns);
        datagram[..8].copy_from_slice(&time);
        let number = sent.number + 1;
        if self.wide {
            datagram[8..16].copy_from_slice(&number.to_be_bytes());
        } else {
            // The lower half, because the real sender's 32 bits wrap too.
            datagram[8..12].copy_from_slice(&(number as u32).to_be_bytes());
        }
    }

    fn read(&mut self, datagram: &[u8]) -> Read {
        let number = match (self.wide, datagram) {
            (true, [_, _, _, _, _, _, _, _, a, b, c, d, e, f, g, h, ..]) => {
                u64::from_be_bytes([*a, *b, *c, *d, *e, *f, *g, *h])
            }
            (false, [_, _, _, _, _, _, _, _, a, b, c, d, ..]) => {
                self.numbers.number(u32::from_be_bytes([*a, *b, *c, *d]))
            }
            _ => return Read::Foreign,
        };
        match number.checked_sub(1) {
            Some(number) if number < NUMBER_BOUND => {
                Read::Payload { number: Some(number), sent_ns: time_at(datagram, 0) }
            }
            _ => Read::Foreign,
        }
    }

    fn closing(&self, _round: u64, _sent: Sent, _room: &mut [u8]) -> Option<Closing> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const AT_NS: u64 = 764_000_123_000;

    #[test]
    fn the_layout_is_what_the_table_says() {
        let (mut datagram, sent) = ([7; 18], Sent { number: 0, bytes: 18, at_ns: AT_NS });
        Iperf3::new(true).write(&mut datagram, sent);
        assert_eq!(datagram, *b"\0\0\x02\xfc\0\0\0\x7b\0\0\0\0\0\0\0\x01\x07\x07");
        let (mut datagram, sent) = ([7; 13], Sent { number: 0x1_0000_0001, ..sent });
        Iperf3::new(false).write(&mut datagram, sent);
        assert_eq!(datagram, *b"\0\0\x02\xfc\0\0\0\x7b\0\0\0\x02\x07");
    }

    #[test]
    fn there_is_no_datagram_0_but_the_one_after_the_last_of_32_bits() {
        let mut format = Iperf3::new(false);
        assert_eq!(format.read(&[0; 12]), Read::Foreign);
        let mut read = |number: u32| {
            let datagram = [&[0; 8][..], &number.to_be_bytes()].concat();
            match format.read(&datagram) {
                Read::Payload { number, .. } => number,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(read(u32::MAX), Some(0xffff_fffe));
        assert_eq!(read(0), Some(0xffff_ffff));
        assert_eq!(read(1), Some(0x1_0000_0000));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(wide: bool, number in 0u64..1 << 31, at_us in 0u64..1 << 50, tail in 0usize..9) {
            let mut format = Iperf3::new(wide);
            let mut datagram = vec![7; format.least() + tail];
            format.write(&mut datagram, Sent { number, bytes: 0, at_ns: at_us * 1000 });
            let sent_ns = Some(at_us * 1000);
            prop_assert_eq!(format.read(&datagram), Read::Payload { number: Some(number), sent_ns });
        }
    }
}
