//! The line of an effect, for any quantity that was compared.

use goodput_model::Effect;

/// What an effect means, and how large it is.
pub(super) fn with_interval(words: &str, effect: &Effect) -> String {
    format!(
        "{words}: {:+.1} % ({:.1} % interval {:+.1} to {:+.1} %, n = {} pairs)",
        effect.percent,
        effect.confidence_percent,
        effect.low_percent,
        effect.high_percent,
        effect.n
    )
}

/// The direction is shown, but not that the effect is large enough to count.
pub(super) fn perhaps(direction: &str) -> String {
    format!("{direction}, perhaps below the threshold")
}
