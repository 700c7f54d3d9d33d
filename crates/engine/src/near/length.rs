//! When a measurement is long enough.

use goodput_experiment::steady::is_precise_enough;
use goodput_model::{Bytes, EndName, Length, Sample};

use super::NearRun;
use crate::result::acknowledged::acknowledged;
use crate::result::measurement::measure;

impl NearRun<'_> {
    pub(super) fn is_long_enough(&self) -> bool {
        let ended = self.near_ended || self.far_report.is_some();
        match self.plan.length {
            Length::Seconds(_) => ended,
            // Who is told of the end has no end of its own.
            Length::Bytes(all) if !self.client.peer.is_goodput() => ended || self.has_moved(all),
            // Both ends empty their queues by themselves; stopping would cut them off.
            Length::Source if !self.client.peer.is_goodput() => ended,
            Length::Bytes(_) | Length::Source => self.near_ended && self.far_report.is_some(),
            Length::Auto { .. } if ended => true,
            Length::Auto { precision_percent, min_s, .. } => {
                let senders = self.plan.direction.senders();
                senders.iter().all(|sender| self.is_known(*sender, min_s, precision_percent))
            }
        }
    }

    /// Whether this end has sent and received `all` bytes, as far as it is to do either.
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
        // Slow start is surely over by then, whenever the far end began.
        let later_s = match sender {
            EndName::Near => -self.starts.earliest_s(),
            EndName::Far => self.starts.latest_s(),
        };
        let omit_s = self.plan.omit_s;
        let long_enough = receiving.last().is_some_and(|last| last.at_s >= min_s + omit_s);
        long_enough
            && measure(sending, receiving, omit_s, later_s)
                .is_some_and(|measured| is_precise_enough(&measured, precision_percent))
    }
}
