//! The time from before the client starts until payload is on the wire.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use etherparse::{Ethernet2HeaderSlice, Ipv4HeaderSlice, TcpHeaderSlice};

use super::capture::Packet;
use crate::bench::measure::FIRST_BYTE;
use crate::bench::measure::Values;
use crate::bench::programs::Program;

/// Cookies and heads of a data connection are shorter than this; payload comes in chunks.
const PAYLOAD_BYTES: u64 = 1000;

/// The relevant fields of a TCP packet.
struct Segment {
    ports: (u16, u16),
    opens: bool,
    payload_bytes: u64,
}

/// The first segment with payload towards the server, on a connection that was opened after the program's control
/// connections.
pub fn values(packets: &[Packet], program: &Program, began: SystemTime) -> Result<Values> {
    let began_ns = began.duration_since(UNIX_EPOCH)?.as_nanos() as f64;
    let at_ns = first_payload(packets, program.control_connections)
        .context("no payload was among the first packets")?;
    Ok(Values::from([(FIRST_BYTE.id.into(), (at_ns as f64 - began_ns) / 1e6)]))
}

fn first_payload(packets: &[Packet], control_connections: usize) -> Option<u64> {
    let mut opened = Vec::new();
    for packet in packets {
        let Some(segment) = segment(&packet.head) else { continue };
        if segment.opens && !opened.contains(&segment.ports) {
            opened.push(segment.ports);
        }
        let carries = segment.payload_bytes >= PAYLOAD_BYTES;
        let data = opened.iter().skip(control_connections);
        if carries && data.clone().any(|ports| *ports == segment.ports) {
            return Some(packet.at_ns);
        }
    }
    None
}

/// `None` if it is not a whole TCP header. Both ends have the same address, so only the ports show the direction.
fn segment(head: &[u8]) -> Option<Segment> {
    let after = Ethernet2HeaderSlice::from_slice(head).ok()?.slice().len();
    let ip = Ipv4HeaderSlice::from_slice(head.get(after..)?).ok()?;
    let tcp = TcpHeaderSlice::from_slice(head.get(after + ip.slice().len()..)?).ok()?;
    let heads = (ip.slice().len() + tcp.slice().len()) as u64;
    Some(Segment {
        ports: (tcp.source_port(), tcp.destination_port()),
        opens: tcp.syn() && !tcp.ack(),
        payload_bytes: u64::from(ip.total_len()).checked_sub(heads)?,
    })
}

#[cfg(test)]
mod tests {
    use etherparse::PacketBuilder;

    use super::*;

    fn packet(at_ns: u64, ports: (u16, u16), opens: bool, payload: usize) -> Packet {
        let tcp = PacketBuilder::ethernet2([0; 6], [0; 6])
            .ipv4([127, 0, 0, 1], [127, 0, 0, 1], 64)
            .tcp(ports.0, ports.1, 0, 0);
        let tcp = if opens { tcp.syn() } else { tcp };
        let mut head = Vec::new();
        tcp.write(&mut head, &vec![0; payload]).unwrap();
        head.truncate(96);
        Packet { at_ns, head }
    }

    #[test]
    fn control_cookies_and_answers_are_no_payload() {
        let (control, data, answer) = ((40_000, 10_000), (40_001, 10_000), (10_000, 40_001));
        let packets = [
            packet(1, control, true, 0),
            packet(2, control, false, 5000),
            packet(3, data, true, 0),
            packet(4, data, false, 37),
            packet(5, answer, false, 5000),
            packet(6, data, false, 5000),
        ];
        assert_eq!(first_payload(&packets, 1), Some(6));
        assert_eq!(first_payload(&packets, 0), Some(2));
        assert_eq!(first_payload(&packets[..5], 1), None);
    }
}
