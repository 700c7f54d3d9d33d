//! Who limited how much of the flows' time, in each slice of the run: what a picture of it shows.

use goodput_model::{AccountShare, AccountSlice, EndName};

use super::flow::Entry;
use super::place;
use super::share::Ledger;

/// Most slices of a run. More would be narrower than what an eye tells apart.
const MAX_SLICES: usize = 100;

/// The slices of equal length in which `entries` lie, by their middles; a slice is as long as what lies in it.
pub fn slices(sender: EndName, entries: &[Entry]) -> Vec<AccountSlice> {
    let (Some(first), Some(last)) = (entries.first(), entries.last()) else { return Vec::new() };
    let width_s = (last.to_s - first.from_s) / MAX_SLICES as f64;
    let number = |entry: &Entry| {
        let middle_s = (entry.from_s + entry.to_s) / 2.0;
        ((middle_s - first.from_s) / width_s) as usize
    };
    let together = |one: &Entry, next: &Entry| number(one) == number(next);
    entries.chunk_by(together).map(|inside| slice(sender, inside)).collect()
}

fn slice(sender: EndName, entries: &[Entry]) -> AccountSlice {
    let (mut whole, mut flow_seconds) = (Ledger::default(), 0.0);
    for entry in entries {
        flow_seconds += entry.to_s - entry.from_s;
        entry.ledger.iter().for_each(|ledger| whole.add(ledger));
    }
    let share = |((limiter, seat), held): (super::Part, super::Held)| AccountShare {
        limiter,
        end: place(sender, seat),
        share: (held.time / flow_seconds).min(1.0),
    };
    let mut parts: Vec<_> = whole.entries().map(share).filter(|part| part.share > 0.0).collect();
    parts.sort_by(|a, b| b.share.total_cmp(&a.share));
    let ends_s = entries.iter().map(|entry| entry.to_s);
    AccountSlice {
        from_s: entries.iter().map(|entry| entry.from_s).fold(f64::INFINITY, f64::min),
        to_s: ends_s.fold(f64::NEG_INFINITY, f64::max),
        parts,
    }
}

#[cfg(test)]
mod tests {
    use goodput_model::{Limiter, Missing, Place};

    use super::super::Seat;
    use super::*;

    /// One flow between two samples, in which these held the time.
    fn entry(flow: u16, from_s: f64, to_s: f64, held: &[(Limiter, Seat, f64)]) -> Entry {
        let mut ledger = Ledger::default();
        held.iter().for_each(|(limiter, seat, time)| ledger.enter(*limiter, *seat, *time));
        let ledger = match held {
            [] => Err(Missing::because("of a test")),
            _ => Ok(ledger),
        };
        Entry { flow, from_s, to_s, is_measured: true, ledger, as_before: None }
    }

    #[test]
    fn flows_with_different_limiters_share_a_slice() {
        let path = |flow| entry(flow, 0.0, 0.1, &[(Limiter::PathRate, Seat::Path, 0.1)]);
        let window = entry(2, 0.0, 0.1, &[(Limiter::ReceiveWindow, Seat::Receiver, 0.1)]);
        let unknown = entry(3, 0.0, 0.1, &[]);
        let [slice] = &slices(EndName::Near, &[path(0), path(1), window, unknown])[..] else {
            panic!("they are at one time")
        };
        let shares: Vec<_> =
            slice.parts.iter().map(|part| (part.limiter, part.end, part.share)).collect();
        let expected =
            [(Limiter::PathRate, Place::Path, 0.5), (Limiter::ReceiveWindow, Place::Far, 0.25)];
        assert_eq!(shares.len(), 2);
        for (share, expected) in shares.iter().zip(expected) {
            assert_eq!((share.0, share.1), (expected.0, expected.1));
            assert!((share.2 - expected.2).abs() < 1e-9, "{shares:?}");
        }
    }

    #[test]
    fn a_long_run_has_a_hundred_slices_without_a_gap() {
        let held = [(Limiter::PathRate, Seat::Path, 0.1)];
        let one = |n: u32| entry(0, f64::from(n) / 10.0, f64::from(n + 1) / 10.0, &held);
        for (count, expected) in [(6000, 100), (30, 30), (1, 1)] {
            let entries: Vec<_> = (0..count).map(one).collect();
            let slices = slices(EndName::Near, &entries);
            assert_eq!(slices.len(), expected);
            assert!(slices.windows(2).all(|pair| pair[0].to_s == pair[1].from_s));
            assert!(slices.iter().all(|slice| (slice.parts[0].share - 1.0).abs() < 1e-6));
        }
        assert_eq!(super::slices(EndName::Near, &[]), []);
    }
}
