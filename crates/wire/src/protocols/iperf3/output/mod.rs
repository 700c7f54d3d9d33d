//! The output that iperf3's server would have printed, for clients that want to show it (`--get-server-output`).
//!
//! The layout is that of 3.12 (`iperf_locale.c`, `print_interval_results` and `print_results` in
//! `iperf_api.c`). Two things differ: the lines that name the ports of each stream are left out, because a
//! session does not know them, and the times are those of the samples, which come up to 0.1 s late.

mod line;

use std::net::SocketAddr;

use goodput_model::{EndName, FlowSample, Plan, Role, Sample, Transport};

use self::line::{Count, Line};
use super::agree::Agreed;
use super::counts::packets;
use super::results::{Results, StreamResult};

/// Longest text, bytes; a longer text is cut, with a note.
const MAX_TEXT_BYTES: usize = 256 * 1024;

/// Seconds between two reports of a server, unless its operator chose another time.
const INTERVAL_S: f64 = 1.0;

const RULE: &str = "- - - - - - - - - - - - - - - - - - - - - - - - -\n";

/// A server's report, as it grows.
pub struct Printout {
    plan: Plan,
    omit_s: f64,
    text: String,
    /// The sample that ended the last interval.
    from: Option<Sample>,
    /// Whether the warm-up is over, and when it was.
    warm_at_s: Option<f64>,
    next_s: f64,
    intervals: usize,
    is_full: bool,
}

impl Printout {
    /// Its first lines.
    pub fn new(agreed: &Agreed, peer: SocketAddr) -> Self {
        let (ip, port) = (peer.ip(), peer.port());
        let mut printout = Self {
            plan: agreed.plan.clone(),
            omit_s: agreed.omit_s,
            text: format!("Accepted connection from {ip}, port {port}\n"),
            from: None,
            warm_at_s: (agreed.omit_s <= 0.0).then_some(0.0),
            next_s: INTERVAL_S,
            intervals: 0,
            is_full: false,
        };
        let head = printout.head(true);
        printout.text.push_str(&head);
        printout
    }

    /// Takes a sample of this end.
    pub fn sampled(&mut self, sample: &Sample) {
        if sample.flows.is_empty() {
            return;
        }
        let warm = self.warm_at_s.is_none() && sample.at_s >= self.omit_s;
        if sample.at_s >= self.next_s || warm {
            self.interval(sample);
        }
        if warm {
            self.warm_at_s = Some(sample.at_s);
        }
    }

    /// Takes the last sample of this end.
    pub fn ended(&mut self, last: &Sample) {
        // A time after the last interval gets an interval of its own if it is worth a line.
        let from_s = self.from.as_ref().map_or(0.0, |from| from.at_s);
        if last.at_s - from_s >= INTERVAL_S / 2.0 || self.from.is_none() {
            self.interval(last);
        }
    }

    fn interval(&mut self, sample: &Sample) {
        let lines = self.interval_lines(sample);
        if self.text.len() + lines.len() > MAX_TEXT_BYTES {
            self.is_full = true;
        } else if !self.is_full {
            if self.intervals > 0 && self.plan.flow_plans().len() > 1 {
                self.text.push_str(RULE);
            }
            self.text.push_str(&lines);
        }
        self.intervals += 1;
        self.next_s = sample.at_s + INTERVAL_S;
        self.from = Some(sample.clone());
    }

    fn interval_lines(&self, sample: &Sample) -> String {
        let omitted = self.warm_at_s.is_none();
        let zero_s = self.warm_at_s.unwrap_or(0.0);
        let from_s = self.from.as_ref().map_or(0.0, |from| from.at_s);
        let line = |flow: &FlowSample| {
            let before =
                self.from.as_ref().and_then(|s| s.flows.iter().find(|f| f.flow == flow.flow));
            Line {
                stream: Some(flow.flow),
                role: flow.role,
                from_s: from_s - zero_s,
                to_s: sample.at_s - zero_s,
                bytes: flow.bytes.saturating_sub(before.map_or(0, |before| before.bytes)),
                count: self.count(flow, before),
                ending: if omitted { "(omitted)" } else { "" },
            }
        };
        self.all_lines(sample.flows.iter().map(line).collect())
    }

    fn count(&self, flow: &FlowSample, before: Option<&FlowSample>) -> Count {
        let since =
            |count: fn(&FlowSample) -> u64| count(flow).saturating_sub(before.map_or(0, count));
        let tcp = flow.tcp.value();
        match (self.plan.transport, flow.role) {
            (Transport::Tcp, Role::Receiver) => Count::None,
            (Transport::Tcp, Role::Sender) => Count::Retransmits {
                count: since(|flow| {
                    flow.tcp.value().and_then(|tcp| tcp.total_retrans_segments).unwrap_or(0)
                }),
                cwnd_bytes: tcp.and_then(|tcp| Some(tcp.snd_cwnd_segments? * tcp.snd_mss_bytes?)),
            },
            (Transport::Udp, Role::Sender) => Count::Datagrams(since(|flow| packets(Some(flow)))),
            (Transport::Udp, Role::Receiver) => Count::Lost {
                jitter_ms: flow.datagrams.map_or(0.0, |counts| counts.jitter_us / 1e3),
                lost: since(|flow| flow.datagrams.map_or(0, |counts| counts.lost)),
                of: since(|flow| packets(Some(flow))),
            },
        }
    }

    /// The whole report, with the totals that the client also gets.
    pub fn text(&self, results: &Results) -> String {
        let mut text = self.text.clone();
        if self.is_full {
            text.push_str("(further intervals are left out)\n");
        }
        text.push_str(RULE);
        text.push_str(&self.head(false));
        let flows = self.plan.flow_plans();
        let line = |(at, stream): (usize, &StreamResult)| {
            let sends = flows.get(at).is_some_and(|flow| flow.sender == EndName::Far);
            Line {
                stream: Some(at as u16),
                role: if sends { Role::Sender } else { Role::Receiver },
                from_s: 0.0,
                to_s: stream.end_time,
                bytes: stream.bytes,
                count: self.total(stream, sends),
                ending: if sends { "sender" } else { "receiver" },
            }
        };
        text.push_str(&self.all_lines(results.streams.iter().enumerate().map(line).collect()));
        text
    }

    fn total(&self, stream: &StreamResult, sends: bool) -> Count {
        match (self.plan.transport, sends) {
            (Transport::Tcp, false) => Count::None,
            (Transport::Tcp, true) => Count::Retransmits {
                count: u64::try_from(stream.retransmits).unwrap_or(0),
                cwnd_bytes: None,
            },
            (Transport::Udp, _) => Count::Lost {
                jitter_ms: stream.jitter * 1e3,
                lost: stream.errors.saturating_sub(stream.omitted_errors),
                of: stream.packets.saturating_sub(stream.omitted_packets),
            },
        }
    }

    /// Lines of the streams, each direction with its sum if there are several.
    fn all_lines(&self, lines: Vec<Line>) -> String {
        let mut text = String::new();
        let bidirectional = self.is_bidirectional();
        for role in [Role::Receiver, Role::Sender] {
            let of_role: Vec<_> = lines.iter().filter(|line| line.role == role).collect();
            of_role.iter().for_each(|line| text.push_str(&line.print(bidirectional)));
            if let [first, _, ..] = of_role.as_slice() {
                text.push_str(&first.sum(&of_role).print(bidirectional));
            }
        }
        text
    }

    fn is_bidirectional(&self) -> bool {
        self.plan.direction == goodput_model::Direction::Both
    }

    fn head(&self, of_intervals: bool) -> String {
        let sends = self.plan.direction != goodput_model::Direction::Send;
        let receives = self.plan.direction != goodput_model::Direction::Reverse;
        let more = match (self.plan.transport, of_intervals) {
            (Transport::Tcp, _) if !sends => "",
            (Transport::Tcp, true) => "         Retr  Cwnd",
            (Transport::Tcp, false) => "         Retr",
            (Transport::Udp, true) if !receives => "         Total Datagrams",
            (Transport::Udp, _) => "         Jitter    Lost/Total Datagrams",
        };
        let role = if self.is_bidirectional() { "[Role]" } else { "" };
        format!("[ ID]{role} Interval           Transfer     Bitrate{more}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::super::agree::agree;
    use super::super::counts::Counts;
    use super::super::params::Params;
    use super::super::samples::{detailed, udp};
    use super::*;
    use crate::pair::limits;

    fn printed(json: &str, samples: &[Sample]) -> String {
        let params = Params::read(&serde_json::from_str(json).unwrap());
        let agreed = agree(&params, &limits()).unwrap();
        let mut counts = Counts::new(EndName::Far, agreed.omit_s);
        let mut printout = Printout::new(&agreed, ([127, 0, 0, 1], 34_966).into());
        for sample in samples {
            counts.sampled(sample);
            printout.sampled(sample);
        }
        let last = samples.last().unwrap();
        counts.ended(last.clone());
        printout.ended(last);
        printout.text(&counts.results(&agreed.plan, None))
    }

    #[test]
    fn a_udp_receiver_prints_as_3_12_does() {
        let samples = [udp(0.5, 20, 20, 0), udp(1.0, 39, 39, 0), udp(2.0, 77, 76, 1)];
        let wanted = "\
Accepted connection from 127.0.0.1, port 34966
[ ID] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams
[  5]   0.00-1.00   sec  38.1 KBytes   312 Kbits/sec  0.327 ms  0/39 (0%)  
[  5]   1.00-2.00   sec  36.1 KBytes   296 Kbits/sec  0.327 ms  1/38 (2.6%)  
- - - - - - - - - - - - - - - - - - - - - - - - -
[ ID] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams
[  5]   0.00-2.00   sec  74.2 KBytes   304 Kbits/sec  0.327 ms  1/77 (1.3%)  receiver
";
        assert_eq!(printed(r#"{"udp":true}"#, &samples), wanted);
    }

    #[test]
    fn a_warm_up_is_marked_and_left_out_of_the_totals() {
        let gigabyte = 1u64 << 30;
        let sample =
            |at_s, bytes| detailed(at_s, Role::Sender, &[bytes * gigabyte, bytes * gigabyte]);
        let samples = [sample(1.0, 4), sample(2.0, 7), sample(3.0, 11)];
        let wanted = "\
Accepted connection from 127.0.0.1, port 34966
[ ID] Interval           Transfer     Bitrate         Retr  Cwnd
[  5]   0.00-1.00   sec  4.00 GBytes  34.4 Gbits/sec    0             (omitted)
[  7]   0.00-1.00   sec  4.00 GBytes  34.4 Gbits/sec    0             (omitted)
[SUM]   0.00-1.00   sec  8.00 GBytes  68.7 Gbits/sec    0             (omitted)
- - - - - - - - - - - - - - - - - - - - - - - - -
[  5]   0.00-1.00   sec  3.00 GBytes  25.8 Gbits/sec    0             
[  7]   0.00-1.00   sec  3.00 GBytes  25.8 Gbits/sec    0             
[SUM]   0.00-1.00   sec  6.00 GBytes  51.5 Gbits/sec    0             
";
        let text = printed(r#"{"omit":1,"parallel":2,"reverse":true}"#, &samples);
        assert!(text.starts_with(wanted), "{text}");
        let last = "[SUM]   0.00-2.00   sec  14.0 GBytes  60.1 Gbits/sec    0             sender\n";
        assert!(text.ends_with(last), "{text}");
    }

    #[test]
    fn both_directions_are_marked() {
        let mut both = detailed(1.0, Role::Receiver, &[1000, 2000]);
        both.flows[1].role = Role::Sender;
        let text = printed(r#"{"bidirectional":true}"#, &[both]);
        assert!(text.contains("[ ID][Role] Interval"), "{text}");
        assert!(text.contains("[  5][RX-S]   0.00-1.00   sec  1000 Bytes"), "{text}");
        assert!(text.contains("[  7][TX-S]   0.00-1.00   sec  1.95 KBytes"), "{text}");
    }

    #[test]
    fn a_report_is_bounded() {
        let samples: Vec<_> = (1..9000).map(|i| udp(f64::from(i), 100, 90, 10)).collect();
        let text = printed(r#"{"udp":true}"#, &samples);
        assert!(text.len() < MAX_TEXT_BYTES + 1024 && text.contains("left out"), "{}", text.len());
    }
}
