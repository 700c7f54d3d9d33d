//! Who speaks, where several write into one journal: each line of standard error then begins with the time and with this.

use std::borrow::Cow;
use std::sync::OnceLock;

use jiff::Timestamp;

static SPEAKER: OnceLock<String> = OnceLock::new();

/// Begins each line of standard error with the time and with `who` from now on, such as `agent b`. The first one counts.
pub fn speak_as(who: String) {
    let _ = SPEAKER.set(who);
}

/// The time of a line, by this host's clock: `2026-11-24T14:05:07Z`.
pub fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A line with the time and who says it, if that was said.
pub fn signed(line: &str) -> Cow<'_, str> {
    match SPEAKER.get() {
        Some(who) => Cow::Owned(with(&now(), who, line)),
        None => Cow::Borrowed(line),
    }
}

/// `2026-11-24T14:05:07Z agent b: LINE`, without the name of the program and without blanks that a log begins with.
fn with(time: &str, who: &str, line: &str) -> String {
    let line = line.trim_start_matches(' ');
    let line = line.strip_prefix("goodput: ").unwrap_or(line);
    format!("{time} {who}: {line}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_several_speakers_has_a_time_and_a_name_once() {
        for line in ["goodput: can't write x\n", " can't write x\n", "can't write x\n"] {
            assert_eq!(with("12:00Z", "agent b", line), "12:00Z agent b: can't write x\n");
        }
        assert_eq!(signed("x"), "x", "nobody has said who speaks");
        let parts: Vec<_> = now().split(['T', 'Z']).map(str::len).collect();
        assert_eq!(parts, [10, 8, 0]);
    }
}
