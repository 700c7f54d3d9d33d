//! Replies of an FTP server (RFC 959 section 4.2).

use crate::connection::Parsed;
use crate::error::FileError;
use crate::words::shown;

/// Longest reply, bytes, all its lines together.
pub(super) const MOST_BYTES: usize = 16 << 10;

/// A reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reply {
    /// Three digits.
    pub(super) code: u16,
    /// Its last line, without the code.
    pub(super) words: String,
}

impl Reply {
    /// Whether the server goes on, or waits for this end to go on.
    pub(super) fn is_good(&self) -> bool {
        self.code < 400
    }

    /// As an error of the request.
    pub(super) fn refused(&self, what: &str) -> FileError {
        self.refused_with(what, "")
    }

    /// The same, with advice for the user.
    pub(super) fn refused_with(&self, what: &str, advice: &str) -> FileError {
        let Self { code, words } = self;
        let text = format!("the server refuses {what}: {code} {words}{advice}");
        // Not logged in, no account for it, and the texts of servers about files under 550.
        let is_permission = matches!(code, 530 | 532 | 533 | 534)
            || (matches!(code, 550 | 553) && words.to_lowercase().contains("permission"));
        if is_permission { FileError::NotPermitted(text) } else { FileError::Refused(text) }
    }
}

/// Parses a reply of one or several lines, as far as it has arrived.
pub(super) fn parse(bytes: &[u8]) -> Parsed<Reply> {
    let (mut at, mut first) = (0, None);
    while let Some(length) = bytes[at..].iter().position(|byte| *byte == b'\n') {
        let line = &bytes[at..at + length];
        at += length + 1;
        let (code, separator) = code(line);
        let opens = *first.get_or_insert(code);
        let Some(opens) = opens else {
            let begin = shown(&line[..line.len().min(40)]);
            return Err(FileError::Protocol(format!(
                "the server's answer is no FTP; it begins: {begin}"
            )));
        };
        if code == Some(opens) && separator != Some(b'-') {
            let words = shown(line.get(4..).unwrap_or_default());
            return Ok((at, Some(Reply { code: opens, words })));
        }
    }
    Ok((0, None))
}

/// The code at the beginning of a line, and the separator after it.
fn code(line: &[u8]) -> (Option<u16>, Option<u8>) {
    let digits = line.get(..3).filter(|digits| digits.iter().all(u8::is_ascii_digit));
    let code = digits.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
    (code.filter(|code| (100..600).contains(code)), line.get(3).copied())
}

/// The port in a reply to EPSV: `(|||port|)`, with any separator (RFC 2428 section 3).
pub(super) fn extended_port(words: &str) -> Option<u16> {
    let inside = words.rsplit_once('(')?.1.split_once(')')?.0;
    let separator = inside.chars().next()?;
    let mut fields = inside.split(separator).skip(1);
    fields.nth(2)?.parse().ok().filter(|port| *port > 0)
}

/// The port in a reply to PASV: the last two of six numbers (RFC 959 section 4.1.2). Its address is not trusted.
pub(super) fn passive_port(words: &str) -> Option<u16> {
    let is_apart = |c: char| !(c.is_ascii_digit() || c == ',');
    let numbers = words.split(is_apart).find(|part| part.split(',').count() == 6)?;
    let mut numbers = numbers.split(',').map(|number| number.parse::<u8>().ok());
    let (high, low) = (numbers.nth(4)??, numbers.next()??);
    Some(u16::from(high) << 8 | u16::from(low)).filter(|port| *port > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Option<(u16, String)> {
        parse(text.as_bytes()).unwrap().1.map(|reply| (reply.code, reply.words))
    }

    #[test]
    fn a_reply_has_one_line_or_several() {
        assert_eq!(said("220 hello\r\n"), Some((220, "hello".into())));
        assert_eq!(
            said("220-a\r\n230 no end\r\n220-b\r\n 220 c\r\n220 d\r\nmore"),
            Some((220, "d".into()))
        );
        assert_eq!(said("226\r\n"), Some((226, String::new())));
        assert_eq!((said("220-a\r\n"), said("220 a"), said("")), (None, None, None));
        assert!(parse(b"SSH-2.0\r\n").unwrap_err().to_string().contains("no FTP"));
    }

    #[test]
    fn ports_are_read_and_nothing_else() {
        assert_eq!(extended_port("Entering (|||6446|)"), Some(6446));
        assert_eq!(extended_port("x (!!!70000!)"), None);
        assert_eq!(passive_port("Entering Passive Mode (127,0,0,1,4,1)."), Some(1025));
        assert_eq!(passive_port("=10,0,0,1,300,1"), None);
        for text in ["", "(", "()", "(|)", "1,2,3", "(é|||", ",,,,,", "0,0,0,0,0,0"] {
            assert_eq!((extended_port(text), passive_port(text)), (None, None), "{text}");
        }
    }

    #[test]
    fn what_is_not_permitted_is_distinguished() {
        let permitted =
            |code, words: &str| !Reply { code, words: words.into() }.refused("it").not_permitted();
        assert!(!permitted(530, "Login incorrect.") && !permitted(550, "Permission denied."));
        assert!(permitted(550, "Failed to open file.") && permitted(421, "Too many."));
    }
}
