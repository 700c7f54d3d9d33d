//! Errors of the operating system as a person reads them: its words, without its number.

use std::borrow::Cow;

/// How the standard library begins the number of an error (`impl Display for io::Error`).
const BEGIN: &str = " (os error ";

/// The text without the numbers of errors. Records keep them.
pub fn without_numbers(text: &str) -> Cow<'_, str> {
    let mut parts = text.split(BEGIN);
    let first = parts.next().unwrap_or_default();
    if first.len() == text.len() {
        return text.into();
    }
    let rest = |said: String, part| match after_number(part) {
        Some(rest) => said + rest,
        None => said + BEGIN + part,
    };
    parts.fold(first.to_string(), rest).into()
}

fn after_number(part: &str) -> Option<&str> {
    part.trim_start_matches(|c: char| c.is_ascii_digit()).strip_prefix(')')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_numbers_go() {
        let denied = std::io::Error::from_raw_os_error(13);
        let text = format!("can't open x: {denied}; can't close y: {denied}");
        assert_eq!(
            without_numbers(&text),
            "can't open x: Permission denied; can't close y: Permission denied"
        );
        for whole in ["nothing (at all)", "cut (os error 1", "no number (os error x)"] {
            assert_eq!(without_numbers(whole), whole);
        }
    }
}
