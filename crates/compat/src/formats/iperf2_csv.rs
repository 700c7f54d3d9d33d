//! iperf 2's comma-separated values (`-y C`), in the columns that 2.0, 2.1 and 2.2 share:
//! `date,from,port,to,port,id,start-end,bytes,bits_per_second` and for UDP
//! `jitter_ms,lost,total,loss_percent,outoforder`.

use goodput_engine::Event;
use goodput_model::{Connection, EndName, Record, Role, Transport};

use super::counts::{self, FlowCounts, Side};
use super::csv::{Addresses, row};
use super::cut::{IntervalCutter, Span};
use super::{Context, Format, Intervals, Writer};

/// The format.
pub const FORMAT: Format = Format {
    id: "iperf2-csv",
    summary: "the rows of iperf 2 -y C, with -i more for each interval",
    refuses: |_| None,
    writer: |context| {
        let cutter = IntervalCutter::new(&context.plan);
        Box::new(Csv { context, cutter, connections: Vec::new() })
    },
};

/// What 2.1.8 prints in the UDP columns if the far end's report is missing.
const UNREPORTED: &str = ",0.000,0,-1,-0.000,0";

struct Csv {
    context: Context,
    cutter: IntervalCutter,
    connections: Vec<Connection>,
}

impl Writer for Csv {
    fn event(&mut self, event: &Event) -> String {
        match event {
            Event::Opened { connections } => self.connections.clone_from(connections),
            Event::Sampled { end: EndName::Near, sample } => {
                let span = self.cutter.push(sample);
                return self.interval(span);
            }
            _ => {}
        }
        String::new()
    }

    fn finish(&mut self, record: &Record) -> String {
        let rest = self.cutter.close();
        let flows = counts::flows(record);
        let mut text = self.interval(rest);
        flows.iter().for_each(|flow| text += &self.own(flow));
        for direction in counts::directions(record, &flows) {
            let own: Vec<_> = flows.iter().filter(|f| f.sender == direction.sender).collect();
            // For several flows a sum, as 2.0.13 and 2.2 print it; for none, all that is known.
            if own.iter().filter(|flow| !self.own(flow).is_empty()).count() != 1 {
                let first = own.first().and_then(|flow| flow.connection.as_ref());
                let addresses = Addresses::of(first, direction.sender);
                let side = match direction.sender {
                    EndName::Near => &direction.sent,
                    EndName::Far => &direction.received,
                };
                text += &self.side(addresses, -1, side, direction.sender == EndName::Far);
            }
        }
        text
    }
}

impl Csv {
    fn udp(&self) -> bool {
        self.context.plan.transport == Transport::Udp
    }

    fn interval(&self, span: Option<Span>) -> String {
        let wanted = self.context.style.intervals == Intervals::All;
        let Some(span) = span.filter(|_| wanted) else { return String::new() };
        let mut text = String::new();
        for flow in &span.flows {
            let connection = self.connections.iter().find(|c| c.flow == flow.flow);
            let sender = match flow.role {
                Role::Sender => EndName::Near,
                Role::Receiver => EndName::Far,
            };
            let addresses = Addresses::of(connection, sender);
            text += &row(addresses, id(flow.flow), span.from_s, span.to_s, flow.bytes);
            text += &match flow.datagrams.filter(|_| flow.role == Role::Receiver) {
                Some(d) => udp(d.jitter_ms, d.lost, d.count, d.reordered),
                None if self.udp() => UNREPORTED.into(),
                None => String::new(),
            };
            text.push('\n');
        }
        text
    }

    /// This end's row of a flow; if it sent UDP, also the receiver's row, as 2.0.13 prints it.
    fn own(&self, flow: &FlowCounts) -> String {
        let addresses = Addresses::of(flow.connection.as_ref(), flow.sender);
        match flow.sender {
            EndName::Far => self.side(addresses, id(flow.flow), &flow.received, true),
            EndName::Near => {
                let report = match self.udp() && flow.received.lost.is_some() {
                    true => self.side(addresses, id(flow.flow), &flow.received, true),
                    false => String::new(),
                };
                self.side(addresses, id(flow.flow), &flow.sent, false) + &report
            }
        }
    }

    fn side(&self, addresses: Addresses, id: i32, side: &Side, receives: bool) -> String {
        let (Some(bytes), Some(seconds)) = (side.bytes, side.seconds) else {
            return String::new();
        };
        let tail = match (side.lost, side.packets) {
            // 2.1.8 prints zeros for an unknown jitter and order.
            (Some(lost), Some(packets)) if receives => {
                udp(side.jitter_ms.unwrap_or(0.0), lost, packets, side.reordered.unwrap_or(0))
            }
            _ if self.udp() => UNREPORTED.into(),
            _ => String::new(),
        };
        row(addresses, id, 0.0, seconds, bytes) + &tail + "\n"
    }
}

/// iperf counts transfers from 1.
fn id(flow: u16) -> i32 {
    i32::from(flow) + 1
}

fn udp(jitter_ms: f64, lost: u64, total: u64, reordered: u64) -> String {
    let percent = counts::percent(lost, total).unwrap_or(0.0);
    format!(",{jitter_ms:.3},{lost},{total},{percent:.3},{reordered}")
}
