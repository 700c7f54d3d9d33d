//! Packets that come late: TCP sends them again, and the receiver reports that it had them already.

use goodput_model::{LossCandidate, LossModel, LossParameter};

use super::series::Flow;
use crate::fitted::Fitted;

/// By how much one explanation must be ahead of the other, nats: 50 to 1.
const MIN_AHEAD_NATS: f64 = 4.0;
/// From here to both sides a share of a count of segments holds with 90 %, in standard deviations.
const DEVIATIONS_OF_90_PERCENT: f64 = 1.645;

/// What became of the segments that were sent again.
#[derive(Debug, Clone, Copy)]
pub struct Order {
    sent: f64,
    lost: f64,
    repeated: f64,
    needless: f64,
    late: f64,
}

impl Order {
    /// Of all flows together.
    pub fn of(flows: &[Flow]) -> Self {
        let sum = |read: fn(&Flow) -> f64| flows.iter().map(read).sum::<f64>();
        Self {
            sent: sum(Flow::sent),
            lost: sum(Flow::lost),
            repeated: sum(|flow| flow.repeated),
            needless: sum(|flow| flow.needless),
            late: sum(|flow| flow.late),
        }
    }

    /// How much likelier it is that packets came late than that they were lost, nats; one report of a segment that came
    /// twice gives about 3.8, and a repeated segment without one takes about 2.3.
    fn ahead_nats(self) -> f64 {
        let needless = self.needless.min(self.repeated);
        // Not all late ones are reported, and of those after losses few are needless.
        let (late, lost) = (Fitted::NeedlessIfLate.value(), Fitted::NeedlessIfLost.value());
        needless * (late / lost).ln()
            - (self.repeated - needless) * ((1.0 - lost) / (1.0 - late)).ln()
    }

    /// Whether packets came late, by what was sent again.
    fn repeats_the_late(self) -> bool {
        self.ahead_nats() >= MIN_AHEAD_NATS
    }

    /// Whether late packets explain more of what was sent again than lost ones.
    pub fn is_all(self) -> bool {
        self.repeats_the_late() && self.lost < self.needless
    }

    /// How many came late, if any did: those that TCP saw come before it sent them again, and those that were there when
    /// it did.
    pub fn candidate(self) -> Option<LossCandidate> {
        let late = self.late.max(self.needless);
        if !self.repeats_the_late() && self.late <= self.lost || self.sent <= 0.0 || late <= 0.0 {
            return None;
        }
        let (share, off) = (late / self.sent, DEVIATIONS_OF_90_PERCENT * late.sqrt() / self.sent);
        let parameter = |name: &str, value: f64, least: f64, most: f64| LossParameter {
            name: name.into(),
            value,
            least,
            most,
        };
        Some(LossCandidate {
            model: LossModel::Reordering,
            behind: 0.0,
            parameters: vec![parameter("late_share", share, (share - off).max(0.0), share + off)],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(lost: f64, repeated: f64, needless: f64) -> Order {
        Order { sent: 1e5, lost, repeated, needless, late: needless }
    }

    #[test]
    fn what_the_receiver_had_already_was_late() {
        assert!(order(0.0, 100.0, 90.0).is_all());
        assert!(order(0.0, 2.0, 2.0).is_all());
        assert!(!order(0.0, 1.0, 1.0).is_all());
        assert!(!order(90.0, 100.0, 10.0).is_all());
        // More came late than were lost.
        assert!(order(30.0, 100.0, 70.0).is_all());
        assert!(order(80.0, 100.0, 20.0).candidate().is_none());
    }

    #[test]
    fn a_late_segment_outweighs_a_silent_one() {
        let (late, lost) = (Fitted::NeedlessIfLate.value(), Fitted::NeedlessIfLost.value());
        let (reported, silent) = ((late / lost).ln(), ((1.0 - late) / (1.0 - lost)).ln());
        assert!((order(0.0, 1.0, 1.0).ahead_nats() - reported).abs() < 1e-9);
        assert!((order(0.0, 1.0, 0.0).ahead_nats() - silent).abs() < 1e-9);
        assert!(reported > -silent && silent < 0.0, "{reported} {silent}");
    }
}
