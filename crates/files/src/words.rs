//! Words of a server, made fit to be shown.

/// Behind the words of a server that wants another login.
pub(crate) const LOGIN_ADVICE: &str =
    "logins come from ~/.netrc, or from GOODPUT_FILE_USER and GOODPUT_FILE_PASSWORD";

/// Characters of a server's words that are shown at most.
const MAX_SHOWN_CHARS: usize = 120;

/// What a server said, without what would move a terminal's cursor, and not endless.
pub(crate) fn shown(words: &[u8]) -> String {
    let text = String::from_utf8_lossy(words);
    let mut plain: String = text
        .trim()
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(MAX_SHOWN_CHARS)
        .collect();
    if text.trim().chars().count() > MAX_SHOWN_CHARS {
        plain.push('…');
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_says_can_not_command_a_terminal() {
        assert_eq!(shown(b" no \x1b[2J\xff "), "no  [2J\u{fffd}");
        assert_eq!(shown(&[b'x'; 9000]).chars().count(), MAX_SHOWN_CHARS + 1);
    }
}
