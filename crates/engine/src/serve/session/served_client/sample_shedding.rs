//! Which samples are sent to the client while the path to it is slow.

use goodput_model::{Plan, Sample};

/// With this many bytes waiting for the client, samples go without their details: an earlier sample has not left.
const SLOW_BYTES: usize = 8 * 1024;

/// With this many bytes waiting, samples are dropped: the counters of the next one include theirs.
const STUCK_BYTES: usize = 64 * 1024;

/// How often totals are sent where both ends keep quiet, seconds: a sender of datagrams stops without signs of life
/// (docs/protocol.md).
const SHOW_LIFE_EVERY_S: f64 = 5.0;

/// Which part of each sample to send.
#[derive(Debug, Default)]
pub(super) struct SampleShedding {
    /// Whether something was left out of the newest sample.
    lacks: bool,
    /// When the last sample was sent, if both ends keep quiet while payload moves.
    quiet_since_s: Option<f64>,
}

impl SampleShedding {
    /// For a measurement of this plan.
    pub(super) fn of(plan: &Plan) -> Self {
        Self { lacks: false, quiet_since_s: plan.keeps_quiet().then_some(0.0) }
    }

    /// The part of `sample` to send to the client, while `waiting` bytes have not left yet. The counts between two
    /// detailed samples are worth no queue.
    pub(super) fn next(&mut self, sample: Box<Sample>, waiting: usize) -> Option<Box<Sample>> {
        if let Some(since_s) = &mut self.quiet_since_s {
            self.lacks = true;
            let is_due = sample.at_s - *since_s >= SHOW_LIFE_EVERY_S;
            *since_s = if is_due { sample.at_s } else { *since_s };
            return is_due.then(|| Box::new(totals(&sample)));
        }
        let is_between = sample.flows.is_empty() && waiting > 0;
        self.lacks = waiting >= SLOW_BYTES || is_between;
        match waiting {
            _ if is_between => None,
            ..SLOW_BYTES => Some(sample),
            SLOW_BYTES..STUCK_BYTES => Some(Box::new(totals(&sample))),
            STUCK_BYTES.. => None,
        }
    }

    /// The samples that still must be sent when the flows have ended with `last`: first the totals, which are small,
    /// then the details.
    pub(super) fn last(&self, last: &Sample) -> Vec<Sample> {
        if !self.lacks {
            return Vec::new();
        }
        vec![totals(last), last.clone()]
    }
}

fn totals(sample: &Sample) -> Sample {
    let Sample { at_s, sent_bytes, received_bytes, .. } = *sample;
    Sample { at_s, sent_bytes, received_bytes, flows: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::{FlowSample, Role};

    fn sample(at_s: f64) -> Box<Sample> {
        let flow = FlowSample::unreported(0, Role::Receiver, 7, "not looked at");
        Box::new(Sample { at_s, sent_bytes: 0, received_bytes: 7, flows: vec![flow] })
    }

    #[test]
    fn a_client_on_a_fast_way_gets_everything_once() {
        let mut shedding = SampleShedding::default();
        assert_eq!(shedding.next(sample(0.1), 0), Some(sample(0.1)));
        assert_eq!(shedding.last(&sample(0.2)), []);
    }

    #[test]
    fn counts_between_details_are_not_sent_behind_others() {
        let between = || Box::new(totals(&sample(0.125)));
        let mut shedding = SampleShedding::default();
        assert_eq!(shedding.next(between(), 0), Some(between()));
        assert_eq!((shedding.next(between(), 1), shedding.last(&between()).len()), (None, 2));
    }

    #[test]
    fn what_keeps_quiet_is_reported_afterwards() {
        let mut shedding = SampleShedding::of(&Plan { arrivals: true, ..Plan::standard() });
        assert_eq!(shedding.next(sample(0.1), 0), None);
        let life = shedding.next(sample(5.0), 0).map(|sample| sample.flows.len());
        assert_eq!((life, shedding.next(sample(5.1), 0)), (Some(0), None));
        let last: Vec<_> = shedding.last(&sample(0.2)).iter().map(|s| s.flows.len()).collect();
        assert_eq!(last, [0, 1]);
    }

    /// Ten samples a second of a megabyte each, on a path that carries 12 500 bytes a second.
    #[test]
    fn on_a_slow_way_what_waits_is_bounded_and_the_last_counts_are_reported() {
        let (mut shedding, mut waiting, mut most) = (SampleShedding::default(), 0usize, 0);
        for tick in 1..=1000 {
            let sent = shedding.next(sample(f64::from(tick) / 10.0), waiting);
            let bytes = sent.map_or(0, |sent| if sent.flows.is_empty() { 150 } else { 1 << 20 });
            waiting = (waiting + bytes).saturating_sub(1250);
            most = most.max(waiting);
        }
        assert!(most <= (1 << 20) + STUCK_BYTES, "{most}");
        let last = shedding.last(&sample(100.1));
        assert_eq!((last[0].received_bytes, last[0].flows.len()), (7, 0), "totals first");
        assert_eq!(last[1], *sample(100.1));
    }
}
