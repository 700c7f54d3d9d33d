//! The token bucket that explains the losses of the whole run, if one does.

use goodput_model::LossModel;

use crate::finding::rate;
use crate::loss::{chance_behind, loss};
use crate::view::View;

/// A bucket that fills at a rate, and drops what finds no tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TokenBucket {
    /// What passes, bits of TCP payload per second, and what it may be at least and at most.
    pub rate: (f64, f64, f64),
    /// Tokens that the bucket holds, segments, and what they may be at least and at most.
    pub depth_segments: (f64, f64, f64),
    /// How far the best explanation by chance lies behind, in the information criterion.
    pub chance_behind: f64,
}

impl TokenBucket {
    /// The bucket of the loss model; `None` if it explains the losses otherwise or not at all.
    pub fn of(view: &View) -> Option<Self> {
        let loss = loss(view).ok()?;
        let chance_behind = chance_behind(loss)?;
        let bits = 8.0 * view.sender.mss_bytes().ok()?;
        let best = loss.candidates.first()?;
        if loss.explanation.value() != Some(&LossModel::Bucket) || best.model != LossModel::Bucket {
            return None;
        }
        let of = |name: &str, unit: f64| {
            let one = best.parameters.iter().find(|parameter| parameter.name == name)?;
            Some((unit * one.least, unit * one.value, unit * one.most))
        };
        Some(Self {
            rate: of("rate_segments_per_s", bits)?,
            depth_segments: of("depth_segments", 1.0)?,
            chance_behind,
        })
    }

    /// For a person.
    pub fn text(&self) -> String {
        let ((slowest, is, fastest), (least, holds, most)) = (self.rate, self.depth_segments);
        format!(
            "a token bucket of {holds:.0} segments ({least:.0} to {most:.0}), filled at {} ({} to {}), explains the losses \
             clearly better than a full queue or chance",
            rate(is),
            rate(slowest),
            rate(fastest)
        )
    }
}
