//! One measurement seen from the near end: agree, open the flows, watch, stop, gather.

mod agree;

use std::time::{Duration, Instant};

use goodput_kernel::Context;
use goodput_model::{
    Direction, End, EndName, FlowTotals, Interval, Known, Length, Plan, Sample, Snapshot, Totals,
};
use goodput_wire::session::{Action, Input};
use tokio::time::Instant as TokioInstant;

use crate::acknowledged::acknowledged;
use crate::client::{Client, unexpected};
use crate::clock;
use crate::error::EngineError;
use crate::events::{Event, Listener};
use crate::interrupt::Interrupt;
use crate::intervals::IntervalMaker;
use crate::measurement::{Measurement, measure};
use crate::observe::observe;
use crate::traffic::{Traffic, Watched};

/// How long the far end may take to gather and send its report.
const REPORT: Duration = Duration::from_secs(15);

/// A measurement that both ends have agreed on.
pub struct NearRun<'a> {
    client: &'a mut Client,
    plan: Plan,
    traffic: Traffic,
    context: Context,
    before: Snapshot,
    near: Vec<Sample>,
    far: Vec<Sample>,
    makers: Vec<(EndName, IntervalMaker)>,
    intervals: Vec<Interval>,
    steady_samples: Option<(usize, usize)>,
    near_ended: bool,
    far_report: Option<Known<End>>,
    far_totals: Option<Totals>,
    doubts: Vec<String>,
}

impl<'a> NearRun<'a> {
    /// Proposes the plan, opens the flows and takes the snapshot before.
    pub async fn agree(client: &'a mut Client, plan: &Plan) -> Result<Self, EngineError> {
        client.conversation.tell(Input::Propose(Box::new(plan.clone())));
        let agreed = agree::flows(client, plan).await?;
        let peer = agreed.opened.peer.ip();
        let traffic = Traffic::start(plan, EndName::Near, agreed.opened.flows, None)?;
        let notes = agree::ready(client, agreed.meanwhile).await?;
        let context =
            Context { peer: Some(peer), device: plan.socket.device.clone(), ..Context::default() };
        let mut before = observe(plan.observe, context.clone()).await?;
        clock::note(&mut before, client.clock);
        let doubts =
            agreed.opened.doubts.into_iter().chain(notes).chain(clock::doubt(client.clock));
        let doubts = doubts.collect();
        Ok(Self::new(client, plan.clone(), traffic, context, before, doubts))
    }

    fn new(
        client: &'a mut Client,
        plan: Plan,
        traffic: Traffic,
        context: Context,
        before: Snapshot,
        doubts: Vec<String>,
    ) -> Self {
        let senders: &[EndName] = match plan.direction {
            Direction::Send => &[EndName::Near],
            Direction::Reverse => &[EndName::Far],
            Direction::Both => &[EndName::Near, EndName::Far],
        };
        let makers =
            senders.iter().map(|s| (*s, IntervalMaker::new(*s, plan.interval_s))).collect();
        Self {
            client,
            plan,
            traffic,
            context,
            before,
            near: Vec::new(),
            far: Vec::new(),
            makers,
            intervals: Vec::new(),
            steady_samples: None,
            near_ended: false,
            far_report: None,
            far_totals: None,
            doubts,
        }
    }

    /// Lets the payload move until the plan's length is reached, then gathers both ends' reports.
    pub async fn run(
        mut self,
        interrupt: &Interrupt,
        listener: &mut Listener<'_>,
    ) -> Result<Measurement, EngineError> {
        self.client.conversation.tell(Input::Begin);
        let began = self.traffic.begin(&self.plan)?;
        listener(Event::Began);
        let deadline = self.latest_end(began);
        while !self.is_long_enough() {
            tokio::select! {
                watched = self.traffic.next() => self.watched(watched, listener)?,
                action = self.client.next() => self.acted(action?, listener)?,
                () = tokio::time::sleep_until(deadline) => break,
                () = interrupt.raised() => {
                    let after = began.elapsed().as_secs_f64();
                    self.doubts.push(format!("interrupted after {after:.1} s"));
                    break;
                }
            }
        }
        self.finish();
        listener(Event::Ended);
        self.gather(listener).await?;
        if matches!(self.far_report, Some(Known::Missing(_))) {
            self.fill_intervals(listener);
        }
        self.close_intervals(listener);
        let after = observe(self.plan.observe, self.context.clone()).await?;
        Ok(self.into_measurement(after))
    }

    /// When to stop at the latest; a plan of bytes ends by itself or when the peer gives up.
    fn latest_end(&self, began: Instant) -> TokioInstant {
        let seconds = match self.plan.length {
            Length::Seconds(seconds) => seconds,
            Length::Auto { max_s, .. } => max_s,
            Length::Bytes(_) => return TokioInstant::now() + Duration::from_secs(86_400),
        };
        TokioInstant::from_std(began + Duration::from_secs_f64(seconds))
    }

    fn is_long_enough(&self) -> bool {
        match self.plan.length {
            Length::Seconds(_) => self.near_ended || self.far_report.is_some(),
            // Both ends empty their queues by themselves; stopping would cut them off.
            Length::Bytes(_) => self.near_ended && self.far_report.is_some(),
            Length::Auto { .. } if self.near_ended || self.far_report.is_some() => true,
            Length::Auto { precision_percent, min_s, .. } => self
                .makers
                .iter()
                .all(|(sender, _)| self.is_known(*sender, min_s, precision_percent)),
        }
    }

    /// Whether the goodput of what `sender` sends is known well enough.
    fn is_known(&self, sender: EndName, min_s: f64, precision_percent: f64) -> bool {
        let instead;
        let (sending, receiving) = match sender {
            EndName::Near if self.far.is_empty() => {
                instead = acknowledged(&self.near);
                (&self.near, &instead)
            }
            EndName::Near => (&self.near, &self.far),
            EndName::Far => (&self.far, &self.near),
        };
        let long_enough = receiving.last().is_some_and(|last| last.at_s >= min_s);
        long_enough
            && measure(sending, receiving).is_some_and(|measured| {
                goodput_experiment::steady::is_precise_enough(&measured, precision_percent)
            })
    }

    fn watched(
        &mut self,
        watched: Watched,
        listener: &mut Listener<'_>,
    ) -> Result<(), EngineError> {
        match watched {
            Watched::Sample(sample) => self.take_sample(EndName::Near, *sample, listener),
            Watched::Ended(outcome) => {
                self.near_ended = true;
                let ending =
                    outcome.map_err(|why| EngineError::Flow(format!("near end: {why}")))?;
                self.client.conversation.tell(Input::Ended(ending.last));
                self.told_on_flows(ending.told);
            }
        }
        Ok(())
    }

    /// Takes what the far end told on the flows themselves for its account.
    fn told_on_flows(&mut self, flows: Vec<FlowTotals>) {
        if flows.is_empty() {
            return;
        }
        let program = self.client.target.protocol.id.into();
        let cpu_percent = Known::missing("it told on its flows, which have no place for that");
        self.far_totals = Some(Totals { program, cpu_percent, flows, text: None });
    }

    fn acted(&mut self, action: Action, listener: &mut Listener<'_>) -> Result<(), EngineError> {
        match action {
            Action::PeerSampled(sample) => self.take_sample(EndName::Far, *sample, listener),
            Action::PeerTold(totals) => self.far_totals = Some(*totals),
            Action::PeerReported(report) => self.far_report = Some(report.map(|end| *end)),
            Action::Note(text) => {
                self.doubts.push(text.clone());
                listener(Event::Note { text });
            }
            // The session says these for a driver that waits for its word; this one went ahead.
            Action::Begin | Action::Finish => {}
            other => return Err(unexpected(&self.client.target, &other)),
        }
        Ok(())
    }

    fn take_sample(&mut self, at: EndName, sample: Sample, listener: &mut Listener<'_>) {
        // What arrives after the senders were stopped is the emptying of queues: no interval of it.
        let stopped = self.steady_samples.is_some();
        for (sender, maker) in &mut self.makers {
            if *sender == at.other()
                && !stopped
                && let Some(interval) = maker.push(&sample)
            {
                listener(Event::Interval(interval.clone()));
                self.intervals.push(interval);
            }
        }
        match at {
            EndName::Near => self.near.push(sample),
            EndName::Far => self.far.push(sample),
        }
    }

    /// Stops the senders of both ends. What the receivers count from here on is the emptying of
    /// queues, unless the flows ended by themselves.
    fn finish(&mut self) {
        if !self.near_ended && self.far_report.is_none() {
            self.steady_samples = Some((self.near.len(), self.far.len()));
        }
        self.traffic.finish();
        self.client.conversation.tell(Input::Finish(None));
    }

    /// Waits until our own flows have ended and the far end has told what it saw.
    async fn gather(&mut self, listener: &mut Listener<'_>) -> Result<(), EngineError> {
        let deadline = TokioInstant::now() + REPORT;
        while !self.near_ended || self.far_report.is_none() {
            tokio::select! {
                watched = self.traffic.next(), if !self.near_ended => {
                    self.watched(watched, listener)?;
                }
                action = self.client.next() => self.acted(action?, listener)?,
                () = tokio::time::sleep_until(deadline) => {
                    return Err(EngineError::Flow(format!(
                        "{} did not report within {} s of the end",
                        self.client.target, REPORT.as_secs()
                    )));
                }
            }
        }
        Ok(())
    }

    /// The intervals of what the far end received and did not tell.
    fn fill_intervals(&mut self, listener: &mut Listener<'_>) {
        let steady = self.steady_samples.map_or(self.near.len(), |(near, _)| near);
        let acknowledged = acknowledged(&self.near[..steady.min(self.near.len())]);
        for (sender, maker) in &mut self.makers {
            if *sender != EndName::Near {
                continue;
            }
            for interval in acknowledged.iter().filter_map(|sample| maker.push(sample)) {
                listener(Event::Interval(interval.clone()));
                self.intervals.push(interval);
            }
        }
    }

    /// The rest of each direction up to the last steady sample, where it is long enough to show.
    fn close_intervals(&mut self, listener: &mut Listener<'_>) {
        let (near, far) = self.steady_samples.unwrap_or((self.near.len(), self.far.len()));
        for (sender, maker) in &mut self.makers {
            let receiving = match sender {
                EndName::Near => &self.far[..far.min(self.far.len())],
                EndName::Far => &self.near[..near.min(self.near.len())],
            };
            let last =
                self.intervals.iter().rev().find(|i| i.sender == *sender).map_or(0.0, |i| i.to_s);
            let rest = receiving.last().filter(|sample| sample.at_s > last);
            if let Some(interval) = rest.and_then(|sample| maker.close(sample)) {
                listener(Event::Interval(interval.clone()));
                self.intervals.push(interval);
            }
        }
    }

    fn into_measurement(self, after: Snapshot) -> Measurement {
        let near =
            End { host: goodput_kernel::host(), before: self.before, after, samples: self.near };
        let far = match self.far_report {
            Some(report) => report.map(|end| End { samples: self.far, ..end }),
            None => Known::missing("the far end did not report"),
        };
        // The far end needs to know that we are done, not what we saw: short enough for a path that
        // lets no full-sized packet through.
        let done = End {
            host: near.host.clone(),
            before: Snapshot::default(),
            after: Snapshot::default(),
            samples: Vec::new(),
        };
        self.client.conversation.tell(Input::Report(Known::Value(Box::new(done))));
        Measurement {
            plan: self.plan,
            near,
            far,
            far_totals: self.far_totals,
            intervals: self.intervals,
            steady_samples: self.steady_samples,
            doubts: self.doubts,
        }
    }
}
