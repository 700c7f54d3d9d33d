//! Starting a measurement: the form, and what is asked with it.

use goodput_model::Direction;
use maud::{Markup, html};

use super::{Page, Visit};
use crate::answer::{Answer, Trouble};
use crate::asked::Asked;
use crate::layout::words;
use crate::program::{MeasureAsked, Measures};

/// Longest text of a field, bytes: names, paths and settings are shorter.
const MAX_BYTES: usize = 1024;

/// Starts a measurement.
pub const START: Page = Page::change("/tests", start);

/// A field of the form that takes text.
struct Text {
    name: &'static str,
    label: &'static str,
    hint: &'static str,
}

/// What may be left empty, in the order of the form.
const TEXTS: [Text; 6] = [
    Text {
        name: "setting",
        label: "Setting to compare",
        hint: "such as socket.congestion=cubic,bbr",
    },
    Text { name: "time", label: "Length of a run", hint: "such as 10s; empty: as long as needed" },
    Text { name: "flows", label: "Flows in each direction", hint: "1 if empty" },
    Text { name: "rate", label: "Rate", hint: "such as 100mbit; empty: as fast as possible" },
    Text { name: "congestion", label: "Congestion control", hint: "such as bbr" },
    Text { name: "server-key", label: "Public key of the server", hint: "x25519:…" },
];

/// A choice of the form: what is sent, and what a person reads.
type Choice = (&'static str, &'static str);

const DIRECTIONS: [Choice; 3] = [
    ("send", "This host sends"),
    ("reverse", "The far host sends"),
    ("both", "Both send at the same time"),
];

const TRANSPORTS: [Choice; 2] = [("tcp", "TCP"), ("udp", "UDP")];

fn kind(measures: Measures) -> Choice {
    let shown = match measures {
        Measures::Test => "Test: measure once",
        Measures::Compare => "Comparison: try values of a setting in turn, then put it back",
        Measures::Tune => "Tuning: try what could help, then put it back",
    };
    (measures.command(), shown)
}

/// The form, filled in as it was sent.
pub fn form(visit: &Visit) -> Markup {
    let asked = visit.asked;
    let fields = html! {
        p { label for="target" { "Target" }
            input #target name="target" required maxlength=(MAX_BYTES) autocomplete="off"
                value=[asked.field("target")]; }
        (select(asked, "what", "What to do", &Measures::ALL.map(kind)))
        (select(asked, "direction", "Direction", &DIRECTIONS))
        (select(asked, "transport", "Protocol", &TRANSPORTS))
        @for text in TEXTS { (typed(asked, &text)) }
    };
    html! { div.start { (visit.who.form("/tests", "Start", &fields)) } }
}

fn select(asked: &Asked, name: &str, label: &str, choices: &[Choice]) -> Markup {
    html! {
        p { label for=(name) { (label) }
            select id=(name) name=(name) {
                @for (value, shown) in choices {
                    option value=(value) selected[asked.field(name) == Some(value)] { (shown) }
                }
            } }
    }
}

fn typed(asked: &Asked, Text { name, label, hint }: &Text) -> Markup {
    let id = format!("{name}-hint");
    html! {
        p { label for=(name) { (label) }
            input id=(name) name=(name) maxlength=(MAX_BYTES) autocomplete="off" aria-describedby=(id)
                value=[asked.field(name)];
            span.hint id=(id) { (hint) } }
    }
}

fn start(visit: &Visit) -> Result<Answer, Trouble> {
    let command = measured(visit.asked).and_then(|asked| {
        let process = visit.program.measurement(&asked)?;
        Ok((process, asked))
    });
    match command {
        Ok((process, MeasureAsked { what, target, .. })) => {
            let number = visit.runs.start(process, [what.command(), &target])?;
            Ok(Answer::go(format!("/tests/{number}")))
        }
        Err(why) => Ok(refused(visit, &why)),
    }
}

/// The form once more, with what is wrong.
fn refused(visit: &Visit, why: &str) -> Answer {
    let body = html! { p.doubt role="alert" { (words(why)) } (form(visit)) };
    Answer::Refused { title: "This can't be measured".into(), body }
}

/// What the form asks for.
fn measured(asked: &Asked) -> Result<MeasureAsked, String> {
    if let Some((name, _)) = asked.fields.iter().find(|(_, value)| value.len() > MAX_BYTES) {
        return Err(format!("{name:?} is longer than {MAX_BYTES} bytes"));
    }
    let typed = |name: &str| asked.field(name).map(String::from);
    let direction = match asked.field("direction") {
        None | Some("send") => Direction::Send,
        Some("reverse") => Direction::Reverse,
        Some("both") => Direction::Both,
        Some(other) => return Err(format!("{other:?} is no direction")),
    };
    let what = asked.field("what").unwrap_or(Measures::Test.command());
    let what = Measures::ALL.into_iter().find(|one| one.command() == what);
    let settings = asked.field("setting").unwrap_or_default();
    Ok(MeasureAsked {
        what: what.ok_or("choose a test, a comparison or tuning")?,
        target: typed("target").ok_or("name a host, an address or a file as the target")?,
        settings: settings.split_whitespace().map(Into::into).collect(),
        time: typed("time"),
        direction,
        flows: typed("flows"),
        udp: asked.field("transport") == Some("udp"),
        rate: typed("rate"),
        congestion: typed("congestion"),
        server_key: typed("server-key"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(fields: &[(&str, &str)]) -> Asked {
        let fields = fields.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        Asked { fields: fields.collect(), ..Asked::default() }
    }

    #[test]
    fn a_form_asks_for_what_was_typed_and_for_nothing_else() {
        let plain = measured(&asked(&[("target", "nas"), ("time", ""), ("flows", " 4 ")])).unwrap();
        assert_eq!(
            (plain.what, plain.direction, plain.udp),
            (Measures::Test, Direction::Send, false)
        );
        assert_eq!(
            (plain.time, plain.flows.as_deref(), plain.settings.len()),
            (None, Some("4"), 0)
        );
        let fields = [
            ("target", "nas"),
            ("what", "compare"),
            ("setting", "chunk=4K,8K  mover=copy,splice"),
            ("direction", "both"),
            ("transport", "udp"),
        ];
        let all = measured(&asked(&fields)).unwrap();
        assert_eq!(all.settings, ["chunk=4K,8K", "mover=copy,splice"]);
        assert_eq!((all.what, all.direction, all.udp), (Measures::Compare, Direction::Both, true));
    }

    #[test]
    fn what_no_form_of_this_server_sends_is_refused_in_words() {
        let long = "x".repeat(MAX_BYTES + 1);
        for (fields, part) in [
            (&[][..], "as the target"),
            (&[("target", &long[..])], "longer than"),
            (&[("target", "nas"), ("what", "serve")], "choose a test"),
            (&[("target", "nas"), ("direction", "up")], "no direction"),
        ] {
            let why = measured(&asked(fields)).unwrap_err();
            assert!(why.contains(part), "{why}");
        }
    }
}
