//! Prints the measurements of `goodput serve` in the format of another program's server.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use goodput_engine::serve::{Served, Watcher, What};
use goodput_engine::{Event, conclude_at_least};
use goodput_model::{EndName, Plan, Record, Transport};

use super::measured;
use crate::args::ServeArgs;
use crate::screen;
use goodput_compat::formats::iperf2_sums::Sums;
use goodput_compat::formats::{Context, Format, Style, Writer, iperf2_text};

/// Part of the line in which iperf3 reports that it listens; iperf3 numbers its tests.
const FIRST_TEST: &str = "(test #1)";

/// A measurement that is being printed.
struct Printed {
    writer: Box<dyn Writer>,
    started: String,
    target: String,
    peer: IpAddr,
    transport: Transport,
}

/// All measurements.
struct Printer {
    format: &'static Format,
    style: Style,
    interval_s: Option<f64>,
    /// The line before the next measurement, by its number.
    again: Option<String>,
    ended: u64,
    /// Flows that have begun so far.
    flows: u64,
    /// The sums of what one client sent in parallel, if the format has them.
    sums: Option<Sums>,
    running: HashMap<u64, Printed>,
}

/// The printer, if the options request one.
pub fn watcher(args: &ServeArgs) -> Option<Watcher> {
    let again = args
        .listen
        .announce
        .clone()
        .filter(|text| text.contains(FIRST_TEST) && !args.listen.one_off);
    let printer = Printer {
        format: args.format.format?,
        style: args.format.style(),
        interval_s: args.format.interval.filter(|seconds| *seconds > 0.0),
        again,
        ended: 0,
        flows: 0,
        sums: args
            .format
            .format
            .filter(|format| format.id == iperf2_text::FORMAT.id)
            .map(|_| Sums::in_units(args.format.format_units)),
        running: HashMap::new(),
    };
    let printer = Mutex::new(printer);
    Some(Watcher::new(move |served| {
        // A panic in between leaves no state that affects the next line.
        let text = printer.lock().unwrap_or_else(PoisonError::into_inner).take(served);
        // A stalled or closed reader must not stop the server.
        screen::later(&text);
    }))
}

impl Printer {
    fn take(&mut self, served: Served) -> String {
        // The other programs print nothing about the rest.
        let Served::Measurement { number: measurement, what } = served else {
            return String::new();
        };
        match what {
            What::Began { peer, plan, connections, .. } => {
                let (transport, before) = (plan.transport, self.flows);
                self.flows += connections.len() as u64;
                self.sums.iter_mut().for_each(|sums| sums.began(peer.ip(), transport));
                let interval_s = self.interval_s.unwrap_or(plan.interval_s);
                let (started, target) = (measured::now(), peer.to_string());
                let mut writer = (self.format.writer)(Context {
                    plan: Plan { interval_s, ..*plan },
                    target: target.clone(),
                    started: started.clone(),
                    served: Some(peer),
                    served_flows: before,
                    style: self.style.clone(),
                });
                let text = writer.event(&Event::Opened { connections });
                let printed = Printed { writer, started, target, peer: peer.ip(), transport };
                self.running.insert(measurement, printed);
                text
            }
            What::Sampled(sample) => {
                let event = Event::Sampled { end: EndName::Near, sample };
                let running = self.running.get_mut(&measurement);
                running.map_or_else(String::new, |printed| printed.writer.event(&event))
            }
            What::Ended(ended) => {
                let Some(mut printed) = self.running.remove(&measurement) else {
                    return String::new();
                };
                let record = conclude_at_least(*ended, &printed.target, &printed.started).record;
                if let Some(why) = (self.format.refuses)(&record) {
                    tracing::warn!(peer = %printed.peer, "{why}");
                }
                printed.writer.finish(&record) + &self.sum(&printed, Some(&record)) + &self.again()
            }
            What::BrokenOff => {
                let Some(mut printed) = self.running.remove(&measurement) else {
                    return self.again();
                };
                let why = "the client aborted the measurement";
                let text = printed.writer.fail(why).unwrap_or_default();
                text + &self.sum(&printed, None) + &self.again()
            }
        }
    }

    fn sum(&mut self, printed: &Printed, record: Option<&Record>) -> String {
        let Printed { peer, transport, .. } = *printed;
        let sums = self.sums.as_mut();
        sums.map_or_else(String::new, |sums| sums.ended(peer, transport, record))
    }

    fn again(&mut self) -> String {
        self.ended += 1;
        let next = format!("(test #{})", self.ended + 1);
        self.again.as_ref().map_or(String::new(), |text| text.replace(FIRST_TEST, &next) + "\n")
    }
}
