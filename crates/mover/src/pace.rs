//! Strict pacing: the schedule, which is pure arithmetic, and the waiting for it.
//!
//! A piece may leave when the schedule allows it; each piece moves the schedule by the time that its bytes take at the
//! rate. A late thread keeps the schedule and catches up with shorter gaps, but never shorter than `MIN_GAP_SHARE` of
//! the piece's time. A timer may wake the thread several pieces late. Then at most one large packet that the kernel
//! segments leaves at once, within `TOGETHER_NS`. Two requested bursts never leave together: they keep
//! `MIN_BURST_GAP_SHARE` of their distance. A delay beyond `SLACK_NS` is not made up: the schedule moves, and the delay
//! is counted, because it explains a missed rate. So in any window of t seconds, never more leaves than rate × t + one
//! piece + what the rate allows during the slack.
//!
//! A stream has pieces of 1 ms of its rate. Datagrams leave one by one, or as many at once as the rate allows in
//! `AT_ONCE_NS`, which is little more than the time of one system call. If bursts are requested, as many leave at once
//! as a burst holds.
//!
//! Beside its own schedule a flow may have rates that it shares with others (`shared_rate.rs`).

use std::ops::Range;
use std::sync::Arc;

use goodput_model::{BitRate, Role, Transport};

use crate::clock::now_ns;
use crate::error::MoveError;
use crate::flow::Flow;
use crate::shared_rate::{Saved, SharedRate};
use crate::slice;
use crate::spin::Spinner;
use crate::udp::outbox::MAX_MESSAGES;
use crate::udp::sender::DepartureTimes;

/// Lateness that is made up, nanoseconds: a thread that shares its CPU waits for some slices of others, which are 0.7
/// to 3 ms long (`sysctl_sched_base_slice`, kernel/sched/fair.c).
const SLACK_NS: u64 = 10_000_000;

/// How late a thread may hand over datagrams that the kernel holds until their time, nanoseconds.
const AHEAD_NS: u64 = 1_000_000;

/// What may leave at once to make up for late timers, bytes: one packet of a stream's sender, for which queues on the
/// path have room.
const TOGETHER_BYTES: f64 = 65_536.0;

/// Bounds of the time that these bytes may take at the rate, nanoseconds.
const TOGETHER_NS: (f64, f64) = (1_000_000.0, 5_000_000.0);

/// The same as [`MIN_GAP_SHARE`] between requested bursts, if timers are late.
const MIN_BURST_GAP_SHARE: f64 = 0.5;

/// The share of a piece's time at the rate that must pass before the next piece, even if the next is late.
const MIN_GAP_SHARE: f64 = 0.85;

/// Datagrams that fit into this time at the rate leave at once, nanoseconds, unless bursts are requested: at 1 Gbit/s
/// one datagram of 1472 bytes, at 10 Gbit/s 16 of them.
const AT_ONCE_NS: u64 = 20_000;

/// A stream is cut into pieces of this much time at its rate, seconds, to keep it even.
const PIECE_S: f64 = 0.001;

/// Smallest piece of a stream, bytes: about one segment on Ethernet. Less would only make more and smaller packets.
const MIN_PIECE_BYTES: usize = 1448;

/// When the next bytes may leave. Pure: the caller passes the time, in nanoseconds of any clock that does not run
/// backwards.
#[derive(Debug, Clone)]
pub struct Schedule {
    ns_per_byte: f64,
    next_ns: u64,
    /// Nothing leaves before this time, however late the schedule is.
    earliest_ns: u64,
    /// The fraction to add to `next_ns`, less than one nanosecond.
    fraction_ns: f64,
    /// Lateness that is made up.
    slack_ns: u64,
    /// How far the schedule was moved.
    moved_ns: u64,
}

/// How to make up for lateness.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Gaps {
    /// With gaps of at least this share of the piece's time.
    Share(f64),
    /// With pieces that leave at once, as many as take this time at the rate, nanoseconds.
    Together(u64),
}

impl Schedule {
    /// A schedule that lets the first piece leave at `start_ns`. `None`, which means unpaced, if `rate` is not a
    /// positive number.
    pub fn new(rate: BitRate, start_ns: u64) -> Option<Self> {
        (rate.0 > 0.0 && rate.0.is_finite()).then(|| Self {
            ns_per_byte: 8e9 / rate.0,
            next_ns: start_ns,
            earliest_ns: start_ns,
            fraction_ns: 0.0,
            slack_ns: SLACK_NS,
            moved_ns: 0,
        })
    }

    /// The same schedule, but at most `slack_ns` are made up.
    fn with_slack(self, slack_ns: u64) -> Self {
        Self { slack_ns, ..self }
    }

    /// The time lost because the thread was later than can be made up, nanoseconds.
    pub fn moved_ns(&self) -> u64 {
        self.moved_ns
    }

    /// When the next piece may leave; not after `now_ns` means now.
    pub fn due_ns(&self) -> u64 {
        self.next_ns.max(self.earliest_ns)
    }

    /// When the next piece should have left, had nothing been later than can be made up.
    pub fn planned_ns(&self, now_ns: u64) -> u64 {
        self.next_ns.max(now_ns.saturating_sub(self.slack_ns))
    }

    /// The time that `bytes` take at the rate, nanoseconds.
    pub fn cost_ns(&self, bytes: usize) -> f64 {
        bytes as f64 * self.ns_per_byte
    }

    /// `bytes` have left at `now_ns`.
    pub fn sent(&mut self, bytes: usize, now_ns: u64, gaps: Gaps) {
        let planned = self.planned_ns(now_ns);
        self.moved_ns += planned - self.next_ns;
        self.next_ns = planned;
        let cost = self.cost_ns(bytes) + self.fraction_ns;
        self.fraction_ns = cost.fract();
        // A cast from float to integer saturates: a rate near zero rightly waits for ever.
        self.next_ns = self.next_ns.saturating_add(cost as u64);
        let (from, share) = match gaps {
            Gaps::Share(share) => (now_ns, share),
            Gaps::Together(ns) => (self.earliest_ns.max(now_ns.saturating_sub(ns)), MIN_GAP_SHARE),
        };
        self.earliest_ns = from.saturating_add((cost * share) as u64);
    }
}

/// Holds one flow to its rate, if it has one.
#[derive(Debug)]
pub(crate) struct Pacer {
    schedule: Option<Schedule>,
    shared: Turns,
    /// When the due piece was released: the duration of the call that moves it is not lateness.
    leave_ns: u64,
    /// Bytes to move at a time.
    pub(crate) piece: usize,
    /// Used if a timer is not precise enough.
    spinner: Option<Spinner>,
    /// How to make up for late timers.
    by_timer: Gaps,
    /// Whether the kernel is given each datagram's departure time.
    kernel_paces: bool,
}

impl Pacer {
    /// For a byte stream that moves up to `chunk` bytes at a time.
    pub(crate) fn for_stream(flow: &Flow, chunk: usize) -> Self {
        let pacer = Self::new(flow, chunk);
        let own = flow.config.rate.filter(|_| pacer.schedule.is_some());
        let shared = flow.config.shared_rates.iter().map(|shared| shared.rate());
        // As a float it is at most a value that saturates.
        let even = own.into_iter().chain(shared).map(|rate| rate.bytes_in(PIECE_S) as usize);
        Self { piece: even.fold(chunk, usize::min).max(MIN_PIECE_BYTES).min(chunk), ..pacer }
    }

    /// For a reader of datagrams of up to `size` bytes.
    pub(crate) fn for_reader(flow: &Flow, size: usize) -> Self {
        Self::new(flow, size)
    }

    /// For datagrams of `size` bytes, which can't be cut. They never wait by timer alone.
    pub(crate) fn for_datagrams(flow: &Flow, size: usize) -> Self {
        let pacer = Self::new(flow, size);
        let asked = flow.config.burst_bytes;
        let at_once = asked.or(flow.config.rate.map(|rate| {
            // As a float it is at most a value that saturates.
            rate.bytes_in(AT_ONCE_NS as f64 / 1e9) as usize
        }));
        let whole = at_once.map_or(size, |bytes| (bytes / size * size).max(size));
        let by_timer =
            if asked.is_some() { Gaps::Share(MIN_BURST_GAP_SHARE) } else { pacer.by_timer };
        Self {
            spinner: pacer.schedule.is_some().then(Spinner::new),
            piece: whole,
            by_timer,
            ..pacer
        }
    }

    /// For datagrams of `size` bytes that the kernel holds until their time: batches of up to 1 ms of
    /// the rate.
    pub(crate) fn for_departures(flow: &Flow, size: usize) -> Self {
        let pacer = Self::new(flow, size);
        let batch = flow.config.rate.map_or(0.0, |rate| rate.bytes_in(PIECE_S)) as usize;
        let piece = (batch.min(size * MAX_MESSAGES) / size * size).max(size);
        let schedule = pacer.schedule.map(|schedule| schedule.with_slack(AHEAD_NS));
        let (kernel_paces, by_timer) = (schedule.is_some(), Gaps::Together(u64::MAX));
        Self { schedule, piece, kernel_paces, by_timer, ..pacer }
    }

    /// Departure times of the datagrams of `size` bytes that may leave now, if the kernel paces them: late enough after
    /// their turn to cover this thread's jitter.
    pub(crate) fn departures(&self, size: usize) -> Option<DepartureTimes> {
        let schedule = self.schedule.as_ref().filter(|_| self.kernel_paces)?;
        let first_ns = schedule.planned_ns(self.leave_ns) + AHEAD_NS;
        Some(DepartureTimes { first_ns, gap_ns: schedule.cost_ns(size) })
    }

    fn new(flow: &Flow, piece: usize) -> Self {
        let schedule = flow.config.rate.and_then(|rate| Schedule::new(rate, now_ns()));
        if schedule.is_some() {
            slice::wake_soon();
        }
        let together = flow.config.rate.map_or(0.0, |rate| TOGETHER_BYTES * 8e9 / rate.0);
        let by_timer = Gaps::Together(together.clamp(TOGETHER_NS.0, TOGETHER_NS.1) as u64);
        let shared = Turns::new(flow.config.shared_rates.clone(), saved(flow));
        Self { schedule, shared, leave_ns: 0, piece, spinner: None, by_timer, kernel_paces: false }
    }

    /// Whether there is a rate to hold.
    pub(crate) fn is_paced(&self) -> bool {
        self.schedule.is_some() || !self.shared.rates.is_empty()
    }

    /// Waits until the next piece may leave. `false`: check the stop first, and call again.
    pub(crate) fn wait(&mut self, flow: &Flow) -> Result<bool, MoveError> {
        if !self.is_paced() {
            return Ok(true);
        }
        let due = self.schedule.as_ref().map_or(0, Schedule::due_ns);
        let turn = self.shared.turn();
        self.leave_ns = now_ns();
        if self.leave_ns >= due.max(turn.at_ns) {
            return Ok(true);
        }
        match &mut self.spinner {
            Some(spinner) if due > turn.at_ns => spinner.wait(flow, due)?,
            _ => flow.wait_paced(due.max(turn.at_ns))?,
        }
        let (rate, held) = held_by(due, turn, flow.config.rate_is_shared);
        if !held.is_empty() {
            // A late wake-up belongs to the wait: its time is saved, and made up for.
            let since_ns = self.leave_ns.max(held.start);
            flow.counters.held(rate, now_ns().saturating_sub(since_ns));
        }
        Ok(false)
    }

    /// Whether this many bytes that came before the flow began may be counted.
    pub(crate) fn admits(&self, bytes: usize) -> bool {
        self.shared.admits(bytes)
    }

    /// `bytes` have left since the wait ended.
    pub(crate) fn sent(&mut self, flow: &Flow, bytes: usize) {
        self.shared.moved(bytes);
        if let Some(schedule) = &mut self.schedule {
            let spins = self.spinner.as_ref().is_some_and(|spinner| !spinner.is_by_timer());
            let gaps = if spins { Gaps::Share(MIN_GAP_SHARE) } else { self.by_timer };
            let before = schedule.moved_ns();
            schedule.sent(bytes, self.leave_ns, gaps);
            if schedule.moved_ns() > before && flow.config.role == Role::Sender {
                flow.counters.stalled(schedule.moved_ns() - before);
            }
        }
    }
}

/// What a flow may make up for at its shared rates. A sender that the path held up leaves no faster.
fn saved(flow: &Flow) -> Saved {
    match (flow.config.role, flow.config.transport) {
        (Role::Receiver, Transport::Tcp) => Saved::Stall,
        (Role::Receiver, Transport::Udp) | (Role::Sender, _) => Saved::Lateness,
    }
}

/// The rate that holds a piece which is `due` by the flow's own schedule, and from when to when, if this time is not
/// empty. If `is_shared`, the flow's own schedule is that of the first shared rate.
fn held_by(due: u64, turn: Release, is_shared: bool) -> (usize, Range<u64>) {
    match is_shared {
        true if due > turn.at_ns => (0, 0..due),
        true => (turn.rate, 0..turn.at_ns),
        false => (turn.rate, due..turn.at_ns),
    }
}

/// One flow's turns at its shared rates.
#[derive(Debug)]
struct Turns {
    rates: Vec<Arc<SharedRate>>,
    /// What the next piece may make up for.
    saved: Saved,
    /// The same for all pieces after the first.
    later: Saved,
    /// Expected size of the next piece, bytes: that of the last one.
    expected: usize,
    /// The turn of the next piece, if it has one already.
    taken: Option<Release>,
}

/// When a piece may move.
#[derive(Debug, Clone, Copy, Default)]
struct Release {
    /// Nanoseconds of the monotonic clock.
    at_ns: u64,
    /// The rate that releases it last, by its index in the list.
    rate: usize,
}

impl Turns {
    fn new(rates: Vec<Arc<SharedRate>>, later: Saved) -> Self {
        Self { rates, saved: Saved::Nothing, later, expected: MIN_PIECE_BYTES, taken: None }
    }

    /// Whether every rate lets this many early bytes count; if one does not, none is charged.
    fn admits(&self, bytes: usize) -> bool {
        let refuses = self.rates.iter().position(|rate| !rate.admit(bytes));
        if let Some(admitted) = refuses {
            self.rates[..admitted].iter().for_each(|rate| rate.moved(bytes, 0));
        }
        refuses.is_none()
    }

    /// When the next piece may move.
    fn turn(&mut self) -> Release {
        let turn = |(rate, shared): (usize, &Arc<SharedRate>)| Release {
            at_ns: shared.take_turn(self.expected, self.saved),
            rate,
        };
        // Among equals the first one wins, which is the narrowest.
        let last = || self.rates.iter().enumerate().rev().map(turn).max_by_key(|turn| turn.at_ns);
        *self.taken.get_or_insert_with(|| last().unwrap_or_default())
    }

    fn moved(&mut self, bytes: usize) {
        if self.taken.take().is_some() {
            self.rates.iter().for_each(|rate| rate.moved(self.expected, bytes));
            (self.expected, self.saved) = (bytes, self.later);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Sends pieces as soon as the schedule allows, each after one more stall; returns when and how much.
    fn run(rate: f64, piece: usize, stalls: &[u64]) -> Vec<(u64, usize)> {
        let mut schedule = Schedule::new(BitRate(rate), 1_000).unwrap();
        let mut now = 1_000;
        let send = |stall: &u64| {
            now = schedule.due_ns().max(now) + stall;
            schedule.sent(piece, now, Gaps::Together(u64::MAX));
            (now, piece)
        };
        stalls.iter().map(send).collect()
    }

    fn most_above_rate(sent: &[(u64, usize)], rate: f64) -> f64 {
        let mut most: f64 = 0.0;
        for (i, (from, _)) in sent.iter().enumerate() {
            let mut bytes = 0;
            for (at, len) in &sent[i..] {
                bytes += len;
                most = most.max(bytes as f64 - rate / 8.0 * (at - from) as f64 / 1e9);
            }
        }
        most
    }

    #[test]
    fn jitter_below_the_slack_costs_no_rate() {
        let sent = run(1e8, 12_500, &[900_000; 1001]);
        let seconds = (sent[1000].0 - sent[0].0) as f64 / 1e9;
        let rate = 1000.0 * 12_500.0 * 8.0 / seconds;
        assert!((rate - 1e8).abs() < 1.0, "{rate}");
    }

    #[test]
    fn the_time_of_a_stall_is_lost_but_for_the_slack_and_reported() {
        let mut schedule = Schedule::new(BitRate(1e8), 0).unwrap();
        let mut now = 0;
        for stall in [0, 0, 1_000_000_000, 0, 0, 0] {
            now = schedule.due_ns().max(now) + stall;
            schedule.sent(12_500, now, Gaps::Share(MIN_GAP_SHARE));
        }
        assert_eq!(schedule.moved_ns(), 1_000_000_000 - SLACK_NS);
        assert_eq!(now, 1_002_000_000 + 3 * 850_000, "the slack is made up by shorter gaps");
    }

    #[test]
    fn late_timers_are_made_up_by_no_more_at_once_than_is_allowed() {
        // Gaps of 120 us; every timer is 3 ms late.
        let (rate, together) = (1e8, 5_000_000);
        let mut schedule = Schedule::new(BitRate(rate), 0).unwrap();
        let (mut now, mut sent) = (0, Vec::new());
        while now < 1_000_000_000 {
            if schedule.due_ns() > now {
                now = schedule.due_ns() + 3_000_000;
            }
            schedule.sent(1500, now, Gaps::Together(together));
            sent.push((now, 1500));
        }
        let mean = sent.len() as f64 * 1500.0 * 8.0 / (now as f64 / 1e9);
        assert!((mean / rate - 1.0).abs() < 0.005, "{mean}");
        let at_once = sent.chunk_by(|a, b| a.0 == b.0).map(<[_]>::len).max().unwrap();
        assert!(at_once as f64 <= together as f64 / 120_000.0 / MIN_GAP_SHARE + 2.0, "{at_once}");
        assert_eq!(schedule.moved_ns(), 0);
    }

    #[test]
    fn lateness_is_made_up_by_shorter_gaps_and_not_by_a_burst() {
        let mut schedule = Schedule::new(BitRate(8e9), 0).unwrap();
        let mut times = Vec::new();
        for late in [0, 400, 0, 0, 0, 0] {
            let now = schedule.due_ns() + late;
            schedule.sent(1000, now, Gaps::Share(MIN_GAP_SHARE));
            times.push(now);
        }
        assert_eq!(times, [0, 1400, 2250, 3100, 4000, 5000]);
        schedule.sent(1000, 6300, Gaps::Share(MIN_BURST_GAP_SHARE));
        assert_eq!(schedule.due_ns(), 7000, "half the distance has passed before");
    }

    #[test]
    fn a_shared_rate_holds_a_flow_only_beyond_the_plans_own() {
        let turn = |at_ns| Release { at_ns, rate: 2 };
        assert_eq!(held_by(500, turn(900), false), (2, 500..900));
        assert!(held_by(900, turn(500), false).1.is_empty(), "the plan's own rate holds it");
        assert_eq!(held_by(500, turn(900), true), (2, 0..900));
        assert_eq!(held_by(900, turn(500), true), (0, 0..900), "what makes one flow even");
    }

    #[test]
    fn the_narrowest_of_the_rates_takes_the_turn() {
        let rates = [1e6, 1e9, 1e6].map(|rate| Arc::new(SharedRate::new(BitRate(rate)).unwrap()));
        let mut turns = Turns::new(rates.to_vec(), Saved::Lateness);
        turns.turn();
        turns.moved(MIN_PIECE_BYTES);
        let turn = turns.turn();
        assert!(turn.rate != 1, "{turn:?}");
    }

    /// 1 MB at 1 Tbit/s and 1 kbit/s: the second rate lets no early bytes count.
    #[test]
    fn what_one_rate_does_not_admit_is_charged_to_none() {
        let rates = [1e12, 1e3].map(|rate| Arc::new(SharedRate::new(BitRate(rate)).unwrap()));
        let [wide, narrow] = &rates;
        let turns = Turns::new(rates.to_vec(), Saved::Lateness);
        assert!(turns.admits(1_000_000), "the first never waits");
        for _ in 0..10_000 {
            assert!(!turns.admits(1_000_000));
        }
        assert!(wide.take_turn(1, Saved::Nothing) <= now_ns(), "80 ms of it were refused");
        assert!(narrow.take_turn(1, Saved::Nothing) > now_ns());
    }

    #[test]
    fn no_rate_is_no_schedule() {
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Schedule::new(BitRate(rate), 0).is_none());
        }
    }

    #[test]
    fn a_tiny_rate_waits_for_ever_rather_than_overflowing() {
        let mut schedule = Schedule::new(BitRate(1e-300), 5).unwrap();
        schedule.sent(1, 5, Gaps::Share(MIN_GAP_SHARE));
        schedule.sent(1, u64::MAX, Gaps::Together(5));
        assert_eq!(schedule.due_ns(), u64::MAX);
    }

    proptest! {
        #[test]
        fn no_gap_is_much_shorter_than_the_rate_has_it(
            rate in 1e3..1e11f64, piece in 1usize..200_000,
            stalls in proptest::collection::vec(
                prop_oneof![Just(0), 0u64..2_000_000, 0u64..3_000_000_000], 2..80),
        ) {
            let mut schedule = Schedule::new(BitRate(rate), 0).unwrap();
            let mut last = None;
            for stall in stalls {
                let now = schedule.due_ns() + stall;
                schedule.sent(piece, now, Gaps::Share(MIN_GAP_SHARE));
                let shortest = (piece as f64 * 8e9 / rate * MIN_GAP_SHARE) as u64;
                prop_assert!(last.replace(now).is_none_or(|last| now - last >= shortest));
            }
        }

        #[test]
        fn no_window_has_more_than_the_rate_and_one_burst(
            rate in 1e3..1e11f64, piece in 1usize..200_000,
            stalls in proptest::collection::vec(
                prop_oneof![Just(0), 0u64..2_000_000, 0u64..3_000_000_000], 1..80),
        ) {
            let sent = run(rate, piece, &stalls);
            let burst = piece as f64 + rate / 8.0 * SLACK_NS as f64 / 1e9;
            // Times are whole nanoseconds: the rounding is one nanosecond at the rate.
            let rounding = rate / 8e9 + 1.0;
            prop_assert!(most_above_rate(&sent, rate) <= burst + rounding);
        }
    }
}
