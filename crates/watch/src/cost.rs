//! What a test costs the line: the bytes of its IP packets, both ways.

use goodput_model::sample::FlowSample;
use goodput_model::{Bytes, Connection, Known, Length, Plan, Record, Sample, TcpInfo, Transport};

/// Bytes of a TCP header with timestamps (RFC 9293, RFC 7323).
const TCP_HEADER_BYTES: u64 = 32;
/// Bytes of the headers of IPv4 and IPv6 (RFC 791, RFC 8200).
const IP_HEADER_BYTES: [u64; 2] = [20, 40];
/// Bytes of a UDP header (RFC 768).
const UDP_HEADER_BYTES: u64 = 8;
/// Payload of a full segment on an Ethernet line with IPv4 and timestamps (RFC 894, RFC 7323).
const SEGMENT_BYTES: u64 = 1448;
/// Payload from which on the kernel's counts say what more payload costs: an initial window (RFC 6928). Before, they are of
/// the few small segments with which a flow names itself, of which each has a header.
const ENOUGH_BYTES: u64 = 10 * SEGMENT_BYTES;
/// What a test moves after its end was asked for, in times of its largest step between two samples: on a busy host a
/// sample is late, both ends have to hear of the end, and what is in the sockets is still sent.
const STEPS_TO_END: u64 = 3;
/// Share of a test's bytes that is payload, at least: with IPv6 and 1500-byte packets, a header and half an
/// acknowledgement cost 7.5 %. The rest is for what is sent twice and for what both ends say beside it.
const PAYLOAD_SHARE: f64 = 0.9;

/// How many times what was expected a test may cost before it is ended: a line that loses half of what is sent carries it
/// twice.
const MOST_TIMES: u64 = 2;

/// What the next test may cost: what its payload costs if nothing is lost, or its `share` of the budget if the plan names
/// no payload; more if the `last` test did, but no more than the whole `budget`.
pub fn expected_cost(plan: &Plan, share: Bytes, last: Option<Bytes>, budget: Bytes) -> Bytes {
    planned_cost(plan).unwrap_or(share).max(last.unwrap_or(Bytes(0))).min(budget)
}

/// The bytes with which a test ends that was expected to cost `expected`, if this number is `left` of the budget. What it
/// has cost if nobody saw its end.
pub fn limit(expected: Bytes, left: Bytes) -> Bytes {
    Bytes(expected.0.saturating_mul(MOST_TIMES)).min(left)
}

/// What a test of `plan` costs if nothing is lost; none if it moves what the path lets through.
pub fn planned_cost(plan: &Plan) -> Option<Bytes> {
    let Length::Bytes(Bytes(each)) = plan.length else { return None };
    Some(cost_of(Bytes(each.saturating_mul(plan.direction.senders().len() as u64))))
}

/// What a test of this payload may cost.
pub fn cost_of(payload: Bytes) -> Bytes {
    Bytes((payload.0 as f64 / PAYLOAD_SHARE).ceil() as u64)
}

/// The payload of a test that may cost `share`.
pub fn payload_of(share: Bytes) -> Bytes {
    Bytes((share.0 as f64 * PAYLOAD_SHARE) as u64)
}

/// What a test costs the line, while it runs and afterwards: the bytes of its flows' IP packets, in both directions.
///
/// The kernel counts TCP's bytes and packets, but only now and then, and what the program has written waits in the socket
/// first. So what the kernel counted for each byte of new payload is taken for the payload that it did not count yet. Until
/// enough was counted for that, this payload has the headers and the acknowledgements of full segments. Other flows have a
/// header for each chunk.
///
/// TCP counts a segment before the queue of this host gets it (`__tcp_transmit_skb`, net/ipv4/tcp_output.c), and if that drops
/// it, counts it again. A program that sends datagrams is told of no drop at all. So a test costs no more than its device carried,
/// of datagrams if it has one flow: several may go over several devices, and what is lost of them tells of none.
#[derive(Debug, Clone)]
pub struct Meter {
    ip_header: u64,
    /// Bytes of a datagram's payload; none with TCP.
    datagram_bytes: Option<u64>,
    /// Bytes on the line and of new payload, as the kernel counted them; none until it did.
    counted: Option<[u64; 2]>,
    payload: u64,
    /// Payload that TCP knows to have arrived, at either end, or that was received of the datagrams of one flow; none until all
    /// flows tell.
    arrived: Option<u64>,
    /// Payload that the far end received of the datagrams of one flow, as far as it told.
    far_received: u64,
    /// Whether there is one flow.
    has_one_flow: bool,
    /// What the device of the flows has carried meanwhile, both ways and of others too, if that is known.
    carried: Option<u64>,
    /// Most payload between two samples.
    step: u64,
    /// Payload of the whole test, if the plan says.
    most: Option<u64>,
}

impl Meter {
    /// For the tests of `plan`. IPv4, until a connection says otherwise.
    pub fn new(plan: &Plan) -> Self {
        let directions = plan.direction.senders().len() as u64;
        Self {
            ip_header: IP_HEADER_BYTES[0],
            datagram_bytes: (plan.transport == Transport::Udp)
                .then(|| plan.chunk_bytes.0.clamp(1, 1452)),
            counted: None,
            payload: 0,
            arrived: None,
            far_received: 0,
            has_one_flow: false,
            carried: None,
            step: 0,
            most: match plan.length {
                Length::Bytes(Bytes(each)) => Some(each.saturating_mul(directions)),
                _ => None,
            },
        }
    }

    /// Takes the addresses of the flows.
    pub fn open(&mut self, connections: &[Connection]) {
        let over_v6 = connections.first().is_some_and(|flow| flow.remote.is_ipv6());
        self.ip_header = IP_HEADER_BYTES[usize::from(over_v6)];
        self.has_one_flow = connections.len() == 1;
    }

    /// Takes what this host has counted.
    pub fn see(&mut self, sample: &Sample) {
        let payload = sample.sent_bytes + sample.received_bytes;
        self.step = self.step.max(payload.saturating_sub(self.payload));
        self.payload = payload;
        let header = self.ip_header + TCP_HEADER_BYTES;
        let flows = sample.flows.iter().map(|flow| of_flow(flow, header));
        let counted: Option<[u64; 2]> = flows
            .reduce(|sum, flow| sum.zip(flow).map(|([a, b], [c, d])| [a + c, b + d]))
            .flatten();
        self.counted = counted.or(self.counted);
        let arrived = match self.datagram_bytes {
            Some(_) => self.of_datagrams(sample.received_bytes),
            None => arrived_by_tcp(sample),
        };
        self.arrived = arrived.or(self.arrived);
    }

    /// Takes what the far host has counted.
    pub fn see_far(&mut self, sample: &Sample) {
        self.far_received = self.far_received.max(sample.received_bytes);
    }

    /// What has arrived of the datagrams of one flow, if this end has received so many bytes.
    fn of_datagrams(&self, received: u64) -> Option<u64> {
        let arrived = received.saturating_add(self.far_received);
        (self.has_one_flow && arrived > 0).then_some(arrived)
    }

    /// Takes what the device of the flows has carried since they began, in bytes of both directions, also of others; none if
    /// that is not known any more.
    pub fn see_carried(&mut self, bytes: Option<u64>) {
        self.carried = bytes;
    }

    /// What the test has cost so far.
    pub fn bytes(&self) -> Bytes {
        self.cost(self.payload)
    }

    /// What the kernel counted on the line so far; none until it did. What waits in a socket is not in it.
    pub fn on_the_line(&self) -> Option<Bytes> {
        self.counted.map(|[line, _]| Bytes(line))
    }

    /// Whether it would cost more than `limit` by the time it ends, if it goes on until the next sample. A test whose
    /// payload has all moved goes on no more.
    pub fn will_exceed(&self, limit: Bytes) -> bool {
        let most = self.most.unwrap_or(u64::MAX);
        let ahead = self.step.saturating_mul(STEPS_TO_END);
        self.payload < most && self.cost(self.payload.saturating_add(ahead).min(most)) > limit
    }

    fn cost(&self, payload: u64) -> Bytes {
        Bytes(self.by_tcp(payload).min(self.by_device(payload).unwrap_or(u64::MAX)))
    }

    /// What this payload costs by what TCP counted.
    fn by_tcp(&self, payload: u64) -> u64 {
        let Some([line, new]) = self.counted else { return self.in_full_packets(payload) };
        let rest = payload.saturating_sub(new);
        match new >= ENOUGH_BYTES {
            true => line + (rest as f64 * line as f64 / new as f64).round() as u64,
            false => line.saturating_add(self.in_full_packets(rest)),
        }
    }

    /// The most that this payload can cost by what the device has carried, of which the last step may be missing. What has not
    /// arrived by TCP costs as much for each byte as what has; datagrams are not sent again. None if the device did not carry
    /// what arrived: then the flows go over another one.
    fn by_device(&self, payload: u64) -> Option<u64> {
        let arrived = self.arrived?;
        let carried = self.carried.filter(|carried| *carried >= arrived)?;
        if self.datagram_bytes.is_some() {
            let ahead = payload.saturating_sub(self.payload);
            return Some(
                self.in_full_packets(carried.saturating_add(self.step).saturating_add(ahead)),
            );
        }
        let waits = self.in_full_packets(payload.saturating_sub(arrived));
        let times = (carried as f64 / arrived.max(1) as f64).max(1.0);
        let carried = self.in_full_packets(carried.saturating_add(self.step));
        Some(carried.saturating_add((waits as f64 * times).ceil() as u64))
    }

    /// What payload costs in packets as large as they get, with an acknowledgement for every second segment.
    fn in_full_packets(&self, payload: u64) -> u64 {
        let (packet, headers) = match self.datagram_bytes {
            Some(bytes) => (bytes, self.ip_header + UDP_HEADER_BYTES),
            None => (SEGMENT_BYTES, (self.ip_header + TCP_HEADER_BYTES) * 3 / 2),
        };
        payload.saturating_add(payload.div_ceil(packet).saturating_mul(headers))
    }
}

/// Payload that TCP knows to have arrived, at either end, if all flows tell.
fn arrived_by_tcp(sample: &Sample) -> Option<u64> {
    let arrived = sample.flows.iter().map(|flow| {
        let tcp = flow.tcp.value()?;
        Some(tcp.acked_bytes? + tcp.received_bytes?)
    });
    arrived.reduce(|sum, flow| Some(sum? + flow?)).flatten()
}

/// Bytes of a flow's IP packets, and of its payload without what was sent again.
fn of_flow(flow: &FlowSample, header: u64) -> Option<[u64; 2]> {
    let tcp = flow.tcp.value()?;
    // tcpi_bytes_sent counts what was sent twice twice (RFC 4898, tcpEStatsPerfHCDataOctetsOut).
    let payload = tcp.sent_bytes? + tcp.received_bytes?;
    let again = tcp.retrans_bytes?;
    Some([of_connection(tcp, header)?, payload.saturating_sub(again)])
}

/// Bytes of a connection's IP packets.
fn of_connection(tcp: &TcpInfo, header: u64) -> Option<u64> {
    let payload = tcp.sent_bytes? + tcp.received_bytes?;
    Some(payload + (tcp.segs_in? + tcp.segs_out?) * header)
}

/// What a whole test cost, with its control connection as the kernel counted it.
pub fn bytes_on_the_path(record: &Record, control: Option<&TcpInfo>) -> Bytes {
    let mut meter = Meter::new(&record.plan);
    meter.open(&record.connections);
    let samples = record.ends.near.value().map(|near| &near.samples[..]).unwrap_or_default();
    samples.iter().for_each(|sample| meter.see(sample));
    let payload = meter.payload.max(moved(record));
    // Both ends have said that all is over. The device may count one header of a packet that it cuts into segments.
    let arrived = match meter.datagram_bytes {
        Some(_) => received(record).filter(|bytes| meter.has_one_flow && *bytes > 0),
        None => meter.counted.map(|_| payload),
    };
    let carried = carried(record).zip(arrived).filter(|(carried, arrived)| carried >= arrived);
    let carried = carried.map(|(carried, _)| carried);
    let most = carried.map_or(u64::MAX, |carried| meter.in_full_packets(carried));
    let flows = meter.by_tcp(payload).min(most);
    let header = meter.ip_header + TCP_HEADER_BYTES;
    let control = control.and_then(|control| of_connection(control, header)).unwrap_or_default();
    Bytes(flows + control)
}

/// What the near device carried between the looks at its host before and after the test, both ways.
fn carried(record: &Record) -> Option<u64> {
    let near = record.ends.near.value()?;
    let grown = |name| near.before.grown(&near.after, name).ok();
    Some(grown("link.rx_bytes")? + grown("link.tx_bytes")?)
}

/// Payload that was received in all directions, if that is known.
fn received(record: &Record) -> Option<u64> {
    let directions = record.result.directions.iter();
    directions.map(|direction| direction.received_bytes.value().copied()).sum()
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
    use goodput_model::Direction;

    /// A TCP test of which the kernel counted these segments in and out.
    fn record(segments: Option<[u64; 2]>) -> Record {
        let json = include_str!("../../store/tests/golden/v1/test.json");
        let mut record = Record::from_json(json).unwrap();
        let tcp = last_tcp(&mut record);
        tcp.sent_bytes = Some(156_000_000);
        tcp.received_bytes = Some(0);
        tcp.retrans_bytes = Some(0);
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
    fn what_waited_in_the_socket_when_the_kernel_was_asked_costs_as_much_as_the_rest() {
        let mut early = record(Some([50, 100]));
        last_tcp(&mut early).sent_bytes = Some(100_000);
        let factor: f64 = 1.0 + 150.0 * 52.0 / 100_000.0;
        let Bytes(bytes) = bytes_on_the_path(&early, None);
        assert_eq!(bytes, (156_200_000.0_f64 * factor).round() as u64);
    }

    #[test]
    fn what_both_ends_say_beside_the_payload_costs_too() {
        let record = record(Some([50, 100]));
        let control = TcpInfo {
            sent_bytes: Some(2000),
            received_bytes: Some(9000),
            segs_in: Some(30),
            segs_out: Some(20),
            ..TcpInfo::default()
        };
        let [with, without] = [Some(&control), None].map(|it| bytes_on_the_path(&record, it).0);
        assert_eq!(with - without, 11_000 + 50 * 52);
    }

    #[test]
    fn headers_acknowledgements_and_what_is_sent_again_cost_too() {
        let mut lossy = record(Some([54_000, 108_000]));
        last_tcp(&mut lossy).retrans_bytes = Some(6_000_000);
        let factor: f64 = (156_000_000.0 + 162_000.0 * 52.0) / 150_000_000.0;
        let Bytes(bytes) = bytes_on_the_path(&lossy, None);
        assert_eq!(bytes, (156_200_000.0_f64 * factor).round() as u64);
    }

    /// A queue of this host drops three of four segments. TCP counts each when it tries, as new or as sent again.
    fn dropped_at_home() -> Record {
        let mut record = record(Some([54_000, 432_000]));
        let tcp = last_tcp(&mut record);
        tcp.acked_bytes = Some(156_000_000);
        tcp.sent_bytes = Some(624_000_000);
        tcp.retrans_bytes = Some(300_000_000);
        record
    }

    #[test]
    fn what_a_queue_of_this_host_dropped_was_never_on_the_line() {
        let mut record = dropped_at_home();
        let mut meter = Meter::new(&record.plan);
        let Known::Value(near) = &mut record.ends.near else { panic!("the golden record has it") };
        near.samples.iter().for_each(|sample| meter.see(sample));
        assert!(meter.bytes() > Bytes(620_000_000));
        meter.see_carried(Some(165_000_000));
        let carried = 165_000_000 + meter.step;
        let most = carried + carried.div_ceil(1448) * 78;
        assert_eq!(meter.bytes(), Bytes(most), "all has arrived");
        for (facts, bytes) in [(&mut near.before, 1000), (&mut near.after, 164_001_000)] {
            facts.put("link.tx_bytes", bytes);
            facts.put("link.rx_bytes", bytes / 164);
        }
        let carried = 164_000_000 + 164_001_000 / 164 - 1000 / 164;
        let most = carried + u64::div_ceil(carried, 1448) * 78;
        assert_eq!(bytes_on_the_path(&record, None), Bytes(most));
    }

    /// Datagrams of one flow, of which a queue of this host drops three of four.
    fn datagrams_dropped_at_home() -> Record {
        let mut record = record(None);
        (record.plan.transport, record.plan.chunk_bytes) = (Transport::Udp, Bytes(1400));
        let [local, remote] = ["192.0.2.1:4000", "192.0.2.2:5000"].map(|at| at.parse().unwrap());
        record.connections = vec![Connection { flow: 0, local, remote, expected_queue: None }];
        let direction = &mut record.result.directions[0];
        direction.sent_bytes = Known::Value(156_200_000);
        direction.received_bytes = Known::Value(39_000_000);
        let Known::Value(near) = &mut record.ends.near else { panic!("the golden record has it") };
        for (facts, bytes) in [(&mut near.before, 1000), (&mut near.after, 40_001_000)] {
            facts.put("link.tx_bytes", bytes);
            facts.put("link.rx_bytes", 0_u64);
        }
        record
    }

    #[test]
    fn datagrams_that_a_queue_of_this_host_dropped_were_never_on_the_line() {
        let in_packets = |bytes: u64| bytes + bytes.div_ceil(1400) * 28;
        let mut record = datagrams_dropped_at_home();
        assert_eq!(bytes_on_the_path(&record, None), Bytes(in_packets(40_000_000)));
        let all = Bytes(in_packets(156_200_000));
        let direction = &mut record.result.directions[0];
        direction.received_bytes = Known::Value(41_000_000);
        assert_eq!(bytes_on_the_path(&record, None), all, "another device has carried them");
        for received in [Known::Value(0), Known::missing("it did not say")] {
            record.result.directions[0].received_bytes = received;
            assert_eq!(bytes_on_the_path(&record, None), all, "no datagram tells of the device");
        }
        let mut several = datagrams_dropped_at_home();
        several.connections.push(several.connections[0]);
        assert_eq!(bytes_on_the_path(&several, None), all, "they may go over several devices");
    }

    #[test]
    fn a_running_test_of_datagrams_is_counted_by_what_arrived_and_by_its_device() {
        let record = datagrams_dropped_at_home();
        let mut meter = Meter::new(&record.plan);
        meter.open(&record.connections);
        let sample = |sent_bytes, received_bytes| Sample {
            at_s: 0.1,
            sent_bytes,
            received_bytes,
            flows: Vec::new(),
        };
        meter.see_far(&sample(0, 900_000));
        (1..=11).for_each(|n| meter.see(&sample(n * 400_000, 0)));
        assert!(meter.bytes() > Bytes(4_400_000) && meter.will_exceed(Bytes(3_000_000)));
        meter.see_carried(Some(1_000_000));
        let most = 1_000_000 + 400_000_u64;
        assert_eq!(meter.bytes(), Bytes(most + most.div_ceil(1400) * 28));
        assert!(!meter.will_exceed(Bytes(3_000_000)));
        meter.see_carried(Some(899_999));
        assert!(meter.bytes() > Bytes(4_400_000), "another device has carried them");
    }

    /// The path loses half of what the device carries, so what waits is sent twice.
    #[test]
    fn what_waits_costs_as_much_as_what_has_arrived() {
        let record = dropped_at_home();
        let mut meter = Meter::new(&record.plan);
        let Known::Value(near) = &record.ends.near else { panic!("the golden record has it") };
        near.samples.iter().for_each(|sample| meter.see(sample));
        meter.see_carried(Some(2 * 156_000_000));
        let at = |payload| meter.cost(payload).0;
        let more = at(166_000_000) - at(156_000_000);
        assert!((20_000_000..23_000_000).contains(&more), "{more}");
        meter.see_carried(None);
        assert!(meter.bytes() > Bytes(620_000_000), "nothing is known of the device");
    }

    #[test]
    fn a_device_that_did_not_carry_the_flows_says_nothing_of_them() {
        let record = dropped_at_home();
        let mut meter = Meter::new(&record.plan);
        let Known::Value(near) = &record.ends.near else { panic!("the golden record has it") };
        near.samples.iter().for_each(|sample| meter.see(sample));
        let before = meter.bytes();
        meter.see_carried(Some(155_999_999));
        assert_eq!(meter.bytes(), before);
    }

    #[test]
    fn a_running_test_is_counted_as_it_will_be_at_its_end() {
        let record = record(Some([54_000, 108_000]));
        let mut meter = Meter::new(&record.plan);
        assert_eq!((meter.bytes(), meter.will_exceed(Bytes(0))), (Bytes(0), false));
        let Known::Value(near) = &record.ends.near else { panic!("the golden record has it") };
        near.samples.iter().for_each(|sample| meter.see(sample));
        assert_eq!(meter.bytes(), Bytes(156_000_000 + 162_000 * 52));
        assert!(meter.will_exceed(Bytes(100_000_000)));
    }

    #[test]
    fn the_last_step_of_a_test_of_bytes_is_as_small_as_what_is_left_of_it() {
        let plan = Plan { length: Length::Bytes(Bytes(10_000)), ..Plan::standard() };
        let mut meter = Meter::new(&plan);
        let sample =
            |sent_bytes| Sample { at_s: 0.1, sent_bytes, received_bytes: 0, flows: vec![] };
        meter.see(&sample(6000));
        assert!(!meter.will_exceed(Bytes(11_000)) && meter.will_exceed(Bytes(10_000)));
        meter.see(&sample(10_000));
        assert!(!meter.will_exceed(Bytes(0)));
    }

    #[test]
    fn without_counts_of_the_kernel_it_is_the_payload_in_full_packets() {
        let mut record = record(None);
        let Bytes(bytes) = bytes_on_the_path(&record, None);
        // What was sent in the golden record, with half an acknowledgement for each segment.
        assert_eq!(bytes, 156_200_000 + 156_200_000_u64.div_ceil(1448) * 78);
        (record.plan.transport, record.plan.chunk_bytes) = (Transport::Udp, Bytes(1200));
        let Bytes(bytes) = bytes_on_the_path(&record, None);
        assert_eq!(bytes, 156_200_000 + 156_200_000_u64.div_ceil(1200) * 28);
    }

    /// A flow sends 24 bytes in two segments first, and gets three: eleven times its payload.
    #[test]
    fn what_a_flow_says_first_does_not_tell_what_its_payload_costs() {
        let mut early = record(Some([3, 2]));
        last_tcp(&mut early).sent_bytes = Some(24);
        let Known::Value(near) = &early.ends.near else { panic!("the golden record has it") };
        let hello = Sample { sent_bytes: 24, ..near.samples.last().unwrap().clone() };
        let plan = Plan { length: Length::Bytes(Bytes(4_500_000)), ..Plan::standard() };
        let mut meter = Meter::new(&plan);
        meter.see(&hello);
        assert_eq!(meter.bytes(), Bytes(24 + 5 * 52));
        meter.see(&Sample { at_s: 0.1, sent_bytes: 1_840_000, received_bytes: 0, flows: vec![] });
        assert!(!meter.will_exceed(Bytes(5_000_000)));
        assert!(meter.bytes() < Bytes(2_000_000), "{:?}", meter.bytes());
    }

    #[test]
    fn what_a_test_may_cost_follows_from_its_payload_or_is_a_share_of_the_budget() {
        let (share, budget) = (Bytes(1_000_000), Bytes(12_000_000));
        let expected_cost = |plan: &Plan, last| expected_cost(plan, share, last, budget);
        let of = |length| Plan { length, ..Plan::standard() };
        let asked = of(Length::Bytes(Bytes(9_000_000)));
        assert_eq!(planned_cost(&asked), Some(Bytes(10_000_000)));
        assert_eq!(expected_cost(&asked, None), Bytes(10_000_000));
        assert_eq!(expected_cost(&asked, Some(Bytes(11_000_000))), Bytes(11_000_000));
        assert_eq!(
            expected_cost(&asked, Some(Bytes(13_000_000))),
            budget,
            "or it never fits again"
        );
        let both = Plan { direction: Direction::Both, ..asked };
        assert_eq!(planned_cost(&both), Some(Bytes(20_000_000)));
        let small = of(Length::Bytes(Bytes(9000)));
        assert_eq!(expected_cost(&small, None), Bytes(10_000));
        let timed = of(Length::Seconds(2.0));
        assert_eq!((planned_cost(&timed), expected_cost(&timed, None)), (None, share));
        let whole = of(Length::Bytes(payload_of(share)));
        assert!(planned_cost(&whole).is_some_and(|cost| cost.0.abs_diff(share.0) <= 1));
    }

    #[test]
    fn a_test_costs_at_most_twice_what_was_expected_and_what_is_left() {
        assert_eq!(limit(Bytes(1000), Bytes(9000)), Bytes(2000));
        assert_eq!(limit(Bytes(1000), Bytes(1500)), Bytes(1500));
        assert_eq!(limit(Bytes(u64::MAX), Bytes(9000)), Bytes(9000));
    }

    #[test]
    fn a_share_has_room_for_what_is_not_payload() {
        // 1440 bytes of payload over IPv6, with a header and half an acknowledgement.
        let payload = payload_of(Bytes(10_000_000)).0 as f64;
        assert!(payload * (1440.0 + 72.0 + 36.0) / 1440.0 < 10_000_000.0 * 0.98);
    }
}
