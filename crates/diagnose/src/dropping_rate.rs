//! The rate of a path that drops what exceeds it, as all flows together show it.

use goodput_model::LossModel;

use crate::loss::{chance_behind, loss};
use crate::view::View;

/// A rate that passes, whatever is sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DroppingRate {
    /// Segments that pass each second, all flows together.
    pub segments_per_s: f64,
    /// How far the best explanation by chance lies behind, in the information criterion.
    pub chance_behind: f64,
}

impl DroppingRate {
    /// The rate of the loss model; `None` if it explains the losses otherwise or not at all.
    pub fn of(view: &View) -> Option<Self> {
        let loss = loss(view).ok()?;
        let best = loss.candidates.first()?;
        if loss.explanation.value() != Some(&LossModel::Rate) || best.model != LossModel::Rate {
            return None;
        }
        let rate = best.parameters.iter().find(|one| one.name == "rate_segments_per_s")?;
        Some(Self { segments_per_s: rate.value, chance_behind: chance_behind(loss)? })
    }

    /// For a person.
    pub fn text(self) -> String {
        format!(
            "{:.0} segments a second passed however many were sent, more steadily than random loss would leave them",
            self.segments_per_s
        )
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use goodput_model::{Confidence, Evidence, Known};
    use rand::RngExt;
    use rand::seq::SliceRandom;

    use rand::rngs::Xoshiro256PlusPlus;

    use super::*;
    use crate::rules;
    use crate::testing::{crowd, paced_crowd};

    /// Of all that come, 113 pass.
    fn as_many(rng: &mut Xoshiro256PlusPlus, came: usize) -> Vec<bool> {
        let mut passes = vec![true; 113];
        passes.resize(came, false);
        passes.shuffle(rng);
        passes
    }

    /// What these rules say: that it is the path's rate, that something drops what exceeds it, that packets get lost.
    fn said(evidence: &Evidence) -> [Option<Confidence>; 3] {
        let view = View::new(evidence);
        let rules = ["path-rate", "policer", "path-loss"].map(|id| rules::find(id).unwrap());
        rules.map(|rule| (rule.check)(&view).unwrap().map(|found| found.confidence))
    }

    /// Each flow loses some of its few segments. Of all, as many pass each time, or as many as chance lets.
    #[test]
    fn a_crowd_of_which_as_many_segments_pass_each_time_is_at_the_path_s_rate() {
        let likely = Some(Confidence::Likely);
        assert_eq!(said(&crowd(as_many)), [likely, likely, None]);
        // The windows never vary, but of all together the same share passes, however many come.
        assert_eq!(said(&crowd(by_chance)), [None, None, likely]);
    }

    fn by_chance(rng: &mut Xoshiro256PlusPlus, came: usize) -> Vec<bool> {
        (0..came).map(|_| rng.random_bool(0.7)).collect()
    }

    /// A congestion control that does not back off keeps a queue, whatever is lost behind it.
    #[test]
    fn a_queue_that_a_crowd_keeps_does_not_hide_what_chance_takes() {
        let queued = |passes: fn(&mut Xoshiro256PlusPlus, usize) -> Vec<bool>| {
            let mut evidence = crowd(passes);
            let Known::Value(near) = &mut evidence.near else { panic!("the case has both ends") };
            let samples = Arc::make_mut(near).samples.iter_mut();
            for flow in samples.flat_map(|sample| &mut sample.flows) {
                let Known::Value(tcp) = &mut flow.tcp else { panic!("it is TCP") };
                tcp.rtt_us = Some(400_000);
            }
            said(&evidence)[2]
        };
        assert_eq!(queued(by_chance), Some(Confidence::Likely));
        assert_eq!(queued(as_many), None);
    }

    /// A reader gets nothing of a flow while one segment is missing, and then all that came after it.
    #[test]
    fn what_readers_get_swings_and_what_passes_does_not() {
        let swings = |passes: fn(&mut Xoshiro256PlusPlus, usize) -> Vec<bool>| {
            let mut evidence = crowd(passes);
            let Known::Value(far) = &mut evidence.far else { panic!("the case has both ends") };
            for (number, sample) in Arc::make_mut(far).samples.iter_mut().enumerate() {
                let waits = number / 5 % 2 == 1;
                sample.received_bytes -= if waits { 113 * 1448 * 2 } else { 0 };
            }
            assert!(View::new(&evidence).receiver.plateau().unwrap().spread > 0.15);
            said(&evidence)[0]
        };
        assert_eq!(swings(as_many), Some(Confidence::Likely));
        assert_eq!(swings(by_chance), None);
    }

    /// A program that hands over as much each time gets as much through, whatever is lost by chance and sent again.
    #[test]
    fn what_a_program_paces_is_no_rate_of_the_path() {
        assert!(DroppingRate::of(&View::new(&crowd(as_many))).is_some());
        assert_eq!(DroppingRate::of(&View::new(&paced_crowd(as_many))), None);
    }
}
