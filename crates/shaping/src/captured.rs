//! What captured packets show of their sizes and of the pauses between them.

use std::collections::BTreeMap;

use goodput_model::{Bytes, CapturedPayload, EndName, PacketSize, Transport};

use crate::gaps::{Passed, gaps};

/// Largest number of packet sizes in the result.
const MAX_SIZES: usize = 5;

/// Packets with payload of one end and transport, each with its time in seconds, the earliest first, and its bytes.
pub fn captured(
    sender: EndName,
    transport: Transport,
    packets: impl IntoIterator<Item = (f64, u64)>,
) -> CapturedPayload {
    let passed = packets.into_iter().map(|(at_s, bytes)| Passed { at_s, bytes: bytes as f64 });
    let passed: Vec<Passed> = passed.collect();
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    for one in &passed {
        *counts.entry(one.bytes as u64).or_default() += 1;
    }
    let largest = counts.keys().next_back().copied().unwrap_or_default();
    let size = |(bytes, packets)| PacketSize { bytes: Bytes(bytes), packets };
    let mut sizes: Vec<PacketSize> = counts.into_iter().map(size).collect();
    sizes.sort_by_key(|size| std::cmp::Reverse((size.packets, size.bytes.0)));
    sizes.truncate(MAX_SIZES);
    CapturedPayload {
        sender,
        transport,
        packets: passed.len() as u64,
        largest_bytes: Bytes(largest),
        sizes,
        gaps: gaps(&passed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_bursts_of_captured_packets_are_seen() {
        let burst = |n: u32| {
            [(0.0, 65_212), (1e-5, 1500), (2e-5, 1500)]
                .map(|(at, bytes)| (f64::from(n) * 0.2 + at, bytes))
        };
        let seen = captured(EndName::Near, Transport::Tcp, (0..10).flat_map(burst));
        assert_eq!((seen.packets, seen.largest_bytes), (30, Bytes(65_212)));
        let sizes = [(1500, 20), (65_212, 10)];
        assert_eq!(
            seen.sizes.iter().map(|size| (size.bytes.0, size.packets)).collect::<Vec<_>>(),
            sizes
        );
        let rhythm = seen.gaps.rhythm.unwrap();
        assert!((rhythm.period_s - 0.2).abs() < 1e-9, "{rhythm:?}");
        assert_eq!(rhythm.burst_bytes, Bytes(68_212));
    }

    #[test]
    fn nothing_has_no_size() {
        let none = captured(EndName::Far, Transport::Udp, []);
        assert_eq!((none.packets, none.sizes.len(), none.gaps.rhythm), (0, 0, None));
    }
}
