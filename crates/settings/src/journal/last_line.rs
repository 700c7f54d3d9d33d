//! What a journal has behind its last line break. A run that dies while it writes leaves the beginning of a line there,
//! and nothing is changed before a line is whole. Anything else is damage.

use std::fs::File;
use std::io::{self, Read};

use serde::de::IgnoredAny;

use super::sealed_line::unseal;

/// The end of a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastLine {
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
    pub fn note(self) -> Option<&'static str> {
        let torn = "its last line is incomplete, as after a crash while writing; goodput changes nothing before such a \
                    line is whole";
        (self == Self::Torn).then_some(torn)
    }

    /// What stands before the next line, so that it is not joined to what can't be mended by cutting it off.
    pub fn line_break(self) -> &'static [u8] {
        match self {
            Self::Ended | Self::Torn => b"",
            Self::Unbroken | Self::Damaged => b"\n",
        }
    }

    /// What is left to say about it once a line was added.
    pub fn followed(self) -> Self {
        if self == Self::Torn { Self::Torn } else { Self::Ended }
    }

    /// Judges what stands behind the last line break. The beginning of a JSON object ends too early, and has no other fault.
    pub fn of(rest: &[u8]) -> Self {
        if rest.is_empty() {
            return Self::Ended;
        }
        if !rest.starts_with(b"{") {
            return Self::Damaged;
        }
        if unseal::<IgnoredAny>(rest).is_some() {
            return Self::Unbroken;
        }
        match serde_json::from_slice::<IgnoredAny>(rest) {
            Err(error) if error.is_eof() => Self::Torn,
            _ => Self::Damaged,
        }
    }
}

/// The whole lines of a journal, and what stands behind the last line break.
pub fn lines(bytes: &[u8]) -> (impl Iterator<Item = &[u8]>, &[u8]) {
    let end = bytes.iter().rposition(|byte| *byte == b'\n');
    let rest = end.map_or(&[][..], |end| &bytes[end + 1..]);
    // Without any line break there is no whole first line: a damaged one.
    (bytes[..end.unwrap_or(0)].split(|byte| *byte == b'\n'), rest)
}

/// Cuts off the beginning of a line at the end, which would be joined to the next line. Everything else stays, and a line
/// break comes first when a line is added ([`LastLine::line_break`]). Reads the file from where it stands, and returns what
/// the end was. If the file can't be changed, the next line will be reported as damaged.
///
/// # Errors
/// If the file can't be read.
pub fn mend_end(file: &mut File) -> io::Result<LastLine> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let (_, rest) = lines(&bytes);
    let end = LastLine::of(rest);
    if end == LastLine::Torn {
        let _ = file.set_len((bytes.len() - rest.len()) as u64);
    }
    Ok(end)
}

#[cfg(test)]
mod tests {
    use super::super::sealed_line::seal;
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn line() -> Vec<u8> {
        seal(&json!({"line": "intent", "original": "a \u{e4}", "around": {"x": [1, null]}}))
            .unwrap()
    }

    #[test]
    fn every_beginning_of_a_line_is_a_torn_one() {
        let line = line();
        for length in 1..line.len() - 1 {
            assert_eq!(LastLine::of(&line[..length]), LastLine::Torn, "{length}");
        }
        assert_eq!(LastLine::of(&line[..line.len() - 1]), LastLine::Unbroken);
        assert_eq!(LastLine::of(b""), LastLine::Ended);
    }

    #[test]
    fn a_line_whose_end_was_overwritten_is_damaged() {
        let mut line = line();
        *line.last_mut().unwrap() = b'x';
        assert_eq!(LastLine::of(&line), LastLine::Damaged);
        assert_eq!(LastLine::of(&[0; 40]), LastLine::Damaged);
        assert_eq!(LastLine::of(b"12"), LastLine::Damaged);
        let changed = String::from_utf8(line).unwrap().replacen("intent", "inTent", 1);
        assert_eq!(LastLine::of(changed.trim_end_matches('x').as_bytes()), LastLine::Damaged);
    }

    #[test]
    fn only_the_beginning_of_a_line_is_cut_off_and_the_next_line_is_whole() {
        let whole = line();
        let begun = [&whole[..], &whole[..9]].concat();
        let unbroken = [&whole[..], &whole[..whole.len() - 1]].concat();
        let damaged = [&whole[..], b"x"].concat();
        for (bytes, end, mended) in [
            (&begun, LastLine::Torn, &whole),
            (&unbroken, LastLine::Unbroken, &unbroken),
            (&damaged, LastLine::Damaged, &damaged),
            (&whole, LastLine::Ended, &whole),
        ] {
            let named = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(named.path(), bytes).unwrap();
            let mut options = std::fs::OpenOptions::new();
            let mut file = options.read(true).append(true).open(named.path()).unwrap();
            assert_eq!(mend_end(&mut file).unwrap(), end);
            assert_eq!(&std::fs::read(named.path()).unwrap(), mended);
            let longer = [&mended[..], end.line_break(), &whole].concat();
            let (all, rest) = lines(&longer);
            assert!(rest.is_empty() && all.last() == Some(&whole[..whole.len() - 1]));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_judged(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let (whole, rest) = lines(&bytes);
            prop_assert!(whole.count() > 0);
            LastLine::of(rest);
        }
    }
}
