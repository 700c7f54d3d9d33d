//! The band below the rate: who limited how much of the flows' time, moment by moment.

use goodput_model::{Account, AccountSlice, EndName, Interval, Limiter, Record, Verdict};

use crate::palette;
use crate::plot::{Layer, Shape};
use crate::words;

/// Where the band begins between zero and its floor, as a share of that.
const TOP: f64 = 0.12;

/// Differences of shares below this are not seen; boxes beside each other become one.
const EQUAL: f64 = 0.005;

/// Share of an interval from which a limiter of it is named.
const MIN_NAMED_SHARE: f64 = 0.05;

/// The account of a direction.
pub fn account(record: &Record, sender: EndName) -> Option<&Account> {
    let verdict: Option<&Verdict> = [Some(&record.verdict), record.verdict_reverse.as_ref()]
        .into_iter()
        .flatten()
        .find(|v| v.sender == sender);
    verdict?.account.value()
}

/// The shares of each moment, one upon the other, between zero and `floor`. What has no limiter is left free. A record of
/// an older version knows the main limiter of each time only.
pub fn layers(account: &Account, floor: f64) -> Vec<Layer> {
    drawn(|limiter| scaled(boxes(account, limiter), [TOP * floor, floor]))
}

/// The shares of each moment of several runs. The band of each lies between the two heights beside it.
pub fn layers_of(runs: &[(&[AccountSlice], [f64; 2])]) -> Vec<Layer> {
    let of_run = |limiter, (slices, between): &(&[AccountSlice], [f64; 2])| {
        scaled(boxes_of(slices, limiter), *between)
    };
    drawn(|limiter| runs.iter().flat_map(|run| of_run(limiter, run)).collect())
}

/// Two corners of a box.
type Corners = [(f64, f64); 2];

/// A layer for each limiter that has boxes.
fn drawn(boxes: impl Fn(Limiter) -> Vec<Corners>) -> Vec<Layer> {
    let named = |limiter: Limiter| {
        let boxes = boxes(limiter);
        let colour = palette::limiter(limiter);
        (!boxes.is_empty()).then(|| Layer::named(limiter.to_string(), colour, Shape::Boxes(boxes)))
    };
    Limiter::ALL.into_iter().filter_map(named).collect()
}

/// Boxes of shares, as boxes between two heights: no share is at the first one.
fn scaled(boxes: Vec<Corners>, [none, all]: [f64; 2]) -> Vec<Corners> {
    let at = |(time, share): (f64, f64)| (time, none + (all - none) * share);
    boxes.into_iter().map(|corners| corners.map(at)).collect()
}

/// The boxes of a limiter: times, and from which to which share.
fn boxes(account: &Account, limiter: Limiter) -> Vec<Corners> {
    if account.slices.is_empty() {
        let spans = account.timeline.iter().filter(|span| span.limiter == limiter);
        return spans.map(|span| [(span.from_s, 1.0), (span.to_s, 0.0)]).collect();
    }
    boxes_of(&account.slices, limiter)
}

fn boxes_of(slices: &[AccountSlice], limiter: Limiter) -> Vec<Corners> {
    let mut boxes: Vec<Corners> = Vec::new();
    for slice in slices {
        let before = Limiter::ALL.iter().take_while(|other| **other != limiter);
        let above: f64 = before.map(|other| share(slice, *other)).sum();
        let below = above + share(slice, limiter);
        if below - above < EQUAL {
            continue;
        }
        match boxes.last_mut() {
            Some([from, to])
                if to.0 == slice.from_s
                    && (from.1 - below).abs() < EQUAL
                    && (to.1 - above).abs() < EQUAL =>
            {
                to.0 = slice.to_s;
            }
            _ => boxes.push([(slice.from_s, below), (slice.to_s, above)]),
        }
    }
    boxes
}

/// What a limiter held of a slice, wherever it is.
fn share(slice: &AccountSlice, limiter: Limiter) -> f64 {
    slice.parts.iter().filter(|part| part.limiter == limiter).map(|part| part.share).sum()
}

/// Who limited in an interval, with shares if there were several; empty if nobody is known.
pub fn limited_by(account: &Account, interval: &Interval) -> String {
    let all = named(|limiter| held_share(account, interval, limiter));
    match &all[..] {
        [(only, share)] if *share > 1.0 - MIN_NAMED_SHARE => only.to_string(),
        _ if account.slices.is_empty() => {
            all.first().map(|(main, _)| main.to_string()).unwrap_or_default()
        }
        all => listed(all),
    }
}

/// Who limited how much of a whole run, the most first.
pub fn limiters(slices: &[AccountSlice]) -> String {
    let length_s = |slice: &AccountSlice| slice.to_s - slice.from_s;
    let whole_s: f64 = slices.iter().map(length_s).sum();
    let held_s =
        |limiter| slices.iter().map(|one| length_s(one) * share(one, limiter)).sum::<f64>();
    listed(&named(|limiter| held_s(limiter) / whole_s))
}

/// The limiters that are worth a name by the shares that they `held`, the most first.
fn named(held: impl Fn(Limiter) -> f64) -> Vec<(Limiter, f64)> {
    let all = Limiter::ALL.into_iter().map(|limiter| (limiter, held(limiter)));
    let mut all: Vec<_> = all.filter(|(_, share)| *share >= MIN_NAMED_SHARE).collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    all
}

fn listed(all: &[(Limiter, f64)]) -> String {
    let one = |(limiter, share): &(Limiter, f64)| {
        format!("{limiter} {}", words::percent((share * 100.0).round()))
    };
    all.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// The share of an interval that a limiter held.
fn held_share(account: &Account, interval: &Interval, limiter: Limiter) -> f64 {
    let length_s = interval.to_s - interval.from_s;
    let shared = |from_s: f64, to_s: f64| {
        (to_s.min(interval.to_s) - from_s.max(interval.from_s)).max(0.0) / length_s
    };
    if account.slices.is_empty() {
        let spans = account.timeline.iter().filter(|span| span.limiter == limiter);
        return spans.map(|span| shared(span.from_s, span.to_s)).sum();
    }
    let slices = account.slices.iter();
    slices.map(|slice| shared(slice.from_s, slice.to_s) * share(slice, limiter)).sum()
}

#[cfg(test)]
mod tests {
    use goodput_model::{AccountShare, AccountSpan, Known, Place};

    use super::*;

    fn account() -> Account {
        let span = |from_s, to_s, limiter| AccountSpan { from_s, to_s, limiter, end: Place::Far };
        Account {
            flows: 1,
            flow_seconds: 3.0,
            parts: Vec::new(),
            unknown_s: 0.0,
            timeline: vec![
                span(0.0, 1.2, Limiter::Startup),
                span(1.2, 1.5, Limiter::ReceiveWindow),
                span(1.6, 3.0, Limiter::PathRate),
            ],
            slices: Vec::new(),
        }
    }

    /// Two slices: one limiter at both ends, and then another beside it.
    fn sliced() -> Account {
        let part = |limiter, end, share| AccountShare { limiter, end, share };
        let slice = |from_s, to_s, parts| AccountSlice { from_s, to_s, parts };
        let host = |end, share| part(Limiter::Host, end, share);
        Account {
            slices: vec![
                slice(0.0, 1.0, vec![host(Place::Near, 0.5), host(Place::Far, 0.5)]),
                slice(1.0, 2.0, vec![host(Place::Near, 1.0)]),
                slice(
                    2.0,
                    3.0,
                    vec![host(Place::Far, 0.6), part(Limiter::PathRate, Place::Path, 0.3)],
                ),
            ],
            ..account()
        }
    }

    fn interval(from_s: f64, to_s: f64) -> Interval {
        Interval {
            sender: EndName::Near,
            from_s,
            to_s,
            received_bytes: Known::missing("of a test"),
            goodput_bits_per_s: Known::missing("of a test"),
            sent_bits_per_s: None,
        }
    }

    #[test]
    fn an_older_record_has_the_limiter_that_held_most_of_an_interval() {
        let of = |from_s, to_s| limited_by(&account(), &interval(from_s, to_s));
        assert_eq!(of(0.0, 1.0), "startup");
        assert_eq!(of(1.0, 2.0), "path rate");
        assert_eq!(of(3.0, 4.0), "");
        assert_eq!(boxes(&account(), Limiter::Startup), [[(0.0, 1.0), (1.2, 0.0)]]);
    }

    #[test]
    fn the_shares_of_a_moment_stand_one_upon_the_other() {
        let account = sliced();
        let of = |limiter| boxes(&account, limiter);
        assert_eq!(of(Limiter::PathRate), [[(2.0, 0.3), (3.0, 0.0)]]);
        let [whole, beside] = of(Limiter::Host)[..] else { panic!("two boxes") };
        assert_eq!(whole, [(0.0, 1.0), (2.0, 0.0)], "equal ones are one");
        assert_eq!((beside[0].0, beside[1]), (2.0, (3.0, 0.3)));
        assert!((beside[0].1 - 0.9).abs() < 1e-9, "a tenth is unknown");
    }

    #[test]
    fn an_interval_names_all_who_limited_it() {
        let of = |from_s, to_s| limited_by(&sliced(), &interval(from_s, to_s));
        assert_eq!(of(0.0, 2.0), "host");
        assert_eq!(of(2.0, 3.0), "host 60 %, path rate 30 %");
        assert_eq!(of(1.0, 3.0), "host 80 %, path rate 15 %");
    }
}
