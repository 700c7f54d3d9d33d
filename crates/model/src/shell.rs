//! Quotes words for a shell, in commands that the user can copy.

/// `text` as one word for a shell: quoted only if necessary, so that commands stay readable.
pub fn word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,%@+".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.into();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_shell_would_take_apart_is_quoted() {
        assert_eq!(word("qdisc.tbf.burst@eth0=1600,125000"), "qdisc.tbf.burst@eth0=1600,125000");
        assert_eq!(word("4096 65536"), "'4096 65536'");
        assert_eq!(word("it's"), r"'it'\''s'");
        assert_eq!(word(""), "''");
        assert_eq!(word("http://[::1]/f?a=1&b=2"), "'http://[::1]/f?a=1&b=2'");
    }
}
