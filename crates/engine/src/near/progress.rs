//! How far a measurement has got, and whether that is enough.

use goodput_experiment::steady::is_precise_enough;
use goodput_model::{Bytes, EndName, Length, Plan, Sample};
use goodput_wire::far_end::FarEnd;

use super::far_start::FarStart;
use super::kept_samples::KeptSamples;
use crate::result::acknowledged::acknowledged;
use crate::result::window::measure;

/// What the near end knows of both ends while payload moves.
pub struct Progress<'a> {
    /// What was agreed.
    pub plan: &'a Plan,
    /// What the far end does besides moving payload.
    pub far_end: &'a FarEnd,
    /// The samples of both ends so far.
    pub kept: &'a KeptSamples,
    /// When both ends began, as far as known.
    pub far_start: &'a FarStart,
    /// Whether the flows have reached their time limit.
    pub limit_reached: bool,
    /// Whether every flow of this end has ended.
    pub near_ended: bool,
    /// Whether the far end has reported, so that its flows have ended.
    pub far_reported: bool,
}

impl Progress<'_> {
    /// Whether the flows have moved what the plan wants, or may not run any longer.
    pub fn is_enough(&self) -> bool {
        self.limit_reached || self.is_long_enough()
    }

    fn is_long_enough(&self) -> bool {
        let ended = self.has_an_end_ended();
        let by_plan = self.far_end.ends_as_planned;
        match self.plan.length {
            Length::Seconds(_) => ended,
            // An end that learns of the end from its peer does not decide it.
            Length::Bytes(all) if !by_plan => ended || self.has_moved(all),
            // Both ends empty their queues on their own; stopping would cut them off.
            Length::Source if !by_plan => ended,
            Length::Bytes(_) | Length::Source => self.near_ended && self.far_reported,
            Length::Auto { .. } if ended => true,
            Length::Auto { precision_percent, min_s, .. } => {
                let senders = self.plan.direction.senders();
                senders.iter().all(|sender| self.is_known(*sender, min_s, precision_percent))
            }
        }
    }

    /// Whether this end has sent and received `all` bytes, if it has to do either.
    fn has_moved(&self, all: Bytes) -> bool {
        self.kept.near().last().is_some_and(|last| {
            self.plan.direction.senders().iter().all(|sender| match sender {
                EndName::Near => last.sent_bytes >= all.0,
                EndName::Far => last.received_bytes >= all.0,
            })
        })
    }

    /// Whether the goodput of what `sender` sends is known well enough.
    fn is_known(&self, sender: EndName, min_s: f64, precision_percent: f64) -> bool {
        let instead;
        let (sending, receiving): (&[Sample], &[Sample]) = match sender {
            EndName::Near if self.kept.far().is_empty() => {
                instead = acknowledged(self.kept.near());
                (self.kept.near(), &instead)
            }
            EndName::Near => (self.kept.near(), self.kept.far()),
            EndName::Far => (self.kept.far(), self.kept.near()),
        };
        // Slow start is certainly over by then, whenever the far end began.
        let later_s = match sender {
            EndName::Near => -self.far_start.earliest_s(),
            EndName::Far => self.far_start.latest_s(),
        };
        let omit_s = self.plan.omit_s;
        let long_enough = receiving.last().is_some_and(|last| last.at_s >= min_s + omit_s);
        long_enough
            && measure(sending, receiving, omit_s, later_s)
                .is_some_and(|measured| is_precise_enough(&measured, precision_percent))
    }

    /// Whether the flows of either end have ended.
    pub fn has_an_end_ended(&self) -> bool {
        self.near_ended || self.far_reported
    }

    /// Whether the far end has ended everything before payload moved: a protocol that can't express a refusal closes
    /// its connections, which looks like the end of a test.
    pub fn ended_before_it_moved(&self) -> bool {
        // An empty source of this end is reported as such.
        let sends = self.plan.direction.senders().contains(&EndName::Near);
        let own_source = sends && self.plan.storage.source.is_some();
        let moved = |last: &Sample| last.sent_bytes > 0 || last.received_bytes > 0;
        let any =
            [self.kept.near(), self.kept.far()].iter().any(|kept| kept.last().is_some_and(moved));
        self.has_an_end_ended() && !self.limit_reached && !own_source && !any
    }
}
