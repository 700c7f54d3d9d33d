//! What a measurement shows of one direction: how much arrived, and everything that the rules inspect.

use goodput_model::{EndName, Evidence, Known, Measured};

use crate::result::far_totals;
use crate::result::measurement::{Measurement, measure, whole};

impl Measurement {
    /// Goodput of what `sender` sent, from the receiver's count after slow start. If the receiver reports nothing
    /// during the run or falls silent: from what its TCP acknowledged, or else from what it reported afterwards, or
    /// before it fell silent. `None` if none of these is there.
    pub fn measured(&self, sender: EndName) -> Option<Measured> {
        self.counted(sender).map(|(_, measured)| measured)
    }

    /// The same, with the end that counted it: the receiver, or the sender, whose TCP learned what arrived.
    pub fn counted(&self, sender: EndName) -> Option<(EndName, Measured)> {
        if self.is_without_payload(sender) {
            return None;
        }
        let receiver = sender.other();
        let sent = self.steady(sender);
        let omit_s = self.plan.omit_s;
        // What has arrived waits for the disk until the end: this time counts.
        let to_disk = self.plan.storage.sink.as_ref().is_some_and(|sink| sink.fsync);
        let to_disk = to_disk && omit_s == 0.0 && self.steady_samples.is_none();
        let by_receiver =
            || measure(sent, self.steady(sender.other()), omit_s, self.sender_later_s(sender));
        let tells_all = sender == EndName::Far || self.silence().is_none();
        let by = |end: EndName| move |measured| (end, measured);
        match self.end(receiver).filter(|_| tells_all) {
            Some(seen) if to_disk => whole(&seen.samples).map(by(receiver)),
            Some(_) => by_receiver().map(by(receiver)),
            None => self
                .acknowledged(sender)
                .map(by(sender))
                .or_else(|| far_totals::measured(self).or_else(by_receiver).map(by(receiver))),
        }
    }

    /// Whether both ends saw that `sender` sent nothing and nothing arrived. Then nothing was measured, rather than a
    /// rate of zero, as after an interrupt before the flows began.
    pub(super) fn is_without_payload(&self, sender: EndName) -> bool {
        let sent = self.steady(sender).last();
        let received = self.steady(sender.other()).last();
        sent.is_some_and(|last| last.sent_bytes == 0)
            && received.is_some_and(|last| last.received_bytes == 0)
    }

    /// One direction as the rules see it; `None` if nothing could be counted, or only a part of the time. A far end
    /// that fell silent gives none: its part of the time is not what limited the whole.
    pub fn evidence(&self, sender: EndName) -> Option<Evidence> {
        if self.partly_counted(sender).is_some() {
            return None;
        }
        let far = match self.silence() {
            Some(silence) => Known::missing(silence.to_string()),
            None => self.far.clone(),
        };
        Some(Evidence {
            plan: self.plan.clone(),
            sender_end: sender,
            near: Known::Value(self.near.clone()),
            far,
            reported_loss_share: far_totals::lost_share(self, sender),
            latency: self.latency.clone(),
            fetches: self.fetches.clone(),
            clocks: self.clocks.clone(),
            measured: self.measured(sender)?,
        })
    }
}
