//! The account: every moment of every flow belongs to one limiter, and all of them add up to the flows' time.
//!
//! The verdict is a cause of something that took time; see [`crate::Rule::refines`].

mod busy;
mod control;
mod flow;
mod full_path;
mod interval;
mod pair;
mod reader;
mod share;
mod silence;
mod state;
#[cfg(test)]
mod vectors;
mod work;

use goodput_model::{Account, AccountPart, AccountSpan, Limiter, Missing, Place};

use crate::view::View;
use flow::{Entry, entries};
use share::Ledger;
pub use share::{Part, Seat};
pub use silence::Outages;
pub use state::in_flight_segments;

/// Share of the time of which nothing may be known, if shares are to be reported.
const MAX_UNKNOWN_SHARE: f64 = 0.5;
/// Shortest stretch of the timeline, as a share of the time that was looked at.
const MIN_SPAN_SHARE: f64 = 0.1;

/// Where the time of the flows of one direction went.
///
/// # Errors
/// If the sender's samples do not say enough of any flow, or the payload is not TCP's.
pub fn account<'v>(view: &'v View) -> Result<&'v Account, Missing> {
    view.account_by(made)
}

/// Share of the flows' time that these parts held, 0 to 1.
///
/// # Errors
/// Those of [`account`], and if less than half of the time is accounted for.
pub fn held_share(view: &View, parts: &[Part]) -> Result<f64, Missing> {
    let account = account(view)?;
    if account.unknown_s > MAX_UNKNOWN_SHARE * account.flow_seconds {
        return Err(Missing::because("most of the flows' time is not accounted for"));
    }
    let places = parts.iter().map(|(limiter, seat)| (*limiter, place(view, *seat)));
    let places: Vec<_> = places.collect();
    let held = account.parts.iter().filter(|part| places.contains(&(part.limiter, part.end)));
    Ok(held.map(|part| part.seconds).sum::<f64>() / account.flow_seconds)
}

fn made(view: &View) -> Result<Account, Missing> {
    view.needs_tcp()?;
    let entries = entries(view)?;
    let measured: Vec<&Entry> = entries.iter().filter(|entry| entry.is_measured).collect();
    let flow_seconds = measured.iter().map(|entry| entry.to_s - entry.from_s).sum::<f64>();
    let known: Vec<&Ledger> =
        measured.iter().filter_map(|entry| entry.ledger.as_ref().ok()).collect();
    if known.is_empty() {
        let why = measured.iter().find_map(|entry| entry.ledger.as_ref().err());
        return Err(why.cloned().unwrap_or_else(|| Missing::because("no flow was sampled twice")));
    }
    let mut whole = Ledger::default();
    known.into_iter().for_each(|ledger| whole.add(ledger));
    let mut flows: Vec<u16> = measured.iter().map(|entry| entry.flow).collect();
    flows.sort_unstable();
    flows.dedup();
    Ok(Account {
        flows: flows.len(),
        flow_seconds,
        unknown_s: (flow_seconds - whole.sum()).max(0.0),
        parts: parts(view, &whole),
        timeline: timeline(view, &entries),
    })
}

fn parts(view: &View, ledger: &Ledger) -> Vec<AccountPart> {
    let part =
        |((limiter, seat), seconds)| AccountPart { limiter, end: place(view, seat), seconds };
    let mut parts: Vec<_> = ledger.entries().map(part).collect();
    parts.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    parts
}

fn place(view: &View, seat: Seat) -> Place {
    match seat {
        Seat::Sender => view.sender.place(),
        Seat::Receiver => view.receiver.place(),
        Seat::Path => Place::Path,
    }
}

/// Who limited when, over the whole run: the limiter that held most of all flows, interval by interval; a stretch that is
/// too short to be shown belongs to the one before it.
fn timeline(view: &View, entries: &[Entry]) -> Vec<AccountSpan> {
    let mut spans: Vec<(f64, f64, Limiter, Seat)> = Vec::new();
    let mut from = 0;
    while let Some(first) = entries.get(from) {
        let until = entries[from..].iter().position(|entry| entry.from_s != first.from_s);
        let until = until.map_or(entries.len(), |more| from + more);
        let mut all = Ledger::default();
        entries[from..until]
            .iter()
            .filter_map(|entry| entry.ledger.as_ref().ok())
            .for_each(|l| all.add(l));
        if let Some(((limiter, seat), _)) = all.largest() {
            match spans.last_mut() {
                Some(last) if (last.2, last.3) == (limiter, seat) => last.1 = first.to_s,
                _ => spans.push((first.from_s, first.to_s, limiter, seat)),
            }
        }
        from = until;
    }
    let spans = without_short(spans);
    let named = |(from_s, to_s, limiter, seat)| AccountSpan {
        from_s,
        to_s,
        limiter,
        end: place(view, seat),
    };
    spans.into_iter().map(named).collect()
}

fn without_short(spans: Vec<(f64, f64, Limiter, Seat)>) -> Vec<(f64, f64, Limiter, Seat)> {
    let whole =
        spans.last().map_or(0.0, |last| last.1) - spans.first().map_or(0.0, |first| first.0);
    let mut kept: Vec<(f64, f64, Limiter, Seat)> = Vec::new();
    for span in spans {
        match kept.last_mut() {
            Some(last) if (last.2, last.3) == (span.2, span.3) => last.1 = span.1,
            Some(last) if span.1 - span.0 < MIN_SPAN_SHARE * whole => last.1 = span.1,
            _ => kept.push(span),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Case;

    fn largest(case: Case) -> (Limiter, Place) {
        let account = made(&View::new(&case.evidence())).unwrap();
        let sum: f64 = account.parts.iter().map(|part| part.seconds).sum();
        assert!((sum + account.unknown_s - account.flow_seconds).abs() < 1e-6, "{account:?}");
        (account.parts[0].limiter, account.parts[0].end)
    }

    #[test]
    fn each_cause_falls_to_its_limiter() {
        for (case, expected) in [
            (Case::receive_window(), (Limiter::ReceiveWindow, Place::Far)),
            (Case::send_buffer(), (Limiter::SendBuffer, Place::Near)),
            (Case::sender_application(), (Limiter::Application, Place::Near)),
            (Case::throttled_receiver(), (Limiter::Host, Place::Far)),
            (Case::path_rate(), (Limiter::PathRate, Place::Path)),
        ] {
            assert_eq!(largest(case), expected);
        }
    }

    #[test]
    fn a_silent_sender_has_no_account() {
        let evidence = Case::empty().evidence();
        assert!(made(&View::new(&evidence)).is_err());
    }

    #[test]
    fn a_stretch_too_short_to_be_shown_belongs_to_the_one_before() {
        let span = |from, to, limiter| (from, to, limiter, Seat::Path);
        let spans = vec![
            span(0.0, 3.0, Limiter::Startup),
            span(3.0, 3.1, Limiter::Recovery),
            span(3.1, 9.0, Limiter::PathRate),
            span(9.0, 9.2, Limiter::Recovery),
            span(9.2, 10.0, Limiter::PathRate),
        ];
        let kept = without_short(spans);
        assert_eq!(kept, [span(0.0, 3.1, Limiter::Startup), span(3.1, 10.0, Limiter::PathRate)]);
    }
}
