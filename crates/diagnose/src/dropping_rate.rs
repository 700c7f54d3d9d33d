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
    use goodput_model::{Confidence, Evidence};
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
        let chance = crowd(|rng, came| (0..came).map(|_| rng.random_bool(0.7)).collect());
        // The windows never vary, so no limit of what is in flight could have shown.
        assert_eq!(said(&chance), [None, None, Some(Confidence::Possible)]);
    }

    /// A program that hands over as much each time gets as much through, whatever is lost by chance and sent again.
    #[test]
    fn what_a_program_paces_is_no_rate_of_the_path() {
        assert!(DroppingRate::of(&View::new(&crowd(as_many))).is_some());
        assert_eq!(DroppingRate::of(&View::new(&paced_crowd(as_many))), None);
    }
}
