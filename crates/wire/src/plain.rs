//! A stranger's text, made fit for logs and terminals: no control characters, and not too long.
//!
//! Whatever text a peer sends may end in a log line or on a screen. A line break in it could forge
//! a line of its own, an escape sequence could rewrite the screen, and a mark that turns the
//! direction of writing could show other words than there are.

use std::collections::BTreeMap;

use goodput_model::{End, Fact, FlowSample, Host, Known, MoverChoice, Placement, Sample, Snapshot};

/// Longest name of a host, a kernel or a release, characters; Linux has 64 for a host's
/// (`HOST_NAME_MAX`, limits.h).
const NAME_MAX: usize = 128;

/// Choices of a mover: one for each side.
const MOVERS_MAX: usize = 2;

/// Longest reason, characters.
const PHRASE_MAX: usize = 1024;

/// Longest name or text of a fact, characters: a kernel setting is at most a page.
const FACT_MAX: usize = 4096;

/// A reason in a peer's words.
pub fn phrase(text: &str) -> String {
    plain(text, PHRASE_MAX)
}

/// What a peer says of its machine.
pub fn host(host: Host) -> Host {
    Host {
        name: plain(&host.name, NAME_MAX),
        kernel: plain(&host.kernel, NAME_MAX),
        goodput: plain(&host.goodput, NAME_MAX),
        cpus: host.cpus,
    }
}

/// What a peer saw.
pub fn end(seen: End) -> End {
    End {
        host: host(seen.host),
        before: snapshot(seen.before),
        after: snapshot(seen.after),
        samples: seen.samples.into_iter().map(sample).collect(),
        placement: seen.placement.map(placement),
        movers: seen.movers.into_iter().take(MOVERS_MAX).map(choice).collect(),
    }
}

fn choice(told: MoverChoice) -> MoverChoice {
    MoverChoice {
        role: told.role,
        mover: plain(&told.mover, NAME_MAX),
        why: plain(&told.why, PHRASE_MAX),
    }
}

fn placement(told: Placement) -> Placement {
    Placement { chosen: plain(&told.chosen, PHRASE_MAX), flows: told.flows }
}

/// What a peer saw, or why it does not say.
pub fn known_end(mut seen: Known<Box<End>>) -> Known<Box<End>> {
    reason(&mut seen);
    seen.map(|seen| Box::new(end(*seen)))
}

/// What a peer counted.
pub fn sample(mut sample: Sample) -> Sample {
    for flow in &mut sample.flows {
        let FlowSample { cpu_us, cpu_wait_us, tcp, memory, queued_bytes, .. } = flow;
        reason(cpu_us);
        reason(cpu_wait_us);
        reason(tcp);
        reason(memory);
        reason(queued_bytes);
        reason(&mut flow.source_us);
        reason(&mut flow.sink_us);
        flow.mptcp_subflows.iter_mut().for_each(reason);
    }
    sample
}

fn reason<T>(value: &mut Known<T>) {
    if let Known::Missing(why) = value {
        why.missing = phrase(&why.missing).into();
    }
}

fn snapshot(seen: Snapshot) -> Snapshot {
    let fact = |fact| match fact {
        Fact::Text(text) => Fact::Text(plain(&text, FACT_MAX)),
        number => number,
    };
    Snapshot {
        facts: with_plain_names(seen.facts, fact),
        missing: with_plain_names(seen.missing, |why| phrase(&why)),
    }
}

fn with_plain_names<T>(named: BTreeMap<String, T>, change: impl Fn(T) -> T) -> BTreeMap<String, T> {
    named.into_iter().map(|(name, value)| (plain(&name, FACT_MAX), change(value))).collect()
}

/// A text of at most `longest` characters.
pub fn short(text: &str, longest: usize) -> String {
    plain(text, longest)
}

fn plain(text: &str, longest: usize) -> String {
    let mut plain: String = text.chars().take(longest).map(plain_char).collect();
    if plain.len() < text.len() && text.chars().nth(longest).is_some() {
        plain.push('…');
    }
    plain
}

/// Tabs stay: the kernel separates the numbers of a setting by them.
fn plain_char(c: char) -> char {
    match c {
        '\t' => c,
        '\n' | '\r' | '\u{2028}' | '\u{2029}' => ' ',
        // Marks of direction, joiners and other characters that show nothing themselves.
        '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}' => char::REPLACEMENT_CHARACTER,
        c if c.is_control() => char::REPLACEMENT_CHARACTER,
        c => c,
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
    fn every_text_of_a_report_is_made_plain() {
        let mut seen = crate::pair::end("far\x1b[31m");
        seen.after.put("link.name\n", Fact::Text("eth0\x07".into()));
        seen.after.lacks("qdisc", "no\nqdisc");
        let seen = end(seen);
        assert!(seen.host.name.starts_with("far\u{fffd}"), "{:?}", seen.host);
        assert_eq!(seen.after.text("link.name "), Ok("eth0\u{fffd}"));
        assert_eq!(seen.after.missing["qdisc"], "no qdisc");
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
