//! What a test costs the line: the bytes of its IP packets, both ways.

use goodput_model::sample::FlowSample;
use goodput_model::{Bytes, Known, Record, Sample};

/// Bytes of a TCP header with timestamps (RFC 9293, RFC 7323).
const TCP_HEADER_BYTES: u64 = 32;
/// Bytes of the headers of IPv4 and IPv6 (RFC 791, RFC 8200).
const IP_HEADER_BYTES: [u64; 2] = [20, 40];
/// Bytes of a UDP header (RFC 768).
const UDP_HEADER_BYTES: u64 = 8;
/// Share of a test's bytes that is payload, at least: with IPv6 and 1500-byte packets, a header and half an
/// acknowledgement cost 7.5 %. The rest is for what is sent twice and for both ends' reports.
const PAYLOAD_SHARE: f64 = 0.9;

/// The payload of a test that may cost `share`.
pub fn payload_of(share: Bytes) -> Bytes {
    Bytes((share.0 as f64 * PAYLOAD_SHARE) as u64)
}

/// The bytes of the IP packets of a test's flows, in both directions, and of the far end's report, which has
/// `report_bytes`.
///
/// The kernel counts TCP's packets. For other flows, it is the payload with a header for each chunk.
pub fn bytes_on_the_path(record: &Record, report_bytes: u64) -> Bytes {
    let over_v6 = record.connections.first().is_some_and(|flow| flow.remote.is_ipv6());
    let ip_header = IP_HEADER_BYTES[usize::from(over_v6)];
    let samples = record.ends.near.value().map(|near| &near.samples[..]).unwrap_or_default();
    let counted = counted_by_tcp(samples, ip_header + TCP_HEADER_BYTES);
    let packets = |payload: u64| payload.div_ceil(record.plan.chunk_bytes.0.clamp(1, 1452));
    let payload = moved(record);
    let estimated = || payload + packets(payload) * (ip_header + UDP_HEADER_BYTES);
    // What the program had written may have waited in its socket when the kernel's count was read.
    Bytes(counted.unwrap_or_else(estimated).max(payload) + report_bytes)
}

/// What the kernel counted until the newest sample with details, and the payload since then.
fn counted_by_tcp(samples: &[Sample], header: u64) -> Option<u64> {
    let detailed = samples.iter().rev().find(|sample| !sample.flows.is_empty())?;
    let last = samples.last()?;
    let flows: Option<Vec<u64>> = detailed.flows.iter().map(|flow| of_flow(flow, header)).collect();
    let moved = |sample: &Sample| sample.sent_bytes + sample.received_bytes;
    Some(flows?.iter().sum::<u64>() + moved(last).saturating_sub(moved(detailed)))
}

fn of_flow(flow: &FlowSample, header: u64) -> Option<u64> {
    let tcp = flow.tcp.value()?;
    // tcpi_bytes_sent counts what was sent twice twice (RFC 4898, tcpEStatsPerfHCDataOctetsOut).
    let payload = tcp.sent_bytes? + tcp.received_bytes?;
    Some(payload + (tcp.segs_in? + tcp.segs_out?) * header)
}

/// Payload of all directions, as far as an end counted it.
fn moved(record: &Record) -> u64 {
    let known = |count: &Known<u64>| count.value().copied().unwrap_or_default();
    let directions = record.result.directions.iter();
    directions
        .map(|direction| known(&direction.sent_bytes).max(known(&direction.received_bytes)))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::TcpInfo;

    /// A TCP test of which the kernel counted these segments in and out.
    fn record(segments: Option<[u64; 2]>) -> Record {
        let json = include_str!("../../store/tests/golden/v1/test.json");
        let mut record = Record::from_json(json).unwrap();
        let tcp = last_tcp(&mut record);
        tcp.sent_bytes = Some(156_000_000);
        tcp.received_bytes = Some(0);
        [tcp.segs_in, tcp.segs_out] = match segments {
            Some([incoming, outgoing]) => [Some(incoming), Some(outgoing)],
            None => [None, None],
        };
        record
    }

    fn last_tcp(record: &mut Record) -> &mut TcpInfo {
        let Known::Value(near) = &mut record.ends.near else { panic!("the golden record has it") };
        let flow = &mut near.samples.last_mut().unwrap().flows[0];
        let Known::Value(tcp) = &mut flow.tcp else { panic!("the golden record has it") };
        tcp
    }

    #[test]
    fn what_waited_in_the_socket_when_the_kernel_was_asked_counts() {
        let mut early = record(Some([1, 2]));
        last_tcp(&mut early).sent_bytes = Some(2896);
        assert_eq!(bytes_on_the_path(&early, 1000), Bytes(156_200_000 + 1000));
    }

    #[test]
    fn headers_and_acknowledgements_cost_too() {
        let bytes = bytes_on_the_path(&record(Some([54_000, 108_000])), 1000);
        assert_eq!(bytes, Bytes(156_000_000 + 162_000 * 52 + 1000));
    }

    #[test]
    fn without_counts_of_the_kernel_it_is_the_payload_with_headers() {
        let Bytes(bytes) = bytes_on_the_path(&record(None), 0);
        // What was sent in the golden record, in chunks of 1452 bytes.
        assert_eq!(bytes, 156_200_000 + 156_200_000_u64.div_ceil(1452) * 28);
    }

    #[test]
    fn a_share_has_room_for_what_is_not_payload() {
        // 1440 bytes of payload over IPv6, with a header and half an acknowledgement.
        let payload = payload_of(Bytes(10_000_000)).0 as f64;
        assert!(payload * (1440.0 + 72.0 + 36.0) / 1440.0 < 10_000_000.0 * 0.98);
    }
}
