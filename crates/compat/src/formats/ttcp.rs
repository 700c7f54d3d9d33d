//! ttcp's lines, as Minshall's version prints them (wording and order of ttcp.c; KB are 1024 bytes).
//! ttcp's memory and page faults are left out: they say nothing about a transfer.

use std::fmt::Write;

use goodput_engine::{Event, Target};
use goodput_model::{Direction, EndName, Length, Record, Role, Transport};

use super::counts::{self, Side};
use super::{Context, Format, Writer};

/// The format.
pub const FORMAT: Format = Format {
    id: "ttcp",
    summary: "the lines of ttcp",
    refuses: |_| None,
    writer: |context| Box::new(Ttcp { context }),
};

struct Ttcp {
    context: Context,
}

impl Writer for Ttcp {
    fn event(&mut self, event: &Event) -> String {
        match event {
            Event::Opened { .. } => self.head(),
            _ => String::new(),
        }
    }

    fn finish(&mut self, record: &Record) -> String {
        let flows = counts::flows(record);
        let mut text = String::new();
        for direction in counts::directions(record, &flows) {
            let (prefix, side) = match direction.sender {
                EndName::Near => ("ttcp-t", &direction.sent),
                EndName::Far => ("ttcp-r", &direction.received),
            };
            text += &transfer(prefix, side, calls(record, direction.sender));
        }
        text + &self.costs(record)
    }
}

impl Ttcp {
    fn prefix(&self) -> &'static str {
        match self.context.plan.direction {
            Direction::Reverse => "ttcp-r",
            Direction::Send | Direction::Both => "ttcp-t",
        }
    }

    fn head(&self) -> String {
        let prefix = self.prefix();
        let Context { plan, target, .. } = &self.context;
        if let Some(peer) = self.context.served {
            // A server has already printed that it has its socket, and knows only the sender's buffers.
            return format!("{prefix}: accept from {}\n", peer.ip());
        }
        let mut text = format!("{prefix}: socket\n{prefix}: connect\n{prefix}: ");
        let buflen = plan.chunk_bytes.0;
        let _ = write!(text, "buflen={buflen}");
        if let Length::Bytes(bytes) = plan.length {
            let _ = write!(text, ", nbuf={}", bytes.0 / buflen.max(1));
        }
        let protocol = match plan.transport {
            Transport::Tcp => "tcp",
            Transport::Udp => "udp",
        };
        if let Ok(Target { host, port, .. }) = target.parse() {
            let _ = write!(text, ", port={port}  {protocol}  -> {host}");
        }
        text + "\n"
    }

    fn costs(&self, record: &Record) -> String {
        let Some(near) = record.ends.near.value() else { return String::new() };
        let grown = |name: &str| near.before.grown(&near.after, name).ok();
        let (Some(user), Some(system)) = (grown("process.user_us"), grown("process.system_us"))
        else {
            return String::new();
        };
        let seconds = near.last_sample().map_or(0.0, |sample| sample.at_s);
        let percent = record.result.near.cpu_percent.value().copied().unwrap_or(0.0);
        format!(
            "{}: {:.1}user {:.1}sys {}:{:02}real {percent:.0}%\n",
            self.prefix(),
            user as f64 / 1e6,
            system as f64 / 1e6,
            seconds as u64 / 60,
            seconds as u64 % 60
        )
    }
}

fn transfer(prefix: &str, side: &Side, calls: Option<u64>) -> String {
    let (Some(bytes), Some(seconds)) = (side.bytes, side.seconds) else {
        return String::new();
    };
    // Data that came at once took no time; ttcp then divides by a millisecond (ttcp.c, realt).
    let seconds = if seconds > 0.0 { seconds } else { 0.001 };
    let mut text = format!(
        "{prefix}: {bytes} bytes in {seconds:.2} real seconds = {:.2} KB/sec +++\n",
        bytes as f64 / 1024.0 / seconds
    );
    if let Some(calls) = calls.filter(|calls| *calls > 0) {
        let per_call = seconds * 1000.0 / calls as f64;
        let per_second = calls as f64 / seconds;
        let _ = writeln!(
            text,
            "{prefix}: {calls} I/O calls, msec/call = {per_call:.2}, calls/sec = {per_second:.2}"
        );
    }
    text
}

/// System calls of this end in one direction.
fn calls(record: &Record, sender: EndName) -> Option<u64> {
    let role = if sender == EndName::Near { Role::Sender } else { Role::Receiver };
    let samples = &record.ends.near.value()?.samples;
    let last = samples.iter().rev().find(|sample| !sample.flows.is_empty())?;
    let own = last.flows.iter().filter(|flow| flow.role == role);
    own.map(|flow| flow.calls.value().copied()).try_fold(0u64, |sum, n| sum.checked_add(n?))
}
