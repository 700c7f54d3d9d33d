//! The line of an effect, for any quantity that was compared.

use goodput_model::{Effect, Judgement};

use super::style;

/// The meaning of an effect, and its size.
pub(super) fn with_interval(words: &str, effect: &Effect) -> String {
    let adjusted = if effect.adjusted_for.is_empty() { "" } else { ", adjusted" };
    format!(
        "{words}: {:+.1} % ({:.1} % interval {:+.1} to {:+.1} %, n = {} pairs{adjusted})",
        effect.percent,
        effect.confidence_percent,
        effect.low_percent,
        effect.high_percent,
        effect.n
    )
}

/// The outcome, with the given words for good and bad.
pub(super) fn word(effect: &Effect, [good, bad]: [&str; 2]) -> String {
    named(effect.judgement, [good, bad])
}

/// A judgement, with the given words for good and bad.
pub(super) fn named(judgement: Judgement, [good, bad]: [&str; 2]) -> String {
    match judgement {
        Judgement::Better => style::good(good),
        Judgement::Worse => style::bad(bad),
        Judgement::BetterPerhapsBelowThreshold => perhaps(good),
        Judgement::WorsePerhapsBelowThreshold => perhaps(bad),
        Judgement::NoDifference => "no difference".into(),
        Judgement::Inconclusive => "inconclusive".into(),
    }
}

/// The direction is shown, but not that the effect is large enough to count.
fn perhaps(direction: &str) -> String {
    format!("{direction}, perhaps below the threshold")
}
