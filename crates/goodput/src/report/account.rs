//! Who limited when, for readers who want more than the verdict.

use goodput_model::{Account, AccountSpan};

/// `0.0-0.4 s startup, 0.4-4.0 s receive window (far)`; nothing if one limiter held most of all the time.
pub fn timeline(account: &Account) -> Option<String> {
    let span = |span: &AccountSpan| {
        format!("{:.1}-{:.1} s {}", span.from_s, span.to_s, span.limiter.at(span.end))
    };
    let spans: Vec<_> = account.timeline.iter().map(span).collect();
    (spans.len() > 1).then(|| spans.join(", "))
}

#[cfg(test)]
mod tests {
    use goodput_model::{Limiter, Place};

    use super::*;

    #[test]
    fn a_change_is_told() {
        let span = |from_s, to_s, limiter, end| AccountSpan { from_s, to_s, limiter, end };
        let mut account = Account {
            flows: 1,
            flow_seconds: 4.0,
            parts: Vec::new(),
            unknown_s: 4.0,
            timeline: vec![
                span(0.0, 0.4, Limiter::Startup, Place::Path),
                span(0.4, 4.0, Limiter::ReceiveWindow, Place::Far),
            ],
            slices: Vec::new(),
        };
        let expected = "0.0-0.4 s startup, 0.4-4.0 s receive window (far)";
        assert_eq!(timeline(&account).as_deref(), Some(expected));
        account.timeline.pop();
        assert_eq!(timeline(&account), None);
    }
}
