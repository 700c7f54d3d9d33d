//! How evenly a paced flow of datagrams arrives: its mean rate, and the gaps between packets.

use anyhow::{Context, Result, bail};
use etherparse::{Ethernet2HeaderSlice, Ipv4HeaderSlice, UdpHeaderSlice};

use super::capture::Packet;
use crate::bench::load::Load;
use crate::bench::measure::Values;
use crate::bench::measure::{EVEN_GAPS, RATE_ERROR};

/// A gap that differs from the ideal by at most this share of it is even.
const GAP_TOLERANCE_SHARE: f64 = 0.2;

/// Mean rate and gaps of the datagrams of a load that has a rate. The mean is from the first to the last, so that
/// neither beginning nor end counts.
///
/// Datagrams that the kernel handled as one packet arrive at the same moment: all but one of their gaps are zero.
pub fn values(packets: &[Packet], load: &Load) -> Result<Values> {
    let rate = load.rate_bits_per_s.context("the load has no rate")? as f64;
    let bits = f64::from(load.chunk_bytes) * 8.0;
    let ideal_ns = bits / rate * 1e9;
    let chunk = u64::from(load.chunk_bytes);
    let trains: Vec<(u64, u64)> = packets
        .iter()
        .filter_map(|packet| Some((packet.at_ns, payload_bytes(&packet.head)?)))
        .filter(|(_, payload)| *payload >= chunk)
        .map(|(at_ns, payload)| (at_ns, payload.div_ceil(chunk)))
        .collect();
    let [(first_ns, _), .., (last_ns, last)] = trains[..] else {
        bail!("fewer than two datagrams arrived");
    };
    let all: u64 = trains.iter().map(|(_, datagrams)| datagrams).sum();
    let seconds = last_ns.saturating_sub(first_ns) as f64 / 1e9;
    // Datagrams that arrived with the last packet took no time of the span.
    let mean = (all - last) as f64 * bits / seconds;
    let gaps = trains.windows(2).map(|pair| pair[1].0 as f64 - pair[0].0 as f64);
    let even = gaps.filter(|gap| (gap / ideal_ns - 1.0).abs() <= GAP_TOLERANCE_SHARE).count();
    Ok(Values::from([
        (RATE_ERROR.id.into(), 100.0 * (mean / rate - 1.0).abs()),
        (EVEN_GAPS.id.into(), 100.0 * even as f64 / (all - 1) as f64),
    ]))
}

/// Payload of a UDP packet, by the length of its IP packet.
fn payload_bytes(head: &[u8]) -> Option<u64> {
    let after = Ethernet2HeaderSlice::from_slice(head).ok()?.slice().len();
    let ip = Ipv4HeaderSlice::from_slice(head.get(after..)?).ok()?;
    let udp = UdpHeaderSlice::from_slice(head.get(after + ip.slice().len()..)?).ok()?;
    let heads = ip.slice().len() + udp.slice().len();
    u64::from(ip.total_len()).checked_sub(heads as u64)
}

#[cfg(test)]
mod tests {
    use etherparse::PacketBuilder;

    use super::*;

    const LOAD: Load = Load::udp(1000).at(8_000_000);

    fn packet(at_us: u64, payload: usize) -> Packet {
        let builder = PacketBuilder::ethernet2([0; 6], [0; 6])
            .ipv4([192, 0, 2, 1], [192, 0, 2, 2], 64)
            .udp(1, 2);
        let mut head = Vec::new();
        builder.write(&mut head, &vec![0; payload]).unwrap();
        head.truncate(96);
        Packet { at_ns: at_us * 1000, head }
    }

    #[test]
    fn a_perfect_flow_has_no_error() {
        let packets: Vec<_> = (0..100).map(|n| packet(n * 1000, 1000)).collect();
        let values = values(&packets, &LOAD).unwrap();
        assert!(values[RATE_ERROR.id] < 1e-9);
        assert_eq!(values[EVEN_GAPS.id], 100.0);
    }

    #[test]
    fn joined_datagrams_are_not_even() {
        // Ten at once, every ten milliseconds: the mean is right.
        let packets: Vec<_> = (0..11).map(|n| packet(n * 10_000, 10_000)).collect();
        let values = values(&packets, &LOAD).unwrap();
        assert!(values[RATE_ERROR.id] < 1e-9);
        assert_eq!(values[EVEN_GAPS.id], 0.0);
    }

    #[test]
    fn other_packets_do_not_count() {
        let packets = [packet(0, 1000), packet(500, 20), packet(1000, 1000), packet(3000, 1000)];
        let values = values(&packets, &LOAD).unwrap();
        assert_eq!(values[EVEN_GAPS.id], 50.0);
        assert!(super::values(&packets[..1], &LOAD).is_err());
    }
}
