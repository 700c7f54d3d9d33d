//! How precisely the time of a limiter is known.
//!
//! What the kernel counts all the time is exact over the window. The rest stands on states that samples saw at an instant, and
//! a state may begin and end anywhere between two samples. Samples at regular distances are a systematic sample, whose
//! variance the successive differences estimate: it counts how often the states changed, and needs no model of how they follow
//! each other (K. M. Wolter, Introduction to Variance Estimation, 2nd edition 2007, section 8.2, estimator v2).
//!
//! The difference of an interval is what would change if its samples had seen again what those before saw, by the same
//! counters. So what is counted takes no part in it.

use std::collections::BTreeMap;

use super::flow::Entry;
use super::share::{Held, Ledger, Part};

/// Standard deviations of a normal distribution on either side that hold 95 % of it.
const DEVIATIONS: f64 = 1.96;
/// If none of n looks saw something, it took at most this part of n of the time, with 95 % confidence: the rule of three (J. A.
/// Hanley and A. Lippman-Hand, JAMA 249 (1983), page 1743).
const UNSEEN_LOOKS: f64 = 3.0;

/// What the samples of all flows saw at the same moments.
#[derive(Debug, Default)]
pub struct Looks {
    count: f64,
    compared: f64,
    /// All that is accounted for, seconds.
    all_s: f64,
    /// Of it, what stands on them.
    seen_s: f64,
    /// Sum of the squares of what each part gained or lost from one look to the next, square seconds.
    squares: BTreeMap<Part, f64>,
}

impl Looks {
    /// Of all intervals, in the order of time.
    pub fn of(entries: &[&Entry]) -> Self {
        let mut looks = Self::default();
        for at_once in entries.chunk_by(|a, b| a.from_s == b.from_s) {
            looks.take(at_once);
        }
        looks
    }

    /// Takes what was seen of all flows in one interval: what changes in several flows at once is one change.
    fn take(&mut self, at_once: &[&Entry]) {
        let (mut now, mut before) = (Ledger::default(), Ledger::default());
        for entry in at_once {
            let Ok(ledger) = &entry.ledger else { continue };
            self.all_s += ledger.sum();
            self.seen_s += ledger.seen();
            if let Some(as_before) = &entry.as_before {
                now.add(ledger);
                before.add(as_before);
            }
        }
        self.count += 1.0;
        if now.sum() > 0.0 {
            self.compared += 1.0;
        }
        for (part, held) in now.entries() {
            self.change(part, held.time - before.held(part).time);
        }
        for (part, held) in before.entries().filter(|(part, _)| now.held(*part).time == 0.0) {
            self.change(part, held.time);
        }
    }

    fn change(&mut self, part: Part, by_s: f64) {
        // What rounding makes of the same time is no change.
        if by_s.abs() > 1e-9 {
            *self.squares.entry(part).or_default() += by_s * by_s;
        }
    }

    /// The range in which a part's time lies with 95 % confidence, seconds: not below nothing, and not above all.
    pub fn between_s(&self, part: Part, held: Held) -> [f64; 2] {
        let Some(squares) = self.squares.get(&part) else {
            let unseen = UNSEEN_LOOKS / self.count.max(UNSEEN_LOOKS);
            let elsewhere_s = (self.seen_s - held.seen).max(0.0);
            return [held.time - unseen * held.seen, held.time + unseen * elsewhere_s];
        };
        let variance = 0.5 * self.count / self.compared * squares;
        let either_way_s = DEVIATIONS * variance.sqrt();
        [(held.time - either_way_s).max(0.0), (held.time + either_way_s).min(self.all_s)]
    }
}

#[cfg(test)]
mod tests {
    use goodput_model::Limiter::{PathRate, ReceiveWindow};
    use rand::rngs::Xoshiro256PlusPlus;
    use rand::{RngExt, SeedableRng};

    use super::super::share::Seat::{Path, Receiver};
    use super::*;

    const WINDOW: Part = (ReceiveWindow, Receiver);
    const QUEUE: Part = (PathRate, Path);
    const STEP_S: f64 = 0.1;

    fn ledger(part: Part, counted: bool) -> Ledger {
        let mut ledger = Ledger::default();
        ledger.enter(part.0, part.1, STEP_S);
        if counted { ledger } else { ledger.all_seen() }
    }

    /// One flow, of which each sample sees the window closed or the queue.
    fn entries(closed: &[bool]) -> Vec<Entry> {
        let part = |closed: bool| if closed { WINDOW } else { QUEUE };
        let mut before = None;
        let one = |(number, closed): (usize, &bool)| Entry {
            flow: 0,
            from_s: number as f64 * STEP_S,
            to_s: (number + 1) as f64 * STEP_S,
            is_measured: true,
            ledger: Ok(ledger(part(*closed), false)),
            as_before: before.replace(*closed).map(|before| ledger(part(before), false)),
        };
        closed.iter().enumerate().map(one).collect()
    }

    fn between_s(entries: &[Entry], part: Part) -> [f64; 2] {
        let all: Vec<&Entry> = entries.iter().collect();
        let mut whole = Ledger::default();
        entries.iter().for_each(|entry| whole.add(entry.ledger.as_ref().unwrap()));
        Looks::of(&all).between_s(part, whole.held(part))
    }

    fn closed_s(closed: &[bool]) -> [f64; 2] {
        between_s(&entries(closed), WINDOW)
    }

    #[test]
    fn one_look_is_no_proof_and_two_in_a_row_are() {
        let seen_at = |looks: &[usize]| {
            closed_s(&(0..40).map(|number| looks.contains(&number)).collect::<Vec<_>>())
        };
        assert_eq!(seen_at(&[7])[0], 0.0);
        assert_eq!(seen_at(&[7, 20])[0], 0.0);
        assert!(seen_at(&[7, 8])[0] > 0.0);
        assert!(seen_at(&[7, 17, 27, 37, 3])[0] > 0.0);
    }

    #[test]
    fn states_that_last_are_known_more_precisely_than_those_that_alternate() {
        let width = |often: u32| {
            let looks: Vec<_> = (0..40).map(|number| (number / often).is_multiple_of(2)).collect();
            let [low, high] = closed_s(&looks);
            high - low
        };
        assert!(
            width(1) > 2.0 * width(5) && width(5) > 1.5 * width(20),
            "{} {}",
            width(1),
            width(5)
        );
    }

    #[test]
    fn what_every_look_saw_may_have_been_something_else_between_them() {
        let all = closed_s(&[true; 40]);
        assert!((all[0] - 4.0 * (1.0 - 3.0 / 40.0)).abs() < 1e-9, "{all:?}");
        assert!((all[1] - 4.0).abs() < 1e-9, "{all:?}");
        assert_eq!(closed_s(&[true]), [0.0, STEP_S]);
    }

    #[test]
    fn what_is_counted_is_exact() {
        let mut counted = entries(&[true; 40]);
        for entry in &mut counted {
            (entry.ledger, entry.as_before) =
                (Ok(ledger(WINDOW, true)), Some(ledger(WINDOW, true)));
        }
        let [low, high] = between_s(&counted, WINDOW);
        assert!((high - low).abs() < 1e-12, "{low} {high}");
    }

    /// States of random lengths, sampled at regular distances: the range holds what was really so.
    #[test]
    fn the_range_holds_the_truth() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(15);
        for (mean_closed_s, mean_open_s) in
            [(0.01, 0.03), (0.03, 0.01), (0.1, 0.2), (0.3, 1.0), (1.0, 1.0)]
        {
            let mut held = 0;
            for _ in 0..400 {
                let (samples, truth_s) = alternating([mean_open_s, mean_closed_s], &mut rng);
                let [low, high] = closed_s(&samples);
                held += u32::from((low..=high).contains(&truth_s));
            }
            assert!(held >= 360, "{held} of 400 at {mean_closed_s} s of {mean_open_s} s");
        }
    }

    /// What 40 samples saw of a state that comes and goes, and how long it really held, seconds.
    fn alternating(mean_s: [f64; 2], rng: &mut Xoshiro256PlusPlus) -> (Vec<bool>, f64) {
        let mut ends_s = 0.0;
        let (mut is_closed, mut truth_s) = (rng.random_bool(0.5), 0.0);
        let mut samples = Vec::new();
        while ends_s < 4.0 {
            let from_s = ends_s;
            ends_s -= mean_s[usize::from(is_closed)] * (1.0 - rng.random::<f64>()).ln();
            while samples.len() < 40 && (samples.len() as f64 + 0.5) * STEP_S < ends_s {
                samples.push(is_closed);
            }
            if is_closed {
                truth_s += ends_s.min(4.0) - from_s;
            }
            is_closed = !is_closed;
        }
        (samples, truth_s)
    }
}
