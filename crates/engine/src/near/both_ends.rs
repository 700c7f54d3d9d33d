//! Both ends of a running measurement: what the flows of this end do, what the far end says, and what is kept of it.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use goodput_model::{
    Clocks, Connection, End, EndName, Host, Known, Sample, Seconds, Snapshot, Transport,
};
use goodput_wire::session::{Action, Input};

use super::client::{Client, REASON_TIMEOUT, unexpected};
use super::far_start::FarStart;
use super::kept_samples::KeptSamples;
use super::progress::Progress;
use super::reported_totals::ReportedTotals;
use crate::error::EngineError;
use crate::events::{Event, Listener};
use crate::interrupt::Interrupt;
use crate::result::measurement::{FarCaptured, Incomplete, Measurement};
use crate::run::end_run::{EndRun, Seen};
use crate::run::flow_events::Failure;
use crate::run::length::longest;

/// How often this end sends a sign of life to a far end that sends datagrams, seconds: several times within the 15 s
/// after which it stops.
const SHOW_LIFE_EVERY_S: f64 = 3.0;
/// Why the far end's observations are unknown. [`Incomplete`] says once what kept the report away.
const UNREPORTED: &str = "the far end did not report";

/// Both ends, while they run.
pub struct BothEnds<'a> {
    pub(super) client: &'a mut Client,
    /// This end's flows.
    pub(super) run: EndRun,
    pub(super) kept: KeptSamples,
    far_report: Option<Known<End>>,
    reported: ReportedTotals,
    /// When the far end last got a sign of life, by this end's samples.
    life_shown_s: f64,
    /// When both ends began, as far as this is known during the run.
    pub(super) far_start: FarStart,
    pub(super) connections: Vec<Connection>,
    /// Whether anything more is expected from the far end.
    pub(super) hears: bool,
    /// What is missing from the measurement, if anything is.
    incomplete: Option<Incomplete>,
    pub(super) doubts: Vec<String>,
    /// What the far end captures, if it was asked for that.
    pub(super) far_capture: Option<Known<FarCaptured>>,
}

impl<'a> BothEnds<'a> {
    /// This end, as it is set up, and the far end that `client` has found.
    pub fn new(
        client: &'a mut Client,
        run: EndRun,
        connections: Vec<Connection>,
        doubts: Vec<String>,
    ) -> Self {
        let reported = ReportedTotals::of(&client.peer, client.far_end());
        let kept = KeptSamples::new(run.plan(), client.far_end().reports);
        Self {
            client,
            run,
            kept,
            far_report: None,
            reported,
            life_shown_s: 0.0,
            far_start: FarStart::default(),
            connections,
            hears: true,
            incomplete: None,
            doubts,
            far_capture: None,
        }
    }

    /// How far the measurement has got.
    pub fn progress(&self) -> Progress<'_> {
        Progress {
            plan: self.run.plan(),
            far_end: self.client.far_end(),
            kept: &self.kept,
            far_start: &self.far_start,
            limit_reached: self.run.limit_reached(),
            near_ended: self.run.has_ended(),
            far_reported: self.far_report.is_some(),
        }
    }

    /// Sends nothing for so long, unless something is raised or heard that ends the measurement.
    pub async fn rest(
        &mut self,
        rest: Duration,
        interrupt: &Interrupt,
        listener: &mut Listener<'_>,
    ) -> Result<(), EngineError> {
        if rest.is_zero() {
            return Ok(());
        }
        let mut over = pin!(tokio::time::sleep(rest));
        loop {
            tokio::select! {
                () = &mut over => return Ok(()),
                () = interrupt.raised() => return Ok(()),
                heard = self.hear(listener) => heard?,
            }
        }
    }

    /// Starts the flows, and watches them until they have moved what the plan wants.
    pub async fn move_payload(
        &mut self,
        interrupt: &Interrupt,
        listener: &mut Listener<'_>,
    ) -> Result<(), EngineError> {
        let began = self.run.begin(longest(self.run.plan()))?;
        self.far_start.began(began);
        listener(Event::Opened { connections: self.connections.clone() });
        listener(Event::Began);
        while !self.progress().is_enough() {
            tokio::select! {
                seen = self.run.next() => self.seen(seen, listener)?,
                action = self.client.next() => self.acted(action?, listener)?,
                () = interrupt.raised() => {
                    let after = Seconds(began.elapsed().as_secs_f64());
                    self.doubts.push(format!("{} after {after}", interrupt.in_words()));
                    break;
                }
            }
        }
        if self.progress().ended_before_it_moved() && !interrupt.is_raised() {
            let why = "the far end ended the test before a single byte had moved; it may be busy, or accept only known clients";
            let words = if self.hears { self.client.refusal().await } else { None };
            return Err(words.unwrap_or_else(|| EngineError::BrokenOff(why.into())));
        }
        Ok(())
    }

    /// Stops the senders of both ends. From now on, receivers count queues emptying, unless the flows ended on their
    /// own. If the measurement was interrupted, or the far end is gone, nobody waits for long.
    pub fn finish(&mut self, interrupt: &Interrupt) {
        let is_asked = interrupt.is_raised();
        let soon = is_asked || !self.hears;
        let far_until_s = self.far_start.far_s(Instant::now());
        self.kept.stop(!self.progress().has_an_end_ended(), far_until_s);
        if soon {
            self.run.forsake_far_end();
        }
        let hurries = self.client.far_end().finishes_soon;
        let soon = soon && hurries;
        if is_asked && !hurries {
            self.run.cut();
        } else {
            self.run.finish(soon);
        }
        if self.hears {
            self.client.conversation.feed(if soon {
                Input::FinishSoon
            } else {
                Input::Finish(None)
            });
        }
    }

    /// Takes the next action of the far end.
    pub(super) async fn hear(&mut self, listener: &mut Listener<'_>) -> Result<(), EngineError> {
        let action = self.client.next().await?;
        self.acted(action, listener)
    }

    /// Takes what this end's flows did.
    pub(super) fn seen(
        &mut self,
        seen: Result<Seen, Failure>,
        listener: &mut Listener<'_>,
    ) -> Result<(), EngineError> {
        let seen = seen.map_err(|failure| {
            let why = format!("near end: {}", failure.why);
            match failure {
                Failure { not_permitted: true, .. } => EngineError::Forbidden(why),
                Failure { by_peer: true, .. } => EngineError::BrokenOff(why),
                Failure { .. } => EngineError::Flow(why),
            }
        });
        match seen? {
            Seen::Sample(sample) => {
                if self.run.plan().omit_s > 0.0 && self.client.far_end().gets_counts_without_warm_up
                {
                    self.client.conversation.feed(Input::Sampled(sample.clone()));
                }
                self.show_life(&sample);
                self.kept.take(EndName::Near, *sample, listener);
            }
            Seen::Limit => {}
            Seen::Ended { last, totals } => {
                self.client.conversation.feed(Input::Ended(last));
                self.reported.came_on_flows(totals);
            }
        }
        Ok(())
    }

    /// Sends a sign of life now and then to a far end that sends datagrams. Without it the far end stops, and its own
    /// words may be lost among its datagrams.
    fn show_life(&mut self, sample: &Sample) {
        let plan = self.run.plan();
        let sends = plan.direction.senders().contains(&EndName::Far);
        let is_due = sample.at_s - self.life_shown_s >= SHOW_LIFE_EVERY_S;
        let wants = self.client.far_end().needs_life_signs;
        if plan.transport == Transport::Udp && sends && is_due && wants {
            self.life_shown_s = sample.at_s;
            let sample = Sample { flows: Vec::new(), ..sample.clone() };
            self.client.conversation.feed(Input::Sampled(Box::new(sample)));
        }
    }

    /// Takes what the far end did.
    pub(super) fn acted(
        &mut self,
        action: Action,
        listener: &mut Listener<'_>,
    ) -> Result<(), EngineError> {
        match action {
            Action::PeerSampled(sample) => {
                self.far_start.heard(Instant::now(), sample.at_s);
                self.kept.take(EndName::Far, *sample, listener);
            }
            Action::PeerStopped => self.run.far_end_stopped(),
            Action::PeerTotals(totals) => self.reported.came(*totals),
            Action::PeerCaptured(part) => {
                if let Some(Known::Value(captured)) = &mut self.far_capture {
                    captured.heads.add(*part);
                }
            }
            Action::PeerReported(report) => self.far_report = Some(report.map(|end| *end)),
            Action::Note(text) => {
                self.doubts.push(text.clone());
                listener(Event::Note { text });
            }
            // The session emits these for a driver that waits for its word; this driver went ahead.
            Action::Begin | Action::Finish | Action::FinishSoon => {}
            other => return Err(unexpected(&self.client.target, &other)),
        }
        Ok(())
    }

    /// Whether the far end's report may still come.
    pub(super) fn awaits_report(&self) -> bool {
        self.hears && self.far_report.is_none()
    }

    /// What broke a flow at this end, if the far end has refused to go on: it may know this flow's end only as a broken
    /// connection, and its words overtake the reason.
    pub(super) async fn own_reason(
        &mut self,
        why: &EngineError,
        interrupt: &Interrupt,
        listener: &mut Listener<'_>,
    ) -> Option<EngineError> {
        let is_tcp = self.run.plan().transport == Transport::Tcp;
        if !is_tcp || !matches!(why, EngineError::Refused { .. }) {
            return None;
        }
        let own = async {
            while !self.run.has_ended() {
                let seen = self.run.next().await;
                if let Err(own) = self.seen(seen, listener) {
                    return Some(own);
                }
            }
            None
        };
        let own = tokio::select! {
            own = tokio::time::timeout(REASON_TIMEOUT, own) => own.ok().flatten(),
            () = interrupt.raised() => None,
        };
        own.filter(|own| !matches!(own, EngineError::BrokenOff(_)))
    }

    /// Ends the payload early, because of `why`: what was counted so far stands.
    pub(super) async fn cut_short(&mut self, why: EngineError) {
        let by_peer = matches!(why, EngineError::BrokenOff(_));
        // The reset of a flow overtakes the peer's reason for it.
        let words = if by_peer && self.hears { self.client.refusal().await } else { None };
        let not_permitted = why.not_permitted();
        let after = Seconds(self.kept.near().last().map_or(0.0, |last| last.at_s));
        let why = words.unwrap_or(why);
        let why = format!("cut short after {after}: {why}");
        self.incomplete.get_or_insert(Incomplete { why, not_permitted });
        self.part();
    }

    /// The far end's report is lost, because of `why`.
    pub(super) fn lose_report(&mut self, why: &str) {
        if self.far_report.is_none() {
            let why = format!("{}: no report: {why}", self.client.target);
            self.incomplete.get_or_insert(Incomplete { why, not_permitted: false });
        }
        self.part();
    }

    /// Stops listening to the far end. The next measurement begins another conversation.
    fn part(&mut self) {
        self.hears = false;
        self.run.forsake_far_end();
        if !self.client.conversation.is_over() {
            self.client.conversation.feed(Input::Leave("the measurement is over".into()));
        }
    }

    /// Whether any payload was counted, so that there is something to keep.
    pub(super) fn has_measured(&self) -> bool {
        has_counted(self.kept.near()) || has_counted(self.kept.far())
    }

    /// Fails if a source of this end gave nothing, as a pipe does that nobody writes to.
    pub fn check_source(&self) -> Result<(), EngineError> {
        let plan = self.run.plan();
        let storage = &plan.storage;
        let sends = plan.direction.senders().contains(&EndName::Near);
        let Some(source) = storage.source.as_ref().filter(|_| sends) else { return Ok(()) };
        let headers = u64::from(storage.header_bytes) * u64::from(plan.flows);
        if self.kept.near().last().is_none_or(|last| last.sent_bytes > headers) {
            return Ok(());
        }
        let name = source.name();
        Err(EngineError::Flow(format!("{name} gave no data: there is nothing to measure")))
    }

    /// What both ends saw. The far end learns that this end is done.
    pub(super) fn into_measurement(
        self,
        after: Snapshot,
        listener: &mut Listener<'_>,
    ) -> Measurement {
        let far_reports = match &self.far_report {
            Some(report) => report.value().is_some(),
            None => has_counted(self.kept.far()) && !self.kept.is_far_silent(),
        };
        let kept = self.kept.close(far_reports, listener);
        let plan = self.run.plan().clone();
        let near = self.run.into_end(after, kept.near);
        let far = match (self.far_report, &self.incomplete) {
            (Some(report), _) => report.map(|end| End { samples: kept.far, ..end }),
            (None, Some(_)) => unreported(&self.client.peer, kept.far, &near),
            (None, None) => Known::missing(UNREPORTED),
        };
        if self.hears {
            // The far end needs to know that this end is done, not what it saw: short enough for a path that lets no
            // full-sized packet through.
            let done = End::unobserved(near.host.clone());
            self.client.conversation.feed(Input::Report(Known::Value(Box::new(done))));
        }
        let doubts = self.incomplete.iter().map(|incomplete| incomplete.why.clone());
        Measurement {
            plan,
            doubts: doubts.chain(self.doubts).collect(),
            near: Arc::new(near),
            far: far.map(Arc::new),
            far_settings: None,
            connections: self.connections,
            far_totals: self.reported.into_totals(),
            intervals: kept.intervals,
            thinned: kept.thinned,
            steady_samples: kept.steady_samples,
            latency: None,
            far_capture: self.far_capture,
            fetches: None,
            clocks: Clocks::missing("they were not compared"),
            incomplete: self.incomplete,
        }
    }
}

/// A far end that reported its counts while payload moved, but nothing else.
fn unreported(host: &Host, samples: Vec<Sample>, near: &End) -> Known<End> {
    if !has_counted(&samples) {
        return Known::missing(UNREPORTED);
    }
    let mut unknown = Snapshot::default();
    let names = near.before.facts.keys().chain(near.before.missing.keys());
    for area in names.filter_map(|name| name.split('.').next()) {
        unknown.lacks(area, UNREPORTED);
    }
    let (before, after) = (unknown.clone(), unknown);
    Known::Value(End { before, after, samples, ..End::unobserved(host.clone()) })
}

/// Whether there are enough samples to measure with, and payload in them.
fn has_counted(samples: &[Sample]) -> bool {
    let moved = |last: &Sample| last.sent_bytes > 0 || last.received_bytes > 0;
    samples.len() > 1 && samples.last().is_some_and(moved)
}
