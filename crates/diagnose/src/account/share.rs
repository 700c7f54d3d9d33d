//! Shares of time, and the ledger that they are entered in.

use std::collections::BTreeMap;

use goodput_model::Limiter;

/// How a thread's own turn divides, shares of 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share {
    /// The program's own doing.
    pub application: f64,
    /// The CPU's.
    pub host: f64,
}

/// Where a limiter sits, by the direction of the payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Seat {
    /// The end that sends.
    Sender,
    /// The end that receives.
    Receiver,
    /// Between them.
    Path,
}

/// A part of the account: a limiter, and where it sits.
pub type Part = (Limiter, Seat);

/// Time by limiter and seat, in the unit of what was entered.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ledger {
    entries: BTreeMap<Part, f64>,
}

impl Ledger {
    /// Enters time that one limiter held.
    pub fn enter(&mut self, limiter: Limiter, seat: Seat, time: f64) {
        if time > 0.0 {
            *self.entries.entry((limiter, seat)).or_default() += time;
        }
    }

    /// Enters time of a thread's own turn.
    pub fn enter_own(&mut self, share: Share, seat: Seat, time: f64) {
        self.enter(Limiter::Application, seat, share.application * time);
        self.enter(Limiter::Host, seat, share.host * time);
    }

    /// Enters all of another ledger.
    pub fn add(&mut self, other: &Self) {
        for ((limiter, seat), time) in other.entries() {
            self.enter(limiter, seat, time);
        }
    }

    /// The same entries, so that they add up to `time`; as they are, if there are none.
    pub fn scaled_to(mut self, time: f64) -> Self {
        let sum = self.sum();
        if sum > 0.0 {
            self.entries.values_mut().for_each(|entry| *entry *= time / sum);
        }
        self
    }

    /// All entries.
    pub fn entries(&self) -> impl Iterator<Item = (Part, f64)> + '_ {
        self.entries.iter().map(|(key, time)| (*key, *time))
    }

    /// What was entered in all.
    pub fn sum(&self) -> f64 {
        self.entries.values().sum()
    }

    /// The largest entry.
    pub fn largest(&self) -> Option<(Part, f64)> {
        self.entries().max_by(|a, b| a.1.total_cmp(&b.1))
    }
}
