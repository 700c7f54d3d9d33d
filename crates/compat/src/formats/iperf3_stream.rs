//! iperf3's JSON line by line (`--json-stream`, iperf 3.17 and later): `start`, each `interval`, `end`
//! or `error`, each as `{"event":…,"data":…}`.

use goodput_engine::Event;
use goodput_model::{Connection, EndName, Record};
use serde::Serialize;

use super::cut::IntervalCutter;
use super::iperf3::spans::interval;
use super::iperf3::{end, start};
use super::{Context, Format, Writer};

/// The format.
pub const FORMAT: Format = Format {
    id: "iperf3-stream",
    summary: "JSON lines while it runs, as iperf3 --json-stream",
    refuses: |_| None,
    writer: |context| {
        let cutter = IntervalCutter::of_iperf3(&context.plan, context.style.intervals);
        Box::new(Stream { context, cutter, connections: Vec::new(), started: false })
    },
};

struct Stream {
    context: Context,
    cutter: IntervalCutter,
    connections: Vec<Connection>,
    started: bool,
}

impl Writer for Stream {
    fn event(&mut self, event: &Event) -> String {
        match event {
            Event::Opened { connections } => self.connections.clone_from(connections),
            Event::Sampled { end: EndName::Near, sample } if !sample.flows.is_empty() => {
                return self.start(Some(sample)) + &self.intervals(|cutter| cutter.push(sample));
            }
            _ => {}
        }
        String::new()
    }

    fn finish(&mut self, record: &Record) -> String {
        let rest = self.intervals(IntervalCutter::close);
        self.start(None) + &rest + &line("end", &end::end(record))
    }

    fn fail(&mut self, why: &str) -> Option<String> {
        Some(line("error", &why))
    }
}

impl Stream {
    /// The first line, printed once: it waits for the first sample, which has the sizes of segments and buffers.
    fn start(&mut self, first: Option<&goodput_model::Sample>) -> String {
        if std::mem::replace(&mut self.started, true) {
            return String::new();
        }
        let Self { context, connections, .. } = self;
        line(
            "start",
            &start::start(&start::Known { context, connections, first, host: None, cookie: None }),
        )
    }

    fn intervals(
        &mut self,
        cut: impl FnOnce(&mut IntervalCutter) -> Option<super::cut::Span>,
    ) -> String {
        cut(&mut self.cutter).map(|span| line("interval", &interval(&span))).unwrap_or_default()
    }
}

fn line<T: Serialize>(event: &str, data: &T) -> String {
    #[derive(Serialize)]
    struct Line<'a, T> {
        event: &'a str,
        data: &'a T,
    }
    // Serializing these types can't fail.
    serde_json::to_string(&Line { event, data }).map(|line| line + "\n").unwrap_or_default()
}
