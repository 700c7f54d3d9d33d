//! Watches a transfer: a sample every tenth of a second, and the host's facts before and after.

use std::time::{Duration, Instant};

use goodput_kernel::Context;
use goodput_model::{
    Clocks, End, EndName, Interval, Length, Missing, Plan, Sample, Seconds, Snapshot,
};
use tokio::time::{MissedTickBehavior, interval};

use super::find::ActiveTransfer;
use super::look::{Observation, Observer};
use super::program::Program;
use super::{no_far_end, sender};
use crate::error::EngineError;
use crate::events::{Event, Listener};
use crate::interrupt::Interrupt;
use crate::result::intervals::{Counts, IntervalMaker};
use crate::result::measurement::Measurement;
use crate::result::window::measure;
use crate::run::host_load::HostLoad;
use crate::run::observe::observe;
use crate::threads::blocking;

/// Time between samples.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(100);
/// Fewest samples for a conclusion.
const MIN_SAMPLES: usize = 3;

/// A transfer being watched.
pub struct TransferWatch {
    plan: Plan,
    context: Context,
    eyes: Observers,
    maker: IntervalMaker,
    samples: Vec<Sample>,
    received: Vec<Sample>,
    intervals: Vec<Interval>,
    doubts: Vec<String>,
}

/// The observers, which move to a thread that may block, and back.
struct Observers {
    looker: Observer,
    program: Program,
    load: HostLoad,
    began: Instant,
}

impl Observers {
    fn look(mut self) -> (Self, Result<Option<Observation>, Missing>) {
        let began = self.began;
        let look = self.looker.look(|| began.elapsed().as_secs_f64());
        if let Ok(Some(_)) = look {
            self.program.look();
            self.load.look(began.elapsed().as_secs_f64());
        }
        (self, look)
    }
}

impl TransferWatch {
    /// Watches what was found; `context` is its path.
    pub fn new(plan: Plan, found: ActiveTransfer, context: Context) -> Self {
        let maker =
            IntervalMaker::new(sender(found.chosen.role), Counts::Received, plan.interval_s);
        let looker = Observer::new(found.chosen);
        let load = HostLoad::begin(true, &context.root);
        let eyes = Observers { looker, program: found.program, load, began: Instant::now() };
        Self {
            plan,
            context,
            eyes,
            maker,
            samples: Vec::new(),
            received: Vec::new(),
            intervals: Vec::new(),
            doubts: Vec::new(),
        }
    }

    /// Watches until the plan's length is reached, the transfer ends or the user interrupts.
    pub async fn run(
        mut self,
        interrupt: &Interrupt,
        listener: &mut Listener<'_>,
    ) -> Result<Measurement, EngineError> {
        let before = observe(true, self.context.clone()).await?;
        self.eyes.began = Instant::now();
        self.eyes.load = HostLoad::begin(true, &self.context.root);
        listener(Event::Began);
        let mut ticks = interval(SAMPLE_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !self.is_long_enough() {
            tokio::select! {
                _ = ticks.tick() => {}
                () = interrupt.raised() => {
                    self.doubts.push(format!("interrupted after {}", Seconds(self.last_s())));
                    break;
                }
            }
            let eyes = self.eyes;
            let (eyes, look) = blocking(move || eyes.look()).await?;
            self.eyes = eyes;
            match look.map_err(|why| EngineError::attach(why.to_string()))? {
                Some(look) => self.take(look, listener),
                None => {
                    let at = Seconds(self.last_s());
                    self.doubts.push(format!("the transfer ended after {at}"));
                    break;
                }
            }
        }
        listener(Event::Ended);
        let after = observe(true, self.context.clone()).await?;
        self.close(before, after, listener)
    }

    fn last_s(&self) -> f64 {
        self.samples.last().map_or(0.0, |sample| sample.at_s)
    }

    fn is_long_enough(&self) -> bool {
        let at = self.last_s();
        match self.plan.length {
            Length::Seconds(seconds) => at >= seconds,
            // The command line refuses both: other programs' bytes are not ours to count down.
            Length::Bytes(bytes) => {
                self.received.last().is_some_and(|last| last.received_bytes >= bytes.0)
            }
            Length::Source => false,
            Length::Auto { max_s, .. } if at >= max_s => true,
            Length::Auto { precision_percent, min_s, .. } => {
                at >= min_s
                    && measure(&self.samples, &self.received, 0.0, 0.0).is_some_and(|measured| {
                        goodput_experiment::steady::is_precise_enough(&measured, precision_percent)
                    })
            }
        }
    }

    fn take(&mut self, look: Observation, listener: &mut Listener<'_>) {
        listener(Event::Sampled { end: EndName::Near, sample: look.sample.clone().into() });
        let received = received(&look.sample, look.received_bytes);
        let interval = self.maker.push(&received);
        self.show(interval, listener);
        self.received.push(received);
        self.samples.push(look.sample);
    }

    fn show(&mut self, interval: Option<Interval>, listener: &mut Listener<'_>) {
        if let Some(interval) = interval {
            listener(Event::Interval(interval.clone()));
            self.intervals.push(interval);
        }
    }

    fn close(
        mut self,
        before: Snapshot,
        mut after: Snapshot,
        listener: &mut Listener<'_>,
    ) -> Result<Measurement, EngineError> {
        if self.samples.len() < MIN_SAMPLES {
            return Err(EngineError::attach(format!(
                "the transfer ended after {}, too early to report anything",
                Seconds(self.last_s())
            )));
        }
        let shown_s = self.intervals.last().map_or(0.0, |interval| interval.to_s);
        if let Some(last) = self.received.last().filter(|last| last.at_s > shown_s) {
            let interval = self.maker.close(last);
            self.show(interval, listener);
        }
        self.eyes.program.enter(&mut self.samples);
        self.eyes.program.note(&mut after);
        let at_s = self.eyes.began.elapsed().as_secs_f64();
        let host_cpu = self.eyes.load.end(at_s);
        let samples = self.samples;
        let near =
            End { before, after, samples, host_cpu, ..End::unobserved(goodput_kernel::host()) };
        Ok(Measurement {
            plan: self.plan,
            near: near.into(),
            far: no_far_end(),
            far_settings: None,
            connections: Vec::new(),
            far_totals: None,
            intervals: self.intervals,
            thinned: None,
            steady_samples: None,
            latency: None,
            far_capture: None,
            fetches: None,
            clocks: Clocks::missing("only this end is watched"),
            incomplete: None,
            doubts: self.doubts,
        })
    }
}

/// The sample as the receiver would have taken it.
fn received(sample: &Sample, received_bytes: u64) -> Sample {
    Sample { at_s: sample.at_s, sent_bytes: 0, received_bytes, flows: Vec::new() }
}
