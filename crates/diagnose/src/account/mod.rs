//! The account: every moment of every flow belongs to one limiter, and all of them add up to the flows' time.
//!
//! The verdict is a cause of something that took time; see [`crate::Rule::refines`].

mod alone;
mod busy;
mod control;
mod flow;
mod full_path;
mod held;
mod interval;
mod pair;
mod precision;
mod reader;
mod share;
mod silence;
mod slices;
mod state;
#[cfg(test)]
mod vectors;
mod work;

use goodput_model::{
    Account, AccountPart, AccountSpan, EndName, Evidence, Limiter, Missing, Place,
};

use crate::parts;
use crate::view::View;
use flow::{Entry, entries};
pub use held::HeldShare;
pub use interval::is_paced_out;
use precision::Looks;
pub use reader::reader_is_behind;
use share::{Held, Ledger};
pub use share::{Part, Seat};
pub use silence::Outages;
pub use state::{CA_LOSS, in_flight_segments};

/// Share of the time of which nothing may be known, if shares are to be reported.
const MAX_UNKNOWN_SHARE: f64 = 0.5;
/// Shortest stretch of the timeline, as a share of the time that was looked at.
const MIN_SPAN_SHARE: f64 = 0.1;

/// Where the time of the flows of one direction went.
///
/// # Errors
/// If neither the sender's samples nor, without them, the receiver's say enough of any flow.
pub fn account<'v>(view: &'v View) -> Result<&'v Account, Missing> {
    view.account_by(made)
}

/// The same, of a measurement that need not have ended: the window says which part of it.
///
/// # Errors
/// Those of `account`.
pub fn account_of(evidence: &Evidence) -> Result<Account, Missing> {
    made(&View::new(evidence))
}

/// Who limited within the window of `evidence`, the largest first, without the rest of the account. It is called for
/// thousands of connections a second.
///
/// # Errors
/// Those of `account`.
pub fn parts_of(evidence: &Evidence) -> Result<Vec<AccountPart>, Missing> {
    let view = View::new(evidence);
    let entries = every_interval(&view)?;
    let measured = measured(&entries);
    Ok(parts(view.sender.name, &whole(&measured)?, &Looks::of(&measured)))
}

/// Share of the flows' time that these parts held, 0 to 1.
///
/// # Errors
/// Those of [`held()`].
pub fn held_share(view: &View, parts: &[Part]) -> Result<f64, Missing> {
    Ok(held(view, parts)?.share())
}

/// The same with the range in which it lies.
///
/// # Errors
/// Those of [`account`], and if less than half of the time is accounted for.
pub fn held(view: &View, parts: &[Part]) -> Result<HeldShare, Missing> {
    share_of(account(view)?, view.sender.name, parts)
}

/// The same by an account of what this end sent.
///
/// # Errors
/// If less than half of the time is accounted for.
pub fn share_of(account: &Account, sender: EndName, parts: &[Part]) -> Result<HeldShare, Missing> {
    if account.unknown_s > MAX_UNKNOWN_SHARE * account.flow_seconds {
        return Err(Missing::because("most of the flows' time is not accounted for"));
    }
    let places = parts.iter().map(|(limiter, seat)| (*limiter, place(sender, *seat)));
    let places: Vec<_> = places.collect();
    let held = account.parts.iter().filter(|part| places.contains(&(part.limiter, part.end)));
    let full = account.parts.iter().filter(|part| part.limiter == Limiter::PathRate);
    let full_s = full.map(|part| part.seconds).sum();
    Ok(HeldShare::of(held, account.flow_seconds, full_s))
}

/// Share of the flows' time that the path between the hosts held, 0 to 1.
///
/// # Errors
/// Those of [`held_share`].
pub fn path_share(view: &View) -> Result<f64, Missing> {
    held_share(view, parts::PATH)
}

/// Of every flow, in the order of time.
fn every_interval(view: &View) -> Result<Vec<Entry>, Missing> {
    if view.is_sender_silent() { alone::entries(view) } else { entries(view) }
}

fn measured(entries: &[Entry]) -> Vec<&Entry> {
    entries.iter().filter(|entry| entry.is_measured).collect()
}

/// All that is known of these entries, at least of one.
fn whole(measured: &[&Entry]) -> Result<Ledger, Missing> {
    let mut known = measured.iter().filter_map(|entry| entry.ledger.as_ref().ok()).peekable();
    if known.peek().is_none() {
        let why = measured.iter().find_map(|entry| entry.ledger.as_ref().err());
        return Err(why.cloned().unwrap_or_else(|| Missing::because("no flow was sampled twice")));
    }
    let mut whole = Ledger::default();
    known.for_each(|ledger| whole.add(ledger));
    Ok(whole)
}

fn made(view: &View) -> Result<Account, Missing> {
    let entries = every_interval(view)?;
    let measured = measured(&entries);
    let whole = whole(&measured)?;
    let flow_seconds = measured.iter().map(|entry| entry.to_s - entry.from_s).sum::<f64>();
    let mut flows: Vec<u16> = measured.iter().map(|entry| entry.flow).collect();
    flows.sort_unstable();
    flows.dedup();
    Ok(Account {
        flows: flows.len(),
        flow_seconds,
        unknown_s: (flow_seconds - whole.sum()).max(0.0),
        parts: parts(view.sender.name, &whole, &Looks::of(&measured)),
        timeline: timeline(view.sender.name, &entries),
        slices: slices::slices(view.sender.name, &entries),
    })
}

fn parts(sender: EndName, ledger: &Ledger, looks: &Looks) -> Vec<AccountPart> {
    let part = |((limiter, seat), held): (Part, Held)| AccountPart {
        limiter,
        end: place(sender, seat),
        seconds: held.time,
        between_s: Some(looks.between_s((limiter, seat), held)),
    };
    let mut parts: Vec<_> = ledger.entries().map(part).collect();
    parts.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    parts
}

fn place(sender: EndName, seat: Seat) -> Place {
    match seat {
        Seat::Sender => sender.into(),
        Seat::Receiver => sender.other().into(),
        Seat::Path => Place::Path,
    }
}

/// Who limited when, over the whole run: the limiter that held most of all flows, interval by interval; a stretch that is
/// too short to be shown belongs to the one before it.
fn timeline(sender: EndName, entries: &[Entry]) -> Vec<AccountSpan> {
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
        end: place(sender, seat),
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
    use std::sync::Arc;

    use goodput_model::{Direction, FlowSample, Known};

    use super::*;
    use crate::names;
    use crate::testing::Case;

    fn largest(case: Case) -> (Limiter, Place) {
        largest_of(&case.evidence())
    }

    fn largest_of(evidence: &Evidence) -> (Limiter, Place) {
        let account = made(&View::new(evidence)).unwrap();
        assert_eq!(parts_of(evidence), Ok(account.parts.clone()));
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

    /// Flows that burst into a queue and then have nothing on its way: their smoothed round trips still show it.
    #[test]
    fn a_queue_is_not_full_while_nothing_is_on_its_way() {
        let bursts = |busy| largest(Case::path_rate().shares(busy, 0.0, 0.0).writer(0.1, 0.0, 0.1));
        assert_eq!(bursts(0.15), (Limiter::Application, Place::Near));
        assert_eq!(bursts(0.9), (Limiter::PathRate, Place::Path));
    }

    /// 32 flows of a process that a quota stops for 85 % of the time: in turns, they would fill the path.
    #[test]
    fn a_stopped_process_leaves_the_path_idle_however_many_flows_it_has() {
        let throttled = |us: u64| {
            let case = Case::path_rate().goodput(2e6).shares(0.15, 0.0, 0.0).writer(0.1, 0.0, 0.1);
            let mut evidence = case.grows(EndName::Near, names::THROTTLED_US, us).evidence();
            let Known::Value(near) = &mut evidence.near else { panic!("the case has it") };
            for sample in &mut Arc::make_mut(near).samples {
                let one = sample.flows.pop().expect("each has one flow");
                sample.flows = (0..32).map(|flow| FlowSample { flow, ..one.clone() }).collect();
            }
            largest_of(&evidence)
        };
        assert_eq!(throttled(3_570_000), (Limiter::Host, Place::Near));
        assert_eq!(throttled(0), (Limiter::PathRate, Place::Path));
    }

    /// Of 112 segments in flight nothing arrives for three samples, until a time-out, and in the next three, 30 % of the usual
    /// rate. From then on, round trips take this long. The kernel takes the time-out for a loss in the first two of these.
    fn recovery_s(rtt_us: u64) -> f64 {
        let case = Case::path_rate().tcp(move |tcp, number| {
            let since = |from: u64| number.saturating_sub(from).min(3);
            let arrived = 1_000 * (number - since(10)) - 700 * since(13);
            tcp.unacked_segments = Some(112);
            (tcp.delivered_segments, tcp.segs_in) = (Some(arrived), Some(arrived / 2));
            let in_loss = (13..16).contains(&number);
            (tcp.total_rto, tcp.ca_state) =
                (Some(u64::from(number >= 13)), Some(if in_loss { 4 } else { 0 }));
            // The time-out sends the first of them again.
            tcp.total_retrans_segments = Some(u64::from(number >= 13));
            tcp.rtt_us = Some(if number > 13 { rtt_us } else { 20_000 });
        });
        let account = made(&View::new(&case.evidence())).unwrap();
        let recovery = account.parts.iter().filter(|part| part.limiter == Limiter::Recovery);
        recovery.map(|part| part.seconds).sum()
    }

    #[test]
    fn a_silence_that_was_a_queue_is_the_path_s() {
        assert_eq!(recovery_s(640_000), 0.0);
        // The silence, and what lacks of the rate in two more samples.
        let lost_s = recovery_s(58_000);
        assert!((lost_s - 0.44).abs() < 1e-6, "{lost_s}");
    }

    /// Nothing comes back while the flows run, and exchanges wait this long on their way back.
    fn silent(back_s: f64) -> Case {
        Case::path_rate().waits(0.0, back_s).congestion("cubic").tcp(|tcp, _| {
            (tcp.delivered_segments, tcp.unacked_segments) = (Some(2), Some(11));
            (tcp.snd_cwnd_segments, tcp.rtt_us) = (Some(11), tcp.min_rtt_us);
        })
    }

    /// Acknowledgements that wait for longer than the flows run: whatever the window, it is not the start that limits.
    #[test]
    fn what_a_queue_keeps_until_the_end_is_the_path_s() {
        assert_eq!(largest(silent(9.0)), (Limiter::PathRate, Place::Path));
        assert_eq!(largest(silent(0.0)), (Limiter::Startup, Place::Path));
    }

    #[test]
    fn what_could_not_yet_be_back_over_a_long_path_is_kept_by_no_queue() {
        // Longer than the flows run, and a queue beyond 0.6 s.
        assert_eq!(largest(silent(0.0).far_apart(2.5)), (Limiter::Startup, Place::Path));
        let account = made(&View::new(&silent(9.0).far_apart(0.3).evidence())).unwrap();
        let startup = account.parts.iter().find(|part| part.limiter == Limiter::Startup);
        // Of the window, which begins at 0.45 s, one interval of 0.1 s ends by then.
        assert!(startup.is_some_and(|part| (part.seconds - 0.1).abs() < 1e-6), "{account:?}");
    }

    #[test]
    fn a_window_that_the_other_direction_s_queue_fills_stays_the_receivers() {
        let case = || {
            let case = Case::receive_window().shares(1.0, 0.27, 0.0).goodput(43.5e6);
            case.tcp(|tcp, _| {
                (tcp.snd_wnd_bytes, tcp.unacked_segments) = (Some(162_432), Some(112));
                (tcp.rtt_us, tcp.min_rtt_us) = (Some(30_000), Some(10_037));
            })
        };
        assert_eq!(largest(case()), (Limiter::PathRate, Place::Path));
        let both = case().plan(|plan| plan.direction = Direction::Both);
        assert_eq!(largest(both), (Limiter::ReceiveWindow, Place::Far));
    }

    #[test]
    fn a_buffer_that_losses_fill_is_not_too_small() {
        // BBR at 10 ms and 3 % of loss: 1006 Mbit/s with 4 MiB of buffer, as measured.
        let case = |again| {
            let case = Case::send_buffer().goodput(1006e6).retransmitted(again);
            let case = case.plan(|plan| plan.socket.sndbuf_bytes = None);
            case.tcp(|tcp, _| (tcp.rtt_us, tcp.min_rtt_us) = (Some(10_150), Some(10_000)))
        };
        assert_eq!(largest(case(0.03)), (Limiter::Recovery, Place::Path));
        assert_eq!(largest(case(0.0001)), (Limiter::SendBuffer, Place::Near));
    }

    #[test]
    fn of_datagrams_the_sender_s_own_turn_is_told_from_its_waits() {
        let sent = |blocked, paced, ran| largest(Case::healthy_udp().writer(blocked, paced, ran));
        assert_eq!(sent(0.8, 0.0, 0.2), (Limiter::PathRate, Place::Path));
        assert_eq!(sent(0.0, 0.8, 0.2), (Limiter::Application, Place::Near));
        assert_eq!(sent(0.1, 0.0, 0.9), (Limiter::Host, Place::Near));
    }

    #[test]
    fn a_receiver_alone_knows_when_it_was_the_limit() {
        let silent = |window_bytes| {
            let case = Case::healthy().goodput(12.5e6);
            case.silent_sender(move |tcp, _| tcp.rcv_wnd_bytes = Some(window_bytes))
        };
        assert_eq!(largest(silent(65_536)), (Limiter::ReceiveWindow, Place::Far));
        assert!(made(&View::new(&silent(1 << 20).evidence())).is_err());
        let behind = silent(1 << 20).reader(0.0, 0.0, 0.9).queued(500_000);
        assert_eq!(largest(behind), (Limiter::Host, Place::Far));
    }

    #[test]
    fn silent_ends_have_no_account() {
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
