//! iperf3's tables for people, which scripts read too (iperf 3.12, iperf_locale.c and
//! iperf_print_results).

use std::fmt::Write;

use goodput_engine::{Event, Target};
use goodput_model::{Connection, Direction, EndName, Plan, Record, Role, Transport};

use super::counts::{self, DirectionCounts, Side};
use super::cut::{Datagrams, IntervalCutter, Span};
use super::iperf3::socket;
use super::iperf3::spans::cwnd_bytes;
use super::text::{bytes, rate, titled, two_digits};
use super::{Context, Format, Writer};

/// The format.
pub const FORMAT: Format = Format {
    id: "iperf3-text",
    summary: "the tables of iperf3 without options",
    refuses: |_| None,
    writer: |context| {
        let cutter = IntervalCutter::of_iperf3(&context.plan, context.style.intervals);
        Box::new(Text { context, cutter, printed: 0 })
    },
};

const SEPARATOR: &str = "- - - - - - - - - - - - - - - - - - - - - - - - -\n";

struct Text {
    context: Context,
    cutter: IntervalCutter,
    printed: u32,
}

impl Writer for Text {
    fn event(&mut self, event: &Event) -> String {
        let lines = match event {
            Event::Opened { connections } => self.head(connections),
            Event::Sampled { end: EndName::Near, sample } => {
                let span = self.cutter.push(sample);
                self.interval(span)
            }
            _ => String::new(),
        };
        titled(self.context.style.title.as_deref(), &lines)
    }

    fn finish(&mut self, record: &Record) -> String {
        let rest = self.cutter.close();
        let lines = self.interval(rest)
            + &self.summary(record)
            + &server_output(record)
            + if self.serves() { "" } else { "\niperf Done.\n" };
        titled(self.context.style.title.as_deref(), &lines)
    }
}

impl Text {
    fn plan(&self) -> &Plan {
        &self.context.plan
    }

    fn serves(&self) -> bool {
        self.context.served.is_some()
    }

    fn udp(&self) -> bool {
        self.plan().transport == Transport::Udp
    }

    fn rate(&self, bits_per_s: f64) -> String {
        rate(bits_per_s, self.context.style.units.unwrap_or('a'))
    }

    fn head(&self, connections: &[Connection]) -> String {
        let mut text = String::new();
        if let Some(peer) = self.context.served {
            let _ = writeln!(text, "Accepted connection from {}, port {}", peer.ip(), peer.port());
        } else if let Ok(target) = self.context.target.parse::<Target>() {
            let _ = writeln!(text, "Connecting to host {}, port {}", target.host, target.port);
            if self.plan().direction == Direction::Reverse {
                let _ = writeln!(text, "Reverse mode, remote host {} is sending", target.host);
            }
        }
        for Connection { flow, local, remote, .. } in connections {
            let _ = writeln!(
                text,
                "[{:3}] local {} port {} connected to {} port {}",
                socket(*flow),
                local.ip(),
                local.port(),
                remote.ip(),
                remote.port()
            );
        }
        let columns = match (self.plan().transport, self.plan().direction) {
            (Transport::Tcp, Direction::Reverse) => "",
            (Transport::Tcp, _) => "         Retr  Cwnd",
            (Transport::Udp, Direction::Send) => "         Total Datagrams",
            (Transport::Udp, _) => "         Jitter    Lost/Total Datagrams",
        };
        text + &self.header(columns)
    }

    fn header(&self, columns: &str) -> String {
        let role = if self.plan().direction == Direction::Both { "[Role]" } else { "" };
        format!("[ ID]{role} Interval           Transfer     Bitrate{columns}\n")
    }

    /// `[TX-C]` and `[RX-C]` of a bidirectional test, `[TX-S]` and `[RX-S]` of its server.
    fn role(&self, sends: bool) -> &'static str {
        match (self.plan().direction, sends, self.serves()) {
            (Direction::Both, true, false) => "[TX-C]",
            (Direction::Both, false, false) => "[RX-C]",
            (Direction::Both, true, true) => "[TX-S]",
            (Direction::Both, false, true) => "[RX-S]",
            _ => "",
        }
    }

    fn interval(&mut self, span: Option<Span>) -> String {
        let Some(span) = span else {
            return String::new();
        };
        let mut text = String::new();
        if self.printed > 0 && self.plan().flows > 1 {
            text += SEPARATOR;
        }
        self.printed += 1;
        // A server starts with what it receives.
        let roles = [Role::Sender, Role::Receiver];
        let first = usize::from(self.serves());
        for role in [roles[first], roles[1 - first]] {
            text += &self.interval_of(&span, role);
        }
        text
    }

    fn interval_of(&self, span: &Span, role: Role) -> String {
        let flows: Vec<_> = span.flows.iter().filter(|flow| flow.role == role).collect();
        let mut text = String::new();
        let Span { from_s, to_s, omitted, .. } = *span;
        let mut sum = Row { from_s, to_s, omitted, ..Row::default() };
        sum.retransmits = Some(0);
        for flow in &flows {
            let row = Row {
                id: Some(flow.flow),
                bytes: flow.bytes,
                retransmits: flow.retransmits,
                cwnd: flow.tcp.as_ref().and_then(cwnd_bytes),
                datagrams: flow.datagrams,
                ..sum.clone_span()
            };
            text += &self.interval_row(&row, role);
            sum.add(&row);
        }
        if flows.len() > 1 {
            if let Some(all) = &mut sum.datagrams {
                all.jitter_ms /= flows.len() as f64;
            }
            text += &self.interval_row(&sum, role);
        }
        text
    }

    fn interval_row(&self, row: &Row, role: Role) -> String {
        let sends = role == Role::Sender;
        let mut text = row.front(self.role(sends), &self.rate(row.bits_per_s()));
        let omitted = if row.omitted { "(omitted)" } else { "" };
        // The blanks before it are printed without it, too.
        match (row.datagrams, row.retransmits.filter(|_| sends)) {
            (Some(datagrams), _) if sends => {
                let gap = if self.plan().direction == Direction::Both { "          " } else { "" };
                let _ = writeln!(text, " {gap} {}  {omitted}", datagrams.count);
            }
            (Some(datagrams), _) => {
                let _ = writeln!(text, "{}  {omitted}", loss(&datagrams));
            }
            (None, Some(retransmits)) => match row.cwnd {
                Some(cwnd) => {
                    let _ = writeln!(text, "  {retransmits:3}   {}       {omitted}", bytes(cwnd));
                }
                None => {
                    let _ = writeln!(text, "  {retransmits:3}             {omitted}");
                }
            },
            (None, None) => {
                let _ = writeln!(text, "                  {omitted}");
            }
        }
        text
    }

    fn summary(&self, record: &Record) -> String {
        let columns = match (self.udp(), self.serves(), self.plan().direction) {
            (true, ..) => "         Jitter    Lost/Total Datagrams",
            (false, true, Direction::Reverse) => "",
            (false, ..) => "         Retr",
        };
        let flows = counts::flows(record);
        let mut text = format!("{SEPARATOR}{}", self.header(columns));
        let mut directions = counts::directions(record, &flows);
        if self.serves() {
            directions.reverse();
        }
        for sums in directions {
            let own: Vec<_> = flows.iter().filter(|flow| flow.sender == sums.sender).collect();
            for flow in &own {
                let one = DirectionCounts {
                    sender: flow.sender,
                    sent: flow.sent.clone(),
                    received: flow.received.clone(),
                };
                text += &self.ends(Some(flow.flow), &one);
            }
            if own.len() != 1 {
                text += &self.ends(None, &sums);
            }
        }
        text
    }

    /// The two lines of a stream or of all streams.
    fn ends(&self, id: Option<u16>, counts: &DirectionCounts) -> String {
        let sends = counts.sender == EndName::Near;
        let role = self.role(sends);
        // A server prints its own line only.
        match (self.serves(), sends) {
            (true, true) => return self.end(id, role, &counts.sent, "sender"),
            (true, false) => return self.end(id, role, &counts.received, "receiver"),
            (false, _) => {}
        }
        self.end(id, role, &counts.sent, "sender")
            + &self.end(id, role, &counts.received, "receiver")
    }

    fn end(&self, id: Option<u16>, role: &str, side: &Side, who: &str) -> String {
        let (Some(bytes), Some(seconds)) = (side.bytes, side.seconds) else {
            // iperf3's own words for unknown counts.
            return format!("[{:>3}] ({who} statistics not available)\n", name(id));
        };
        let row = Row { id, to_s: seconds, bytes, ..Row::default() };
        let front = row.front(role, &self.rate(row.bits_per_s()));
        if self.udp() {
            // A sender sees neither jitter nor loss; iperf3 prints zeros, also for what its peer left
            // out of its results.
            let datagrams = Datagrams {
                count: side.packets.unwrap_or(0),
                lost: side.lost.unwrap_or(0),
                reordered: 0,
                jitter_ms: side.jitter_ms.unwrap_or(0.0),
            };
            return format!("{front}{}  {who}\n", loss(&datagrams));
        }
        match side.retransmits {
            Some(retransmits) => format!("{front}  {retransmits:3}             {who}\n"),
            None => format!("{front}                  {who}\n"),
        }
    }
}

/// The server's output, as 3.12 prints it after `--get-server-output`.
fn server_output(record: &Record) -> String {
    let text = record.far_totals.as_ref().and_then(|totals| totals.text.as_deref());
    let kind = |text: &str| if text.starts_with('{') { " JSON" } else { "" };
    text.map_or(String::new(), |text| format!("\nServer{} output:\n{text}\n\n", kind(text)))
}

fn name(id: Option<u16>) -> String {
    id.map_or("SUM".into(), |flow| socket(flow).to_string())
}

fn loss(datagrams: &Datagrams) -> String {
    let Datagrams { count, lost, jitter_ms, .. } = datagrams;
    let percent = two_digits(counts::percent(*lost, *count).unwrap_or(0.0));
    format!("  {jitter_ms:5.3} ms  {lost}/{count} ({percent}%)")
}

/// The subject of one line; `None` as `id` is the sum.
#[derive(Default)]
struct Row {
    id: Option<u16>,
    from_s: f64,
    to_s: f64,
    omitted: bool,
    bytes: u64,
    retransmits: Option<u64>,
    cwnd: Option<u64>,
    datagrams: Option<Datagrams>,
}

impl Row {
    fn clone_span(&self) -> Self {
        let Self { from_s, to_s, omitted, .. } = *self;
        Self { from_s, to_s, omitted, ..Self::default() }
    }

    fn add(&mut self, row: &Self) {
        self.bytes += row.bytes;
        self.retransmits = self.retransmits.zip(row.retransmits).map(|(a, b)| a + b);
        if let Some(one) = row.datagrams {
            let all = self.datagrams.get_or_insert_default();
            all.count += one.count;
            all.lost += one.lost;
            all.jitter_ms += one.jitter_ms;
        }
    }

    fn bits_per_s(&self) -> f64 {
        let seconds = self.to_s - self.from_s;
        if seconds > 0.0 { self.bytes as f64 * 8.0 / seconds } else { 0.0 }
    }

    fn front(&self, role: &str, rate: &str) -> String {
        let id = name(self.id);
        let (from, to, moved) = (self.from_s, self.to_s, bytes(self.bytes));
        format!("[{id:>3}]{role} {from:6.2}-{to:<6.2} sec  {moved}  {rate}")
    }
}
