//! Who limited when: the account of the flows' time, for readers who want more than the verdict.

use goodput_model::{Account, Place};

/// Share of the time below which a part is left out.
const MIN_SHOWN_SHARE: f64 = 0.005;

/// `receive window (far) 3.6 s, path rate 0.3 s`, and who limited when if this changed.
pub fn lines(account: &Account) -> Vec<(&'static str, String)> {
    let shown = |seconds: f64| seconds >= MIN_SHOWN_SHARE * account.flow_seconds;
    let mut parts: Vec<String> = account
        .parts
        .iter()
        .filter(|part| shown(part.seconds))
        .map(|part| format!("{}{} {:.1} s", part.limiter, at(part.end), part.seconds))
        .collect();
    if shown(account.unknown_s) {
        parts.push(format!("unknown {:.1} s", account.unknown_s));
    }
    let mut lines = vec![("time", parts.join(", "))];
    if account.timeline.len() > 1 {
        let span = |span: &goodput_model::AccountSpan| {
            format!("{:.1}-{:.1} s {}{}", span.from_s, span.to_s, span.limiter, at(span.end))
        };
        let spans: Vec<_> = account.timeline.iter().map(span).collect();
        lines.push(("timeline", spans.join(", ")));
    }
    lines
}

/// The end, if the place is one of the hosts.
fn at(end: Place) -> String {
    match end {
        Place::Path => String::new(),
        host => format!(" ({host})"),
    }
}

#[cfg(test)]
mod tests {
    use goodput_model::{AccountPart, AccountSpan, Limiter};

    use super::*;

    #[test]
    fn parts_and_a_change_are_named() {
        let part = |limiter, end, seconds| AccountPart { limiter, end, seconds };
        let span = |from_s, to_s, limiter, end| AccountSpan { from_s, to_s, limiter, end };
        let mut account = Account {
            flows: 1,
            flow_seconds: 4.0,
            parts: vec![
                part(Limiter::ReceiveWindow, Place::Far, 3.61),
                part(Limiter::PathRate, Place::Path, 0.3),
                part(Limiter::Host, Place::Near, 0.001),
            ],
            unknown_s: 0.089,
            timeline: vec![
                span(0.0, 0.4, Limiter::Startup, Place::Path),
                span(0.4, 4.0, Limiter::ReceiveWindow, Place::Far),
            ],
        };
        assert_eq!(
            lines(&account),
            [
                ("time", "receive window (far) 3.6 s, path rate 0.3 s, unknown 0.1 s".to_owned()),
                ("timeline", "0.0-0.4 s startup, 0.4-4.0 s receive window (far)".to_owned()),
            ]
        );
        account.timeline.pop();
        assert_eq!(lines(&account).len(), 1);
    }
}
