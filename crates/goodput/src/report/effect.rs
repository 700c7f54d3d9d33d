//! The line of an effect, for any quantity that was compared.

use goodput_model::{Burden, Effect, Judgement};

use super::style;

/// The meaning of an effect, and its size. If less is better, `burden` names what of.
pub(super) fn with_interval(words: &str, effect: &Effect, burden: Option<Burden>) -> String {
    effect.in_words(words, burden)
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
