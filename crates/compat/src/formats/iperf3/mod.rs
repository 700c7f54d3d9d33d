//! iperf3's JSON tree (`-J`), with the keys of iperf 3.12, and those of later versions to 3.21 for
//! which goodput has a value.

pub mod counts;
pub mod end;
pub mod spans;
pub mod start;
pub mod tree;

use goodput_engine::Event;
use goodput_model::Record;
use serde::Serialize;

use self::spans::{Interval, interval};
use self::tree::Tree;
use super::cut::IntervalCutter;
use super::{Context, Format, Writer};

/// The format.
pub const FORMAT: Format = Format {
    id: "iperf3",
    summary: "one JSON object at the end, as iperf3 -J",
    refuses: |_| None,
    writer: |context| Box::new(Json::new(context)),
};

/// iperf3 numbers streams by their file descriptors: 5, 7, 9, … in its own client. goodput's numbers
/// differ; scripts only need them to be distinct.
pub fn socket(flow: u16) -> u32 {
    5 + 2 * u32::from(flow)
}

struct Json {
    context: Context,
    cutter: IntervalCutter,
    intervals: Vec<Interval>,
}

impl Json {
    fn new(context: Context) -> Self {
        let cutter = IntervalCutter::of_iperf3(&context.plan, context.style.intervals);
        Self { context, cutter, intervals: Vec::new() }
    }
}

impl Writer for Json {
    fn event(&mut self, event: &Event) -> String {
        if let Event::Sampled { end: goodput_model::EndName::Near, sample } = event {
            self.intervals.extend(self.cutter.push(sample).map(|span| interval(&span)));
        }
        String::new()
    }

    fn finish(&mut self, record: &Record) -> String {
        self.intervals.extend(self.cutter.close().map(|span| interval(&span)));
        let (server_output_json, server_output_text) = server_output(record);
        let tree = Tree {
            start: start::of_record(record, self.context.served),
            intervals: std::mem::take(&mut self.intervals),
            end: end::end(record),
            title: self.context.style.title.clone(),
            server_output_text,
            server_output_json,
            error: None,
        };
        pretty(&tree)
    }

    fn fail(&mut self, why: &str) -> Option<String> {
        let start = start::Start::of_none();
        Some(pretty(&Tree { start, error: Some(why.into()), ..Tree::default() }))
    }
}

/// What the server printed: its JSON, or else its text.
fn server_output(record: &Record) -> (Option<serde_json::Value>, Option<String>) {
    let text = record.far_totals.as_ref().and_then(|totals| totals.text.clone());
    let json = text.as_ref().and_then(|text| serde_json::from_str(text).ok());
    if json.is_some() { (json, None) } else { (None, text) }
}

/// The layout of cJSON: indented by tabs.
fn pretty(tree: &Tree) -> String {
    let mut bytes = Vec::new();
    let style = serde_json::ser::PrettyFormatter::with_indent(b"\t");
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, style);
    // Neither a Vec nor these types can fail to accept or to return a value.
    let _ = tree.serialize(&mut serializer);
    String::from_utf8_lossy(&bytes).into_owned() + "\n"
}
