//! A far end that sent no report, and went silent while payload was still to move.

use std::fmt;

use goodput_model::{Sample, Seconds};

use crate::run::cadence::SAMPLE_INTERVAL;

/// How many of its longest steps a far end may lag when the senders stop: one for its next sample, one for the path of
/// that sample. The short steps of a short run don't make the path shorter.
const MAX_STEPS_BEHIND: f64 = 2.0;

/// The far end's reports end before the measurement does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Silence {
    /// When its reported counts end, seconds of the near end's samples.
    pub from_s: f64,
    /// When the senders stopped or were to stop.
    pub to_s: f64,
}

impl Silence {
    /// The silence of a far end whose samples begin `later_s` after the `near` end's, both until the senders were to
    /// stop. `None` if its lag is explained by its own steps, or if it reported nothing at all.
    pub fn of(near: &[Sample], far: &[Sample], later_s: f64) -> Option<Self> {
        let (to_s, from_s) = (near.last()?.at_s, far.last()?.at_s + later_s);
        let steps = far.windows(2).map(|pair| pair[1].at_s - pair[0].at_s);
        let longest = steps.reduce(f64::max)?.max(SAMPLE_INTERVAL.as_secs_f64());
        (to_s - from_s > MAX_STEPS_BEHIND * longest).then_some(Self { from_s, to_s })
    }
}

impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, to) = (Seconds(self.from_s), Seconds(self.to_s));
        write!(f, "the far end fell silent after {from} of {to}")
    }
}

#[cfg(test)]
pub(in crate::result) mod tests {
    use std::sync::Arc;

    use goodput_model::{End, EndName, FlowSample, Host, Known, Length, Plan, Role, TcpInfo};

    use super::*;
    use crate::result::measurement::{Incomplete, Measurement};

    /// Tenths of a second up to the `last`.
    fn samples(last: u32) -> Vec<Sample> {
        let sample = |at_s| Sample { at_s, sent_bytes: 0, received_bytes: 0, flows: Vec::new() };
        (0..=last).map(|tenth| sample(f64::from(tenth) / 10.0)).collect()
    }

    #[test]
    fn a_sample_or_two_on_their_way_are_no_silence() {
        let silence = |far: &[Sample], later_s| Silence::of(&samples(50), far, later_s);
        assert_eq!(silence(&samples(49), 0.0), None);
        assert_eq!(silence(&samples(30), 1.95), None, "it began later");
        let dead = silence(&samples(17), 0.0).expect("3.3 s are more than two steps");
        assert_eq!((dead.from_s, dead.to_s), (1.7, 5.0));
        assert_eq!(dead.to_string(), "the far end fell silent after 1.70 s of 5 s");
        assert_eq!(silence(&[], 0.0), None, "it never reported anything");
    }

    /// A measurement of this many tenths of a second, of which the far end has reported `far`.
    pub fn measurement(tenths: u64, far: u64, plan: Plan) -> Measurement {
        let samples = |tenths: u64| {
            let count = |sample: Sample| {
                let bytes = (sample.at_s * 10_000.0).round() as u64;
                Sample { sent_bytes: bytes, received_bytes: bytes, ..sample }
            };
            samples(tenths as u32).into_iter().map(count).collect::<Vec<_>>()
        };
        let end =
            |tenths| End { samples: samples(tenths), ..End::unobserved(Host::foreign("made up")) };
        Measurement::made_up(plan, end(tenths), Known::Value(end(far).into()))
    }

    #[test]
    fn a_far_end_that_fell_silent_is_no_evidence_of_the_whole() {
        let lost = Some(Incomplete { why: "no report".into(), not_permitted: false });
        let plan = Plan { length: Length::Seconds(5.0), ..Plan::standard() };
        let dead = |incomplete| Measurement { incomplete, ..measurement(50, 17, plan.clone()) };
        let (whole, part) = (dead(None), dead(lost));
        assert_eq!((whole.silence(), whole.partly_counted(EndName::Near)), (None, None));
        assert!(whole.evidence(EndName::Near).is_some());
        // These samples lack TCP's acknowledgements: only the reported time is known.
        let silence = part.partly_counted(EndName::Near).expect("it reported 1.7 s of 5 s");
        assert_eq!((silence.from_s, silence.to_s), (1.7, 5.0));
        assert!(part.evidence(EndName::Near).is_none(), "no verdict on a third of the time");
        let measured = part.measured(EndName::Near).expect("what was reported");
        assert_eq!((measured.from_s, measured.to_s), (0.0, 1.7));
        // This end counted all the time what it received.
        let evidence = part.evidence(EndName::Far).expect("it is counted here");
        assert_eq!(evidence.measured.to_s, 5.0);
        assert!(evidence.far.value().is_none());
    }

    /// 1000 bytes in each tenth of a second until the path dies, after 2 s.
    #[test]
    fn what_tcp_acknowledged_counts_all_the_time() {
        let plan = Plan { length: Length::Seconds(5.0), ..Plan::standard() };
        let mut part = measurement(50, 17, plan);
        let mut near = End::clone(&part.near);
        for (tenth, sample) in near.samples.iter_mut().enumerate() {
            let acked_bytes = Some(tenth.min(20) as u64 * 1000);
            let tcp = Known::Value(TcpInfo { acked_bytes, ..TcpInfo::default() });
            let flow = FlowSample::unreported(0, Role::Sender, sample.sent_bytes, "not looked at");
            sample.flows = vec![FlowSample { tcp, ..flow }];
        }
        part.near = Arc::new(near);
        part.incomplete = Some(Incomplete { why: "no report".into(), not_permitted: false });
        assert!(part.silence().is_some() && part.partly_counted(EndName::Near).is_none());
        let evidence = part.evidence(EndName::Near).expect("what arrived is known");
        assert!(evidence.far.value().is_none());
        let measured = evidence.measured;
        assert_eq!((measured.from_s, measured.to_s), (0.0, 5.0));
        assert!((measured.goodput.0 - 32_000.0).abs() < 1e-6, "{measured:?}");
    }
}
