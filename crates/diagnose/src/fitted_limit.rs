//! A limit that explains the losses clearly better than chance does, by the loss model.

use goodput_model::{Confidence, LossModel};

use crate::loss::{chance_behind, loss};
use crate::view::View;

/// Difference of the information criterion from which evidence is very strong (Kass and Raftery 1995, "Bayes Factors",
/// section 3.2).
const MIN_VERY_STRONG_DIFFERENCE: f64 = 10.0;

/// The limit, and how clearly it does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FittedLimit {
    /// Which.
    pub model: LossModel,
    /// How far the best explanation by chance lies behind, in the information criterion.
    pub chance_behind: f64,
}

impl FittedLimit {
    /// The limit of what is in flight, of a queue or of a bucket; `None` if something else explains the losses, or nothing
    /// clearly.
    pub fn of(view: &View) -> Option<Self> {
        // One that models the path has no window that losses cut.
        if view.backs_off_at_loss() == Ok(false) {
            return None;
        }
        let loss = loss(view).ok()?;
        let model = *loss.explanation.value()?;
        let is_limit = match model {
            LossModel::Flight | LossModel::SharedFlight | LossModel::Queue | LossModel::Bucket => {
                true
            }
            // That a rate limits does not say what drops: chance before a full queue leaves the same.
            LossModel::Random | LossModel::Runs | LossModel::Rate | LossModel::Reordering => false,
        };
        let chance_behind = chance_behind(loss)?;
        is_limit.then_some(Self { model, chance_behind })
    }

    /// Whether packets waited before they were lost. If not, it is a bucket, or a queue too short to be seen.
    pub fn is_queue(&self) -> bool {
        self.model == LossModel::Queue
    }

    /// How sure the losses alone make it.
    pub fn confidence(&self) -> Confidence {
        match self.chance_behind >= MIN_VERY_STRONG_DIFFERENCE {
            true => Confidence::Likely,
            false => Confidence::Possible,
        }
    }

    /// For a person.
    pub fn text(&self) -> String {
        format!("{} explains the losses clearly better than chance", self.model)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn very_strong_evidence_is_likely() {
        let limit = |chance_behind| FittedLimit { model: LossModel::Flight, chance_behind };
        assert_eq!(limit(9.9).confidence(), Confidence::Possible);
        assert_eq!(limit(10.0).confidence(), Confidence::Likely);
        assert!(!limit(10.0).is_queue());
    }
}
