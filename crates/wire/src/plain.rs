//! Makes untrusted text safe for logs and terminals: no control characters, and not too long.
//!
//! Any text of a peer may end up in a log or on a screen. A line break could forge a log line, an escape sequence
//! could rewrite the screen, and a bidirectional control character could make the text look different.

use goodput_model::{End, Host, MAX_HOST_CPU, plain_char};

/// Longest name of a host, a kernel or a release, characters; Linux allows 64 for a host name (`HOST_NAME_MAX`,
/// limits.h).
const MAX_NAME_BYTES: usize = 128;

/// Choices of a mover: one for each side.
const MAX_MOVERS: usize = 2;

/// Rates that limited flows: those of the client, its key, the networks around it and all clients, in both directions.
const MAX_HELD_TO: usize = 16;

/// Flows that were lost: no plan has more, in both directions together.
const MAX_LOST_FLOWS: usize = u16::MAX as usize;

/// Bins of pauses: each begins at twice the time of the one before, from 1 µs on, so that more would be centuries.
const MAX_GAP_BINS: usize = 54;

/// Longest reason, characters.
const MAX_PHRASE_BYTES: usize = 1024;

/// Longest text of a message, characters: a path or a kernel setting is at most a page (`PATH_MAX`,
/// include/uapi/linux/limits.h).
const MAX_TEXT_BYTES: usize = 4096;

/// A reason in a peer's words.
pub fn phrase(text: &str) -> String {
    plain(text, MAX_PHRASE_BYTES)
}

/// A peer's description of its machine.
pub fn host(host: Host) -> Host {
    Host {
        name: plain(&host.name, MAX_NAME_BYTES),
        kernel: plain(&host.kernel, MAX_NAME_BYTES),
        goodput: plain(&host.goodput, MAX_NAME_BYTES),
        cpus: host.cpus,
    }
}

/// A peer's observations, whose texts were made plain as they arrived (`untrusted.rs`).
pub fn end(seen: End) -> End {
    let movers = seen.movers.into_iter().take(MAX_MOVERS).collect();
    let held_to = seen.held_to.map(|held| held.into_iter().take(MAX_HELD_TO).collect());
    let gaps = seen.gaps.map(|mut gaps| {
        gaps.histogram.truncate(MAX_GAP_BINS);
        gaps
    });
    let host_cpu = seen.host_cpu.map(|mut cpu| {
        cpu.truncate(MAX_HOST_CPU);
        cpu
    });
    let lost_flows = seen.lost_flows.into_iter().take(MAX_LOST_FLOWS).collect();
    End { host: host(seen.host), movers, held_to, gaps, host_cpu, lost_flows, ..seen }
}

/// Any text of a message.
pub fn text(text: &str) -> String {
    plain(text, MAX_TEXT_BYTES)
}

/// A text of at most `longest` characters.
pub fn short(text: &str, longest: usize) -> String {
    plain(text, longest)
}

fn plain(text: &str, longest: usize) -> String {
    let mut plain: String = text.chars().take(longest).map(on_one_line).collect();
    if plain.len() < text.len() && text.chars().nth(longest).is_some() {
        plain.push('…');
    }
    plain
}

/// A line break separates words.
fn on_one_line(c: char) -> char {
    match c {
        '\n' | '\r' | '\u{2028}' | '\u{2029}' => ' ',
        c => plain_char(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_that_forges_a_line_or_paints_a_screen_is_left() {
        let evil = "a\nWARN all is lost\r\x1b[2J\u{9b}31m\u{202e}\x07b\tc";
        let left = phrase(evil);
        assert_eq!(left, "a WARN all is lost \u{fffd}[2J\u{fffd}31m\u{fffd}\u{fffd}b\tc");
    }

    #[test]
    fn a_name_of_megabytes_is_cut_and_says_so() {
        let cut = plain(&"ä".repeat(1 << 20), 8);
        assert_eq!(cut, "ääääääää…");
        assert_eq!(plain("12345678", 8), "12345678");
    }

    #[test]
    fn a_peer_lists_no_more_lost_flows_than_a_plan_can_have() {
        let lost = goodput_model::LostFlow {
            flow: 0,
            role: goodput_model::Role::Sender,
            at_s: 1.0,
            why: String::new(),
        };
        let seen = End { lost_flows: vec![lost; 70_000], ..End::unobserved(Host::foreign("x")) };
        assert_eq!(end(seen).lost_flows.len(), 65_535);
    }

    proptest! {
        #[test]
        fn plain_text_stays_as_it_is(text in "[ -~äöü€\t]{0,200}") {
            prop_assert_eq!(phrase(&text), text);
        }

        #[test]
        fn any_text_becomes_one_line(text in any::<String>()) {
            prop_assert!(!phrase(&text).chars().any(|c| c.is_control() && c != '\t'));
        }
    }
}
