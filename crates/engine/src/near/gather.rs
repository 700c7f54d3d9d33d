//! The end of a measurement: collects both ends' observations, as far as they are available.

use std::sync::Arc;
use std::time::Instant;

use goodput_model::{Clocks, End, Host, Known, Sample, Snapshot, Transport};
use goodput_wire::session::Input;

use super::client::REASON_TIMEOUT;
use super::near_run::NearRun;
use super::patience::Patience;
use crate::error::EngineError;
use crate::events::Listener;
use crate::interrupt::Interrupt;
use crate::result::measurement::{Incomplete, Measurement};

/// Why the far end's observations are not known. [`Incomplete`] says once what kept the report away.
const UNREPORTED: &str = "the far end did not report";

impl NearRun<'_> {
    /// Waits until this end's flows have ended, and until the far end has reported or there is no more reason to wait
    /// for its report.
    pub(super) async fn gather(&mut self, interrupt: &Interrupt, listener: &mut Listener<'_>) {
        let was_raised = interrupt.is_raised();
        let mut patience = self.patience(was_raised);
        while !self.run.has_ended() || self.awaits_report() {
            let newest_s = self.kept.far().last().map_or(0.0, |last| last.at_s);
            patience.hear(Instant::now(), self.client.conversation.heard_bytes(), newest_s);
            let waits = self.run.has_ended() && self.awaits_report();
            let ends = patience.ends();
            tokio::select! {
                seen = self.run.next(), if !self.run.has_ended() => {
                    if let Err(why) = self.seen(seen, listener) {
                        self.cut_short(why).await;
                    }
                    patience = self.patience(was_raised);
                }
                action = self.client.next(), if self.hears => {
                    if let Err(why) = action.and_then(|action| self.acted(action, listener)) {
                        match self.own_reason(&why, interrupt, listener).await {
                            Some(own) => self.cut_short(own).await,
                            None => self.lose_report(&without_target(&why)),
                        }
                    }
                }
                () = tokio::time::sleep_until(ends.into()), if waits => {
                    if patience.ends() <= Instant::now() {
                        let waited_s = patience.waited_s(Instant::now());
                        self.lose_report(&format!("no report within {waited_s:.0} s of the end"));
                    }
                }
                () = interrupt.raised(), if waits && !was_raised => {
                    self.lose_report("interrupted while waiting for its report");
                }
            }
        }
    }

    fn patience(&self, hurried: bool) -> Patience {
        match hurried {
            true => Patience::hurried(Instant::now()),
            false => Patience::new(Instant::now(), self.run.plan(), self.kept.near()),
        }
    }

    fn awaits_report(&self) -> bool {
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
        let after_s = self.kept.near().last().map_or(0.0, |last| last.at_s);
        let why = words.unwrap_or(why);
        let why = format!("cut short after {after_s:.1} s: {why}");
        self.incomplete.get_or_insert(Incomplete { why, not_permitted });
        self.part();
    }

    /// The far end's report is lost, because of `why`.
    fn lose_report(&mut self, why: &str) {
        if self.far_report.is_none() {
            let why = format!("{}: no report: {why}", self.client.target);
            self.incomplete.get_or_insert(Incomplete { why, not_permitted: false });
        }
        self.part();
    }

    /// Stops listening to the far end. The next measurement begins another conversation.
    fn part(&mut self) {
        self.hears = false;
        if !self.client.conversation.is_over() {
            self.client.conversation.tell(Input::Leave("the measurement is over".into()));
        }
    }

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
            self.client.conversation.tell(Input::Report(Known::Value(Box::new(done))));
        }
        let doubts = self.incomplete.iter().map(|incomplete| incomplete.why.clone());
        Measurement {
            plan,
            doubts: doubts.chain(self.doubts).collect(),
            near: Arc::new(near),
            far: far.map(Arc::new),
            connections: self.connections,
            far_totals: self.account.into_totals(),
            intervals: kept.intervals,
            thinned: kept.thinned,
            steady_samples: kept.steady_samples,
            latency: None,
            fetches: self.fetches,
            clocks: Clocks::missing("they were not compared"),
            incomplete: self.incomplete,
        }
    }

    /// Whether any payload was counted, so that there is something to keep.
    pub(super) fn has_measured(&self) -> bool {
        has_counted(self.kept.near()) || has_counted(self.kept.far())
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

/// An error of the conversation, for a sentence that already names the target.
fn without_target(error: &EngineError) -> String {
    match error {
        EngineError::Wire { failure, .. } => failure.to_string(),
        EngineError::Refused { why, .. } => format!("refused: {why}"),
        other => other.to_string(),
    }
}

/// Whether there are enough samples to measure with, and payload in them.
fn has_counted(samples: &[Sample]) -> bool {
    let moved = |last: &Sample| last.sent_bytes > 0 || last.received_bytes > 0;
    samples.len() > 1 && samples.last().is_some_and(moved)
}
