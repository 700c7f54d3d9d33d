//! Captures the packets of what this end measures.

use std::path::Path;

use goodput_capture::{Capture, Captured, Packet, Wanted};
use goodput_model::{CapturedPayload, Connection, EndName, PacketCapture, Plan, Record, Transport};
use goodput_shaping::captured;

use super::client::Client;
use super::host_before::path;
use crate::error::EngineError;
use crate::threads::blocking;

/// A capture that runs beside one measurement, or several with the same peer.
pub(super) struct TestCapture {
    capture: Capture,
    wanted: Wanted,
}

impl TestCapture {
    /// Begins to capture into `file` what passes between this host and the peer.
    ///
    /// # Errors
    /// If a privilege is missing, the device is unknown, or the file can't be written.
    pub(super) async fn start(
        client: &Client,
        plan: &Plan,
        file: &Path,
    ) -> Result<Self, EngineError> {
        let peer = client.addresses.first().copied();
        let device = path(peer, plan).device_name();
        let unknown = |why| EngineError::Flow(format!("can't capture packets: {why}"));
        let device = device.map_err(|why| unknown(why.to_string()))?;
        let peer = peer.ok_or_else(|| unknown("the target's address is unknown".into()))?;
        let wanted = Wanted { device, peer: peer.ip(), file: file.into() };
        let started = blocking({
            let wanted = wanted.clone();
            move || Capture::start(&wanted)
        });
        Ok(Self { capture: started.await??, wanted })
    }

    /// Ends, and notes in the record what was captured of these flows. What is missing there is a doubt.
    pub(super) async fn finish(self, record: &mut Record, flows: &[Connection]) {
        let Self { capture, wanted } = self;
        let found = match blocking(move || capture.finish()).await {
            Ok(found) => found,
            Err(why) => Captured { failure: Some(why.to_string()), ..Captured::default() },
        };
        let own = summary(&wanted.device, &wanted.file, found, flows);
        record.doubts.extend(doubt(&own));
        record.capture = Some(Box::new(own));
    }
}

/// What was captured of these flows at a device, and written to a file.
pub(super) fn summary(
    device: &str,
    file: &Path,
    found: Captured,
    connections: &[Connection],
) -> PacketCapture {
    let ends = [EndName::Near, EndName::Far];
    let each = [Transport::Udp, Transport::Tcp].into_iter().flat_map(|transport| {
        ends.map(|sender| payload(&found.packets, connections, sender, transport))
    });
    PacketCapture {
        payload: each.filter(|payload| payload.packets > 0).collect(),
        device: device.into(),
        file: file.display().to_string(),
        packets: found.packets.len() as u64 + found.not_kept,
        dropped: found.dropped,
        not_read: found.not_kept,
        not_kept: 0,
        failure: found.failure,
    }
}

/// Packets with payload that `sender` sent. The control connection and what compares the clocks are no flows.
fn payload(
    packets: &[Packet],
    connections: &[Connection],
    sender: EndName,
    transport: Transport,
) -> CapturedPayload {
    let is_flow = |own: u16, far: u16| {
        connections.iter().any(|flow| (flow.local.port(), flow.remote.port()) == (own, far))
    };
    let is_wanted = |packet: &&Packet| {
        let (own, far) = match sender {
            EndName::Near => (packet.from_port, packet.to_port),
            EndName::Far => (packet.to_port, packet.from_port),
        };
        let is_transport = packet.is_tcp == (transport == Transport::Tcp);
        packet.payload > 0 && is_transport && is_flow(own, far)
    };
    let first_ns = packets.first().map_or(0, |packet| packet.at_ns);
    let since_first = |packet: &Packet| {
        let ns = packet.at_ns.saturating_sub(first_ns);
        (ns as f64 / 1e9, u64::from(packet.bytes))
    };
    captured(sender, transport, packets.iter().filter(is_wanted).map(since_first))
}

/// Why the capture may mislead, if it does.
fn doubt(own: &PacketCapture) -> Option<String> {
    let PacketCapture { file, dropped, packets, .. } = own;
    if let Some(why) = &own.failure {
        return Some(format!("the capture in {file} ends early: {why}"));
    }
    if own.not_read > 0 {
        let read = packets - own.not_read;
        return Some(format!(
            "sizes and gaps of the capture in {file} are those of its first {read} packets only"
        ));
    }
    (*dropped > 0).then(|| {
        format!(
            "the capture in {file} lacks {dropped} of {} packets: this host could not keep up, so that its gaps are none of the path's",
            packets + dropped
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(from_port: u16, to_port: u16, is_tcp: bool, payload: u32) -> Packet {
        Packet { at_ns: 0, from_port, to_port, is_tcp, bytes: payload + 52, payload }
    }

    fn flow(local: u16) -> Connection {
        Connection {
            flow: 0,
            local: ([10, 0, 0, 1], local).into(),
            remote: ([10, 0, 0, 2], 7487).into(),
            expected_queue: None,
        }
    }

    fn summary_of(found: Captured, flows: &[Connection]) -> PacketCapture {
        summary("eth0", Path::new("own.pcapng"), found, flows)
    }

    #[test]
    fn only_payload_of_flows_counts() {
        let packets = vec![
            packet(40_000, 7487, true, 100),
            packet(40_001, 7487, true, 1448),
            packet(7487, 40_001, true, 0),
            packet(40_002, 7487, false, 64),
            packet(40_003, 7487, false, 1472),
        ];
        let found = Captured { packets, ..Captured::default() };
        let seen = summary_of(found, &[flow(40_001), flow(40_003)]);
        let each: Vec<_> =
            seen.payload.iter().map(|own| (own.transport, own.largest_bytes.0)).collect();
        assert_eq!(each, [(Transport::Udp, 1524), (Transport::Tcp, 1500)]);
        assert!(seen.payload.iter().all(|own| own.sender == EndName::Near && own.packets == 1));
        assert_eq!((seen.packets, doubt(&seen)), (5, None));
    }

    #[test]
    fn what_is_missing_is_a_doubt() {
        let lost = Captured { dropped: 7, ..Captured::default() };
        assert!(doubt(&summary_of(lost, &[])).unwrap().contains("lacks 7 of 7 packets"));
        let full =
            Captured { failure: Some("No space left on device".into()), ..Captured::default() };
        assert!(doubt(&summary_of(full, &[])).unwrap().contains("No space left"));
    }
}
