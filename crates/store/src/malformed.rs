//! Why a text is no record, in words: a parser speaks of types of Rust, which nobody outside this program knows.

use goodput_model::plain_char;
use serde_json::Error;
use serde_json::error::Category;

/// What is wrong, and where. Words of the text that are in it can't steer a terminal.
pub(crate) fn in_words(why: &Error) -> String {
    what_and_where(why).chars().map(plain_char).collect()
}

fn what_and_where(why: &Error) -> String {
    let place = match why.line() {
        0 => String::new(),
        line => format!(" at line {line} column {}", why.column()),
    };
    match why.classify() {
        Category::Eof => format!("it ends in the middle{place}; copy the whole of it again"),
        Category::Syntax | Category::Io => format!("it is not JSON{place}"),
        Category::Data => format!("{}{place}", value(&why.to_string())),
    }
}

/// What is wrong with a value, by the words of `serde`.
fn value(text: &str) -> String {
    let text = text.split(" at line ").next().unwrap_or(text);
    let found = text.split(", expected ").next().unwrap_or(text);
    let is = |prefix| found.strip_prefix(prefix);
    if let Some(name) = is("missing field ") {
        format!("it has no {name}")
    } else if let Some(name) = is("duplicate field ") {
        format!("it has {name} twice")
    } else if let Some(word) = is("unknown variant ") {
        format!("this goodput does not know {word}")
    } else if let Some(found) = is("invalid type: ").or(is("invalid value: ")) {
        format!("{found} can't stand there")
    } else {
        "a record has something else there".into()
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    struct Head {
        format: u32,
        word: Option<Word>,
    }

    #[derive(Debug, Deserialize)]
    enum Word {
        Known,
    }

    #[test]
    fn no_word_of_rust_is_left() {
        for (text, said) in [
            ("{\"format\"", "it ends in the middle at line 1 column 9; copy the whole of it again"),
            ("hello", "it is not JSON at line 1 column 1"),
            ("{}", "it has no `format` at line 1 column 2"),
            ("[]", "a record has something else there at line 1 column 2"),
            ("7", "integer `7` can't stand there at line 1 column 1"),
            ("{\"format\":-1}", "integer `-1` can't stand there at line 1 column 12"),
            ("{\"format\":1,\"format\":1}", "it has `format` twice at line 1 column 20"),
            ("{\"format\":1,\"word\":\"x\"}", "this goodput does not know `x` at line 1 column 22"),
        ] {
            let why = match serde_json::from_str(text) {
                Err(why) => why,
                Ok(Head { format, word }) => panic!("{text} is read: {format}, {word:?}"),
            };
            assert_eq!(in_words(&why), said, "{why}");
        }
    }

    #[test]
    fn words_of_the_text_cant_steer_a_terminal() {
        let text = r#"{"format":1,"word":"\u001b]0;evil\u0007\u001b[31mX"}"#;
        let said = in_words(&serde_json::from_str::<Head>(text).unwrap_err());
        assert!(said.contains("`\u{fffd}]0;evil\u{fffd}\u{fffd}[31mX`"), "{said:?}");
    }
}
