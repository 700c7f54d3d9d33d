//! Samples that tests of iperf3's accounts are made of.

use goodput_model::{DatagramCounts, FlowSample, Known, Role, Sample};

fn flow(flow: u16, role: Role, bytes: u64) -> FlowSample {
    let untold = || Known::missing("of no matter here");
    FlowSample {
        flow,
        role,
        bytes,
        blocked_us: untold(),
        paced_us: untold(),
        calls: untold(),
        cpu_us: untold(),
        cpu_wait_us: untold(),
        source_us: goodput_model::no_storage(),
        sink_us: goodput_model::no_storage(),
        copied_sends: None,
        mapped_bytes: None,
        exhausted_buffers: None,
        tcp: Known::missing("of no matter here"),
        mptcp_subflows: None,
        memory: Known::missing("of no matter here"),
        queued_bytes: untold(),
        datagrams: None,
    }
}

/// Flows that all have one role, with their bytes.
pub fn detailed(at_s: f64, role: Role, bytes: &[u64]) -> Sample {
    let flows = bytes.iter().enumerate().map(|(id, bytes)| flow(id as u16, role, *bytes));
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
