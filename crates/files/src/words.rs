//! Makes a server's text safe to show.

/// Added to the message of a server that wants another login.
pub(crate) const LOGIN_ADVICE: &str =
    "logins come from ~/.netrc, or from GOODPUT_FILE_USER and GOODPUT_FILE_PASSWORD";

/// Most characters of a server's text that are shown.
const MAX_SHOWN_CHARS: usize = 120;

/// A server's message, without control characters, and of limited length.
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
