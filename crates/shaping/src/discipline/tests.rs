//! Queues that are simulated, and what is said of them.

use std::collections::VecDeque;

use goodput_model::{Arrival, Known, QueueDiscipline};

use super::discipline;
use crate::trace::{Sizes, Trace, Train};

/// Datagrams that leave in a second.
const RATE: f64 = 8000.0;
/// Datagrams that are sent in that time, if nothing holds the sender.
const OFFERED: f64 = 4.3 * RATE;
const TRAIN_S: f64 = 1.2;
const LEAST_WAIT_S: f64 = 2.5 / RATE;

/// What drops.
#[derive(Clone, Copy)]
enum Drops {
    /// What comes into a queue of as many.
    Tail(usize),
    /// The oldest of as many.
    Head(usize),
    /// CoDel with an interval of 100 ms and a target of 5 ms, and as many oldest at once if the queue has more than the limit.
    Codel { limit: usize, batch: usize },
    /// A share by chance, behind a queue that drops at its tail.
    Chance { share: f64, limit: usize },
}

/// The kernel's `codel_dequeue` (include/net/codel_impl.h), as far as a queue that is never empty needs it.
#[derive(Default)]
struct Codel {
    above_since: Option<f64>,
    /// How many were dropped, and when the next one is.
    drops: Option<(f64, f64)>,
}

impl Codel {
    fn drops(&mut self, now: f64, wait: f64) -> bool {
        if wait < 0.005 {
            *self = Self::default();
            return false;
        }
        let since = *self.above_since.get_or_insert(now);
        let (count, next) = match self.drops {
            None if now >= since + 0.1 => (1.0, now),
            Some((count, next)) if now >= next => (count + 1.0, next),
            _ => return false,
        };
        self.drops = Some((count, next + 0.1 / count.sqrt()));
        true
    }
}

/// Even numbers from 0 to 1 (Knuth, MMIX).
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// A queue that sends at the rate, and its sender, which stops while more than `held` of its datagrams wait.
struct Simulated {
    drops: Drops,
    held: usize,
    /// Longest time for which it stops after each 1700 datagrams, seconds.
    stops_s: f64,
    queue: VecDeque<(u64, f64)>,
    sent: u64,
    due_s: f64,
    free_s: f64,
    codel: Codel,
    random: Random,
    came: Vec<Arrival>,
}

impl Simulated {
    fn run(drops: Drops, held: usize, stops_s: f64) -> Vec<Arrival> {
        let (queue, codel, random) = (VecDeque::new(), Codel::default(), Random(7));
        let (sent, due_s, free_s, came) = (0, 0.0, 0.0, Vec::new());
        let mut own =
            Self { drops, held, stops_s, queue, sent, due_s, free_s, codel, random, came };
        while own.due_s < TRAIN_S || !own.queue.is_empty() {
            own.admit();
            own.leave();
        }
        own.came
    }

    /// Everything that is sent until the next one may leave.
    fn admit(&mut self) {
        if self.queue.is_empty() {
            self.free_s = self.free_s.max(self.due_s);
        }
        while self.due_s <= self.free_s && self.due_s < TRAIN_S && self.queue.len() < self.held {
            self.queue.push_back((self.sent, self.due_s));
            self.sent += 1;
            self.due_s += 1.0 / OFFERED;
            if self.sent.is_multiple_of(1700) {
                self.due_s += self.stops_s * self.random.next();
            }
            self.overflow();
        }
        if self.queue.len() >= self.held {
            self.due_s = self.due_s.max(self.free_s);
        }
    }

    fn overflow(&mut self) {
        let waiting = self.queue.len();
        match self.drops {
            Drops::Tail(limit) | Drops::Chance { limit, .. } if waiting > limit => {
                self.queue.pop_back();
            }
            Drops::Head(limit) if waiting > limit => {
                self.queue.pop_front();
            }
            Drops::Codel { limit, batch } if waiting > limit => {
                self.queue.drain(..batch);
            }
            _ => {}
        }
    }

    fn leave(&mut self) {
        let Some((number, sent_s)) = self.queue.pop_front() else { return };
        if matches!(self.drops, Drops::Codel { .. })
            && self.codel.drops(self.free_s, self.free_s - sent_s)
        {
            return;
        }
        self.free_s += 1.0 / RATE;
        if let Drops::Chance { share, .. } = self.drops
            && self.random.next() < share
        {
            return;
        }
        let ns = |s: f64| (s * 1e9) as u64;
        self.came.push(Arrival { number, sent_ns: ns(sent_s), came_ns: ns(self.free_s + 0.01) });
    }
}

fn seen(drops: Drops, held: usize) -> Result<QueueDiscipline, String> {
    seen_of_one_that_stops(drops, held, 0.0)
}

fn seen_of_one_that_stops(
    drops: Drops,
    held: usize,
    stops_s: f64,
) -> Result<QueueDiscipline, String> {
    let missing = || Known::missing("not counted");
    let arrivals = Simulated::run(drops, held, stops_s);
    let sizes = Sizes { payload: 1472, packet: 1500, frame: 1514 };
    let (held_percent, rate_waits_per_call) = (missing(), missing());
    let sent = (TRAIN_S * OFFERED) as u64;
    let train = Train {
        arrivals,
        sent,
        refused: 0,
        sizes,
        held_percent,
        rate_waits_per_call,
        batch: 1.0,
        joined: None,
    };
    discipline(&Trace::of(&train).unwrap(), LEAST_WAIT_S).map_err(|why| why.to_string())
}

const NEVER: usize = usize::MAX;

#[test]
fn a_queue_that_was_never_full_is_unknown() {
    assert_eq!(seen(Drops::Tail(1000), 92), Ok(QueueDiscipline::Unfilled));
}

#[test]
fn a_tail_drops_what_comes() {
    for limit in [12, 92, 700, 6000] {
        assert_eq!(seen(Drops::Tail(limit), NEVER), Ok(QueueDiscipline::DropTail), "{limit}");
    }
}

#[test]
fn a_tail_is_known_behind_a_sender_that_stops() {
    for limit in [92, 400] {
        let seen = seen_of_one_that_stops(Drops::Tail(limit), NEVER, 0.09);
        assert_eq!(seen, Ok(QueueDiscipline::DropTail), "{limit}");
    }
}

/// Its last burst fits in, and leaves as whole as from a queue that drops its oldest.
#[test]
fn a_tail_that_was_not_full_at_the_end_is_none_that_drops_its_oldest() {
    for stops_s in [0.02, 0.05, 0.12, 0.2, 0.3] {
        for limit in [30, 200, 600] {
            let seen = seen_of_one_that_stops(Drops::Tail(limit), NEVER, stops_s);
            assert_ne!(seen, Ok(QueueDiscipline::DropHead), "{stops_s} {limit}");
            assert_ne!(seen, Ok(QueueDiscipline::ActiveManagement), "{stops_s} {limit}");
        }
    }
}

/// Its own sender fills it with what a socket holds, so that all drops come at the same wait.
#[test]
fn codel_is_known_by_its_times_in_a_queue_that_its_sender_keeps_as_long() {
    let codel = Drops::Codel { limit: 10_240, batch: 64 };
    assert_eq!(seen(codel, 92), Ok(QueueDiscipline::ActiveManagement));
}

#[test]
fn codel_is_known_while_its_queue_grows() {
    let codel = Drops::Codel { limit: NEVER, batch: 64 };
    assert_eq!(seen(codel, NEVER), Ok(QueueDiscipline::ActiveManagement));
}

/// After it is full, what CoDel drops is no longer to be seen.
#[test]
fn a_full_queue_that_drops_its_oldest_is_known_by_what_it_still_has() {
    for drops in [Drops::Head(300), Drops::Codel { limit: 1000, batch: 64 }] {
        assert_eq!(seen(drops, NEVER), Ok(QueueDiscipline::DropHead));
    }
}

#[test]
fn chance_is_no_discipline() {
    for (share, why) in [(0.003, "too few for a full queue"), (0.3, "by chance")] {
        let said = seen(Drops::Chance { share, limit: 1000 }, 92).unwrap_err();
        assert!(said.contains(why), "{said}");
    }
    let both = seen(Drops::Chance { share: 0.001, limit: 92 }, NEVER);
    assert_eq!(both, Ok(QueueDiscipline::DropTail), "most was lost by the queue");
}
