//! Replaces a missing receiver's count by the bytes that its TCP acknowledged.

use goodput_model::{FlowSample, Role, Sample};

/// What the receiver must have had by then, according to the sender's samples: as a receiver's samples, with the
/// sender's times. Bytes are those of `tcpi_bytes_acked` (`tcpEStatsAppHCThruOctetsAcked`, RFC 4898), so some wait in
/// the receiver's socket for its application, and the first 25 are the handshake's and the cookie's. Control messages
/// beside the payload are not counted. Samples without the detail of every flow are left out; for UDP, which
/// acknowledges nothing, all are.
pub fn acknowledged(sender: &[Sample]) -> Vec<Sample> {
    sender.iter().filter_map(one).collect()
}

fn one(sample: &Sample) -> Option<Sample> {
    let sending = sample.flows.iter().filter(|flow| flow.role == Role::Sender);
    let acked = |flow: &FlowSample| {
        flow.acked_payload_bytes.or_else(|| flow.tcp.value()?.acked_bytes().ok())
    };
    let each: Option<Vec<u64>> = sending.map(acked).collect();
    let received = each.filter(|each| !each.is_empty())?.into_iter().try_fold(0, u64::checked_add);
    Some(Sample { at_s: sample.at_s, sent_bytes: 0, received_bytes: received?, flows: Vec::new() })
}
