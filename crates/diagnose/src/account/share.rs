//! Shares of time, and the ledger that they are entered in.

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

/// Time that a limiter held, in the unit of what was entered.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Held {
    /// All of it.
    pub time: f64,
    /// Of it, what stands on states that samples saw at an instant. The rest was counted all the time.
    pub seen: f64,
}

impl Held {
    fn times(self, share: f64) -> Self {
        Self { time: share * self.time, seen: share * self.seen }
    }
}

/// Time by limiter and seat, in the unit of what was entered.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ledger {
    /// In the order of the parts. There are few, and thousands of ledgers a second.
    entries: Vec<(Part, Held)>,
}

impl Ledger {
    /// Enters time that one limiter held, as counted.
    pub fn enter(&mut self, limiter: Limiter, seat: Seat, time: f64) {
        self.enter_held((limiter, seat), Held { time, seen: 0.0 });
    }

    fn enter_held(&mut self, part: Part, more: Held) {
        if more.time > 0.0 {
            match self.find(part) {
                Ok(at) => {
                    let held = &mut self.entries[at].1;
                    held.time += more.time;
                    held.seen += more.seen;
                }
                Err(at) => self.entries.insert(at, (part, more)),
            }
        }
    }

    /// Enters time of a thread's own turn.
    pub fn enter_own(&mut self, share: Share, seat: Seat, time: f64) {
        self.enter(Limiter::Application, seat, share.application * time);
        self.enter(Limiter::Host, seat, share.host * time);
    }

    /// Enters all of another ledger.
    pub fn add(&mut self, other: &Self) {
        other.entries().for_each(|(part, held)| self.enter_held(part, held));
    }

    /// The same entries, all of which stand on what samples saw at an instant.
    pub fn all_seen(mut self) -> Self {
        self.entries.iter_mut().for_each(|(_, held)| held.seen = held.time);
        self
    }

    /// The same entries, so that they add up to `time`; as they are, if there are none.
    pub fn scaled_to(mut self, time: f64) -> Self {
        let sum = self.sum();
        if sum > 0.0 {
            for (_, held) in &mut self.entries {
                held.time *= time / sum;
                held.seen *= time / sum;
            }
        }
        self
    }

    /// The same time, of which the path's rate has held this share, 0 to 1, of what anything else on the path seemed to hold:
    /// a window that is a tenth too small costs a tenth.
    pub fn with_used_path(self, share: f64) -> Self {
        let mut ledger = Self::default();
        for (part, held) in self.entries() {
            let given = if part.1 == Seat::Path { share } else { 0.0 };
            ledger.enter_held(part, held.times(1.0 - given));
            ledger.enter_held((Limiter::PathRate, Seat::Path), held.times(given));
        }
        ledger
    }

    /// What a part held.
    pub fn held(&self, part: Part) -> Held {
        self.find(part).map_or_else(|_| Held::default(), |at| self.entries[at].1)
    }

    /// All entries.
    pub fn entries(&self) -> impl Iterator<Item = (Part, Held)> + '_ {
        self.entries.iter().copied()
    }

    /// What was entered in all.
    pub fn sum(&self) -> f64 {
        self.entries.iter().map(|(_, held)| held.time).sum()
    }

    /// Of what was entered, what stands on what samples saw.
    pub fn seen(&self) -> f64 {
        self.entries.iter().map(|(_, held)| held.seen).sum()
    }

    /// The largest entry.
    pub fn largest(&self) -> Option<(Part, f64)> {
        let times = self.entries().map(|(part, held)| (part, held.time));
        times.max_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// Where the entry of a part is, or where it belongs.
    fn find(&self, part: Part) -> Result<usize, usize> {
        self.entries.binary_search_by_key(&part, |(part, _)| *part)
    }
}
