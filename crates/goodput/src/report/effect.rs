//! The line of an effect, for any quantity that was compared.

use goodput_model::{Effect, Judgement};

use super::style;

/// The meaning of an effect, and its size.
pub(super) fn with_interval(words: &str, effect: &Effect) -> String {
    effect.in_words(words)
}

/// The outcome, with the given words for good and bad.
pub(super) fn word(effect: &Effect, words: [&str; 2]) -> String {
    named(effect.judgement, words)
}

/// A judgement, with the given words for good and bad; coloured if it is clear.
pub(super) fn named(judgement: Judgement, words: [&str; 2]) -> String {
    let words = judgement.in_words(words);
    match judgement {
        Judgement::Better => style::good(words),
        Judgement::Worse => style::bad(words),
        _ => words,
    }
}
