//! JSON as goodput prints it: a person may read it on a terminal.

use std::fmt::Write;

use goodput_model::is_plain;
use serde::Serialize;

use crate::os_error::without_numbers;

/// The value in one line.
///
/// # Errors
/// JSON can't hold it.
pub fn one_line(value: &impl Serialize) -> serde_json::Result<String> {
    serde_json::to_string(value).map(|json| harmless(&json))
}

/// The value in lines, indented.
///
/// # Errors
/// JSON can't hold it.
pub fn indented(value: &impl Serialize) -> serde_json::Result<String> {
    serde_json::to_string_pretty(value).map(|json| harmless(&json))
}

/// The same JSON without the numbers of errors, in which no text paints the screen: what does not show as itself is written
/// by its number (RFC 8259, section 7), so nothing is lost.
fn harmless(json: &str) -> String {
    let json = without_numbers(json);
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        // Outside of texts, JSON has no other characters than these.
        if is_plain(c) || c == '\n' {
            text.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            // Writing to a String can't fail.
            let _ = write!(text, "\\u{unit:04x}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_paint_a_screen_is_written_by_its_number_and_read_as_it_was() {
        let evil = "a\u{1b}[2J\u{9b}31m\u{7f}\u{202e}\u{e0041}\n\"ä";
        for json in [one_line(&[evil]).unwrap(), indented(&[evil]).unwrap()] {
            assert!(json.chars().all(|c| is_plain(c) || c == '\n'), "{json:?}");
            assert_eq!(serde_json::from_str::<Vec<String>>(&json).unwrap(), [evil]);
        }
    }

    #[test]
    fn an_error_has_no_number() {
        let why = std::io::Error::from_raw_os_error(111).to_string();
        assert_eq!(one_line(&why).unwrap(), "\"Connection refused\"");
    }
}
