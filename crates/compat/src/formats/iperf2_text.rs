//! iperf 2's tables for people, which scripts read too (iperf 2.1.8).

use std::fmt::Write;

use goodput_engine::{Event, Target};
use goodput_model::{Connection, Direction, EndName, Record, Role, Transport};

use super::counts::{self, FlowCounts, Side};
use super::cut::{IntervalCutter, Span};
use super::text::{in_units, rate, two_digits};
use super::{Context, Format, Intervals, Writer};

/// The format.
pub const FORMAT: Format = Format {
    id: "iperf2-text",
    summary: "the tables of iperf 2, with -i lines for each interval",
    refuses: |_| None,
    writer: |context| {
        let cutter = IntervalCutter::new(&context.plan);
        Box::new(Text { context, cutter })
    },
};

const RULE: &str = "------------------------------------------------------------\n";
pub(super) const HEADER: &str = "[ ID] Interval       Transfer     Bandwidth\n";
const HEADER_UDP: &str =
    "[ ID] Interval       Transfer     Bandwidth        Jitter   Lost/Total Datagrams\n";

struct Text {
    context: Context,
    cutter: IntervalCutter,
}

impl Writer for Text {
    fn event(&mut self, event: &Event) -> String {
        match event {
            Event::Opened { connections } => self.head(connections),
            Event::Sampled { end: EndName::Near, sample } => {
                let span = self.cutter.push(sample);
                self.interval(span)
            }
            _ => String::new(),
        }
    }

    fn finish(&mut self, record: &Record) -> String {
        let rest = self.cutter.close();
        let flows = counts::flows(record);
        let mut text = self.interval(rest);
        flows.iter().for_each(|flow| text += &self.own(flow));
        for direction in counts::directions(record, &flows) {
            let own = flows.iter().filter(|flow| flow.sender == direction.sender);
            if own.filter(|flow| !self.own(flow).is_empty()).count() != 1 {
                let side = match direction.sender {
                    EndName::Near => &direction.sent,
                    EndName::Far => &direction.received,
                };
                text += &self.side("SUM", side, direction.sender == EndName::Far);
            }
        }
        text
    }
}

impl Text {
    fn serves(&self) -> bool {
        self.context.served.is_some()
    }

    fn udp(&self) -> bool {
        self.context.plan.transport == Transport::Udp
    }

    /// Leaves out window sizes: they change while TCP tunes them.
    fn head(&self, connections: &[Connection]) -> String {
        let mut text = String::new();
        let protocol = if self.udp() { "UDP" } else { "TCP" };
        let target = self.context.target.parse::<Target>().ok().filter(|_| !self.serves());
        if let Some(target) = target {
            let Target { host, port, .. } = target;
            let _ = writeln!(text, "{RULE}Client connecting to {host}, {protocol} port {port}");
            if self.udp() {
                let _ =
                    writeln!(text, "Sending {} byte datagrams", self.context.plan.chunk_bytes.0);
            }
            text += RULE;
        }
        for Connection { flow, local, remote, .. } in connections {
            let _ = writeln!(
                text,
                "[{:>3}] local {} port {} connected with {} port {}",
                self.name(*flow, Role::Sender),
                local.ip(),
                local.port(),
                remote.ip(),
                remote.port()
            );
        }
        let receives = self.context.plan.direction != Direction::Send;
        text + if self.serves() && self.udp() && receives { HEADER_UDP } else { HEADER }
    }

    fn line(&self, id: &str, times: (f64, f64), bytes: u64) -> String {
        line(self.context.style.units.unwrap_or('a'), id, times, bytes)
    }

    /// Transfers count from 1, or continue after earlier ones. At a client, transfers from the other
    /// end have a star.
    fn name(&self, flow: u16, role: Role) -> String {
        let number = self.context.served_flows + u64::from(flow) + 1;
        match role {
            Role::Sender => format!("{number}"),
            Role::Receiver => format!("*{number}"),
        }
    }

    fn interval(&self, span: Option<Span>) -> String {
        let wanted = self.context.style.intervals == Intervals::All;
        let Some(span) = span.filter(|_| wanted) else { return String::new() };
        let mut text = String::new();
        let times = (span.from_s, span.to_s);
        for flow in &span.flows {
            text += &self.line(&self.name(flow.flow, flow.role), times, flow.bytes);
            if let Some(d) = flow.datagrams.filter(|_| flow.role == Role::Receiver) {
                text += &loss(d.jitter_ms, d.lost, d.count);
            }
            text.push('\n');
        }
        for role in [Role::Sender, Role::Receiver] {
            let own = span.flows.iter().filter(|flow| flow.role == role);
            if own.clone().count() > 1 {
                let bytes = own.map(|flow| flow.bytes).sum();
                text += &(self.line("SUM", times, bytes) + "\n");
            }
        }
        text
    }

    fn own(&self, flow: &FlowCounts) -> String {
        if flow.sender == EndName::Far && self.serves() {
            return self.side(&self.name(flow.flow, Role::Sender), &flow.received, true);
        }
        if flow.sender == EndName::Far {
            return self.side(&self.name(flow.flow, Role::Receiver), &flow.received, true);
        }
        let id = self.name(flow.flow, Role::Sender);
        let mut text = self.side(&id, &flow.sent, false);
        if let Some(packets) = flow.sent.packets.filter(|_| self.udp()) {
            let _ = writeln!(text, "[{id:>3}] Sent {packets} datagrams");
        }
        if self.udp() && flow.received.lost.is_some() && !self.serves() {
            let _ = writeln!(text, "[{id:>3}] Server Report:");
            text += HEADER_UDP;
            text += &self.side(&id, &flow.received, true);
        }
        text
    }

    fn side(&self, id: &str, side: &Side, receives: bool) -> String {
        let (Some(bytes), Some(seconds)) = (side.bytes, side.seconds) else {
            return String::new();
        };
        let mut text = self.line(id, (0.0, seconds), bytes);
        // 2.1.8 prints 0 for an unknown jitter.
        if let (Some(lost), Some(packets), true) = (side.lost, side.packets, receives) {
            text += &loss(side.jitter_ms.unwrap_or(0.0), lost, packets);
        }
        text + "\n"
    }
}

/// A line without UDP's additions, and without its line end.
pub(super) fn line(unit: char, id: &str, (from_s, to_s): (f64, f64), bytes: u64) -> String {
    let seconds = to_s - from_s;
    let bits_per_s = if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 };
    let moved = in_units(bytes as f64, unit.to_ascii_uppercase());
    format!("[{id:>3}] {from_s:.4}-{to_s:.4} sec  {moved}  {}", rate(bits_per_s, unit))
}

fn loss(jitter_ms: f64, lost: u64, total: u64) -> String {
    format!("   {jitter_ms:5.3} ms {}", lost_of(lost, total))
}

pub(super) fn lost_of(lost: u64, total: u64) -> String {
    let percent = two_digits(counts::percent(lost, total).unwrap_or(0.0));
    format!("{lost}/{total} ({percent}%)")
}
