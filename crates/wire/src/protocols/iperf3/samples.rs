//! Samples for tests of iperf3's counts.

use goodput_model::{DatagramCounts, FlowSample, Role, Sample};

/// Flows that all have one role, with their bytes.
pub fn detailed(at_s: f64, role: Role, bytes: &[u64]) -> Sample {
    let flows = bytes
        .iter()
        .enumerate()
        .map(|(id, bytes)| FlowSample::unreported(id as u16, role, *bytes, "of no matter here"));
    let total = bytes.iter().sum();
    let (sent_bytes, received_bytes) = match role {
        Role::Sender => (total, 0),
        Role::Receiver => (0, total),
    };
    Sample { at_s, sent_bytes, received_bytes, flows: flows.collect() }
}

/// A receiver of datagrams of 1000 bytes.
pub fn udp(at_s: f64, sent: u64, received: u64, lost: u64) -> Sample {
    let mut sample = detailed(at_s, Role::Receiver, &[received * 1000]);
    assert_eq!(sent, received + lost);
    let counts = DatagramCounts { received, lost, jitter_us: 327.0, ..DatagramCounts::default() };
    sample.flows[0].datagrams = Some(counts);
    sample
}
