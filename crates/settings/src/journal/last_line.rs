//! What a journal has behind its last line break. A run that dies while it writes leaves the beginning of a line there,
//! and nothing is changed before a line is whole. Anything else is damage.

use serde::de::{DeserializeOwned, IgnoredAny};

use super::sealed_line::unseal;

/// The end of a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LastLine {
    /// Nothing: the last line has its line break.
    Ended,
    /// The beginning of a line.
    Torn,
    /// A whole line that lacks only its line break.
    Unbroken,
    /// Something else.
    Damaged,
}

impl LastLine {
    /// What a person should know about it, if it was mended.
    pub(super) fn note(self) -> Option<&'static str> {
        let torn = "its last line is incomplete, as after a crash while writing; goodput changes nothing before such a \
                    line is whole";
        (self == Self::Torn).then_some(torn)
    }

    /// What stands before the next line, so that it is not joined to what can't be mended by cutting it off.
    pub(super) fn line_break(self) -> &'static [u8] {
        match self {
            Self::Ended | Self::Torn => b"",
            Self::Unbroken | Self::Damaged => b"\n",
        }
    }

    /// What is left to say about it once a line was added.
    pub(super) fn followed(self) -> Self {
        if self == Self::Torn { Self::Torn } else { Self::Ended }
    }

    /// Judges what stands behind the last line break, and reads it if it is a whole line. The beginning of a JSON object
    /// ends too early, and has no other fault.
    pub(super) fn judge<L: DeserializeOwned>(rest: &[u8]) -> (Self, Option<L>) {
        if rest.is_empty() {
            return (Self::Ended, None);
        }
        if !rest.starts_with(b"{") {
            return (Self::Damaged, None);
        }
        if let Some(line) = unseal(rest) {
            return (Self::Unbroken, Some(line));
        }
        match serde_json::from_slice::<IgnoredAny>(rest) {
            Err(error) if error.is_eof() => (Self::Torn, None),
            _ => (Self::Damaged, None),
        }
    }
}

/// The whole lines of a journal, and what stands behind the last line break.
pub(super) fn lines(bytes: &[u8]) -> (impl Iterator<Item = &[u8]>, &[u8]) {
    let end = bytes.iter().rposition(|byte| *byte == b'\n');
    let rest = end.map_or(&[][..], |end| &bytes[end + 1..]);
    // Without any line break there is no whole first line: a damaged one.
    (bytes[..end.unwrap_or(0)].split(|byte| *byte == b'\n'), rest)
}

#[cfg(test)]
mod tests {
    use super::super::sealed_line::seal;
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn judged(rest: &[u8]) -> LastLine {
        LastLine::judge::<IgnoredAny>(rest).0
    }

    fn line() -> Vec<u8> {
        seal(&json!({"line": "intent", "original": "a \u{e4}", "around": {"x": [1, null]}}))
            .unwrap()
    }

    #[test]
    fn every_beginning_of_a_line_is_a_torn_one() {
        let line = line();
        for length in 1..line.len() - 1 {
            assert_eq!(judged(&line[..length]), LastLine::Torn, "{length}");
        }
        assert_eq!(judged(&line[..line.len() - 1]), LastLine::Unbroken);
        assert_eq!(judged(b""), LastLine::Ended);
    }

    #[test]
    fn a_line_whose_end_was_overwritten_is_damaged() {
        let mut line = line();
        *line.last_mut().unwrap() = b'x';
        assert_eq!(judged(&line), LastLine::Damaged);
        assert_eq!(judged(&[0; 40]), LastLine::Damaged);
        assert_eq!(judged(b"12"), LastLine::Damaged);
        let changed = String::from_utf8(line).unwrap().replacen("intent", "inTent", 1);
        assert_eq!(judged(changed.trim_end_matches('x').as_bytes()), LastLine::Damaged);
    }

    proptest! {
        #[test]
        fn any_bytes_are_judged(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let (whole, rest) = lines(&bytes);
            prop_assert!(whole.count() > 0);
            judged(rest);
        }
    }
}
