//! Prints a finished record as if it happened now.

use std::fmt::Write;

use goodput_engine::Event;
use goodput_model::{End, EndName, Interval, Record};

use super::{Context, Format, Style};

/// A record in a format.
pub fn print(format: &Format, record: &Record, style: Style) -> String {
    let context = Context {
        plan: record.plan.clone(),
        target: record.target.clone(),
        started: record.started.clone(),
        served: None,
        served_flows: 0,
        style,
    };
    let mut writer = (format.writer)(context);
    let mut text = String::new();
    for event in events(record) {
        text.push_str(&writer.event(&event));
    }
    // Writing to a String can't fail.
    let _ = write!(text, "{}", writer.finish(record));
    text
}

/// The events that the record reports, in order of time.
fn events(record: &Record) -> Vec<Event> {
    let samples = |end: Option<&End>, name: EndName| {
        let all = end.map(|end| end.samples.clone()).unwrap_or_default();
        let event = move |sample| Event::Sampled { end: name, sample: Box::new(sample) };
        all.into_iter().map(event).collect::<Vec<_>>()
    };
    let mut moments = samples(record.ends.near.value(), EndName::Near);
    moments.extend(samples(record.ends.far.value(), EndName::Far));
    moments.extend(record.intervals.iter().cloned().map(Event::Interval));
    // Stable, so that a sample comes before the interval that it closed.
    moments.sort_by(|a, b| at_s(a).total_cmp(&at_s(b)));
    let opened = Event::Opened { connections: record.connections.clone() };
    [opened, Event::Began].into_iter().chain(moments).chain([Event::Ended]).collect()
}

fn at_s(event: &Event) -> f64 {
    match event {
        Event::Sampled { sample, .. } => sample.at_s,
        Event::Interval(Interval { to_s, .. }) => *to_s,
        _ => 0.0,
    }
}
