//! Text with commands in backticks, as messages of the program have them.

use maud::{Markup, html};

/// A part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    /// Words.
    Text(&'a str),
    /// What stood between two backticks.
    Code(&'a str),
}

/// The parts of a text. A backtick without its partner stays as it is.
pub(crate) fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((before, code, after)) = next(rest) {
        parts.extend([Part::Text(before), Part::Code(code)]);
        rest = after;
    }
    parts.push(Part::Text(rest));
    parts
}

/// What is before the first code, the code, and what is after it.
fn next(text: &str) -> Option<(&str, &str, &str)> {
    let (before, from) = text.split_once('`')?;
    let (code, after) = from.split_once('`')?;
    Some((before, code, after))
}

/// A text as HTML, with what stands between backticks as code. Everything is escaped.
pub fn coded(text: &str) -> Markup {
    html! {
        @for part in parts(text) {
            @match part {
                Part::Text(text) => (text),
                Part::Code(code) => code { (code) },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_code_and_names_of_a_peer_stay_text() {
        let html = coded("see `tc -s qdisc` & `<b>`, not ` alone").into_string();
        assert_eq!(html, "see <code>tc -s qdisc</code> &amp; <code>&lt;b&gt;</code>, not ` alone");
        assert_eq!(parts(""), [Part::Text("")]);
        assert_eq!(coded("``").into_string(), "<code></code>");
    }
}
