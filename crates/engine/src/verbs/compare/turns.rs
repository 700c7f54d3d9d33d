//! Arms that take turns within one connection, for device settings that take effect on running flows.
//!
//! To the statistics, each turn is a run. The order of the turns is drawn anew for each block, so that the sign of each
//! paired difference is a fair coin however much neighbouring turns have in common.

use std::cell::Cell;
use std::time::Duration;

use goodput_model::{BitRate, EndName, Interval, Known, Length, Plan};
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::appliers::Appliers;
use super::{Arm, CompareRequest};
use crate::control::target::Target;
use crate::error::EngineError;
use crate::events::{Event, Listener};
use crate::interrupt::{Interrupt, Raise, interrupt};
use crate::near::client::Client;
use crate::near::measure::measure_whole;
use crate::result::conclude::conclude;

/// Resolution of the receiver's count, seconds: the shortest interval that a plan accepts.
const INTERVAL_S: f64 = 0.1;
/// After a change nothing counts for half a turn, and for at least this long: queued data and the congestion window
/// still belong to the previous arm.
const MIN_SETTLING_S: f64 = 0.3;
/// The end of a turn does not count either: the receiver's clock began up to a round trip after this one.
const LAST_S: f64 = 0.1;
/// Time for slow start before the first turn.
const LEAD_IN_S: f64 = 1.0;
/// Time that a connection takes before and after its turns; enough on most paths.
pub const CONNECTION_OVERHEAD_TIME: Duration = Duration::from_secs(2);
/// Receivers report in intervals, so one interval at each side of a turn may be lost.
const MIN_COUNTED_SHARE: f64 = 0.5;
/// Turns and changes may take this many times their usual time: a busy host reports late.
const MAX_TIMES_USUAL: f64 = 2.0;
/// Longest planned connection. Servers bound the length of a test: goodput's servers to 60 s by default.
const MAX_CONNECTION_S: f64 = 40.0;

/// The blocks that the turns of one connection make up, and the arms of each in order.
pub type Blocks = [(u32, Vec<usize>)];

/// One arm's turn, and what the receivers counted in it.
pub struct Turn {
    pub block: u32,
    pub arm: usize,
    pub goodput: Known<BitRate>,
}

/// Timing of the turns, seconds.
#[derive(Debug, Clone, Copy)]
pub struct Pattern {
    change_s: f64,
    counted_s: f64,
    settling_s: f64,
}

impl Pattern {
    /// Turns of which `counted` counts, each after a change that takes `change`.
    pub fn new(counted: Duration, change: Duration) -> Self {
        let counted_s = counted.as_secs_f64();
        let settling_s = (counted_s / 2.0).max(MIN_SETTLING_S);
        Self { change_s: change.as_secs_f64(), counted_s, settling_s }
    }

    /// Time from one change to the next, that change included.
    pub fn turn_s(self) -> f64 {
        self.change_s + self.unchanged_s()
    }

    /// Time for which an arm stays as it is.
    fn unchanged_s(self) -> f64 {
        self.settling_s + self.counted_s + LAST_S
    }

    /// The longest time for this many turns.
    fn longest_s(self, turns: usize) -> f64 {
        LEAD_IN_S + MAX_TIMES_USUAL * turns as f64 * self.turn_s()
    }

    /// The most turns on one connection.
    pub fn most_turns(self) -> usize {
        ((MAX_CONNECTION_S - LEAD_IN_S) / (MAX_TIMES_USUAL * self.turn_s())) as usize
    }

    /// What the receivers counted in a turn.
    fn goodput(self, turn: Span, intervals: &[Interval]) -> Known<BitRate> {
        goodput(intervals, turn, self.counted_s * MIN_COUNTED_SHARE)
    }
}

/// The part of a turn that may count, seconds after the payload began.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Span {
    from_s: f64,
    to_s: f64,
}

/// Refuses arms that can't take turns.
pub fn check(request: &CompareRequest) -> Result<(), EngineError> {
    let Target { file, mounted, .. } = &request.target;
    if file.is_some() || mounted.is_some() {
        let why =
            "a file is asked for anew by each run: arms can't take turns within one connection";
        return Err(EngineError::Flow(why.into()));
    }
    let refused = request.arms.iter().flat_map(|arm| &arm.0).find_map(|(setting, _)| {
        let why = match setting.end {
            EndName::Far if request.hosts.far.is_none() => {
                "it belongs to the far end, which changes nothing while it measures"
            }
            _ if !goodput_settings::changes_live_flows(setting) => {
                "flows that are under way don't take it up"
            }
            _ => return None,
        };
        Some(format!("{setting} can't take turns within one connection (--alternate): {why}"))
    });
    refused.map_or(Ok(()), |why| Err(EngineError::Flow(why)))
}

/// One connection on which the arms of all blocks take their turns.
pub struct Alternation<'a> {
    pub request: &'a CompareRequest,
    pub pattern: Pattern,
    pub client: &'a mut Client,
    pub appliers: &'a mut Appliers,
    pub interrupt: &'a Interrupt,
}

impl Alternation<'_> {
    /// Measures while the arms change. Returns the completed turns.
    pub async fn run(
        self,
        blocks: &Blocks,
        listener: &mut Listener<'_>,
    ) -> Result<Vec<Turn>, EngineError> {
        let Self { request, pattern, client, appliers, interrupt: outer } = self;
        let order: Vec<(u32, usize)> =
            blocks.iter().flat_map(|(block, arms)| arms.iter().map(|arm| (*block, *arm))).collect();
        let plan = Plan {
            length: Length::Seconds(pattern.longest_s(order.len())),
            interval_s: INTERVAL_S,
            ..request.plan.clone()
        };
        let (began, payload) = oneshot::channel();
        let began = Cell::new(Some(began));
        let (reports, reported) = watch::channel(Vec::new());
        let mut notice = |event| match event {
            // Nobody waits any more if a change failed.
            Event::Began => drop(began.take().map(|began| began.send(Instant::now()))),
            Event::Interval(interval) => reports.send_modify(|all| all.push(interval)),
            event @ (Event::Note { .. } | Event::Sampled { .. }) => listener(event),
            _ => {}
        };
        let ((end_payload, payload_ends), (end_turns, turns_end)) = (interrupt(), interrupt());
        let measuring = measure_whole(client, &plan, &payload_ends, &mut notice);
        let changing = async {
            let arms = &request.arms;
            let changed = Changing { appliers, arms, pattern, reported, ends: turns_end };
            let changed = changed.through(&order, payload).await;
            // After the last turn, or if a change failed, the rest of the payload is of no use.
            end_payload.raise();
            changed
        };
        let measuring = async {
            let measured = until_raised(measuring, outer, &end_payload).await;
            end_turns.raise();
            measured
        };
        // Never dropped half-way: a change that is under way completes.
        let (measured, changed) = tokio::join!(measuring, changing);
        let changed = changed?;
        let record = conclude(measured?, &request.target.text, &request.started)?.record;
        let turn = |(&(block, arm), span)| {
            let goodput = pattern.goodput(span, &record.intervals);
            Turn { block, arm, goodput }
        };
        Ok(order.iter().zip(changed).map(turn).collect())
    }
}

/// Waits for `work`, and raises `end` when `outer` is raised.
async fn until_raised<T>(work: impl Future<Output = T>, outer: &Interrupt, end: &Raise) -> T {
    let mut work = std::pin::pin!(work);
    tokio::select! {
        done = &mut work => return done,
        () = outer.raised() => end.raise(),
    }
    work.await
}

/// What changes the arms while the payload moves.
struct Changing<'a> {
    appliers: &'a mut Appliers,
    arms: &'a [Arm],
    pattern: Pattern,
    /// The intervals that the receivers have reported so far.
    reported: watch::Receiver<Vec<Interval>>,
    /// Raised when the payload has ended.
    ends: Interrupt,
}

impl Changing<'_> {
    /// Makes each change when the previous turn is over. Returns the completed turns; fewer than `order` has if the
    /// payload ends first.
    async fn through(
        self,
        order: &[(u32, usize)],
        payload: oneshot::Receiver<Instant>,
    ) -> Result<Vec<Span>, EngineError> {
        let mut turns = Vec::new();
        let began = tokio::select! {
            Ok(began) = payload => began,
            () = self.ends.raised() => return Ok(turns),
        };
        if self.ended_within((LEAD_IN_S - self.pattern.settling_s).max(0.0)).await {
            return Ok(turns);
        }
        let now_s = || began.elapsed().as_secs_f64();
        for (_, arm) in order {
            self.appliers.apply_here(&self.arms[*arm]).await?;
            let from_s = now_s() + self.pattern.settling_s;
            if self.ended_in_turn(from_s, now_s).await {
                break;
            }
            turns.push(Span { from_s, to_s: now_s() - LAST_S });
        }
        Ok(turns)
    }

    /// Waits until the turn that counts from `from_s` is over. Returns whether the payload ended before.
    async fn ended_in_turn(&self, from_s: f64, now_s: impl Fn() -> f64) -> bool {
        let unchanged_s = self.pattern.unchanged_s();
        if self.ended_within(unchanged_s).await {
            return true;
        }
        // Receivers on a busy host report late, and in long intervals: such a turn goes on.
        let mut reported = self.reported.clone();
        let enough = reported.wait_for(|intervals| {
            let so_far = Span { from_s, to_s: now_s() - LAST_S };
            self.pattern.goodput(so_far, intervals).value().is_some()
        });
        tokio::select! {
            _ = enough => false,
            ended = self.ended_within((MAX_TIMES_USUAL - 1.0) * unchanged_s) => ended,
        }
    }

    /// Waits for this time. Returns whether the payload ended meanwhile.
    async fn ended_within(&self, seconds: f64) -> bool {
        tokio::select! {
            () = tokio::time::sleep(Duration::from_secs_f64(seconds)) => false,
            () = self.ends.raised() => true,
        }
    }
}

/// What the receivers counted in the intervals that lie entirely in `turn`, if these last at least `least_s`.
fn goodput(intervals: &[Interval], turn: Span, least_s: f64) -> Known<BitRate> {
    let mut sum = 0.0;
    let senders = [EndName::Near, EndName::Far];
    let of = |sender| intervals.iter().filter(move |one| one.sender == sender);
    for sender in senders.into_iter().filter(|sender| of(*sender).next().is_some()) {
        let (mut bytes, mut time_s) = (0, 0.0);
        for one in of(sender).filter(|one| one.from_s >= turn.from_s && one.to_s <= turn.to_s) {
            match &one.received_bytes {
                Known::Value(received) => bytes += received,
                Known::Missing(why) => return Known::Missing(why.clone()),
            }
            time_s += one.to_s - one.from_s;
        }
        if time_s < least_s {
            return Known::missing("the payload ended, or nothing was reported of the turn");
        }
        sum += bytes as f64 * 8.0 / time_s;
    }
    Known::Value(BitRate(sum))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(sender: EndName, number: u32, bytes: u64) -> Interval {
        let from_s = f64::from(number) * INTERVAL_S;
        Interval {
            sender,
            from_s,
            to_s: from_s + INTERVAL_S,
            received_bytes: Known::Value(bytes),
            goodput_bits_per_s: Known::missing("not asked"),
            sent_bits_per_s: None,
        }
    }

    #[test]
    fn only_whole_intervals_of_a_turn_count_and_both_directions_add_up() {
        let arm = |number| if (10..20).contains(&number) { 125_000 } else { 1 };
        let mut intervals: Vec<_> =
            (0..30).map(|number| interval(EndName::Near, number, arm(number))).collect();
        let turn = Span { from_s: 0.95, to_s: 2.01 };
        let one_way = goodput(&intervals, turn, 0.5);
        let rate = |known: Known<BitRate>| known.value().map(|rate| (rate.0 / 1e6).round());
        assert_eq!(rate(one_way), Some(10.0));
        intervals.extend((0..30).map(|number| interval(EndName::Far, number, arm(number) / 5)));
        assert_eq!(rate(goodput(&intervals, turn, 0.5)), Some(12.0));
        assert!(
            rate(goodput(&intervals, Span { from_s: 2.8, to_s: 3.5 }, 0.5)).is_none(),
            "the payload ended"
        );
        intervals[15].received_bytes = Known::missing("not reported");
        assert!(rate(goodput(&intervals, turn, 0.5)).is_none(), "absent is not zero");
    }

    #[test]
    fn one_connection_is_long_enough_for_its_turns_and_not_too_long_for_a_server() {
        for change_ms in [0, 3000] {
            let change = Duration::from_millis(change_ms);
            let pattern = Pattern::new(Duration::from_secs(1), change);
            let turns = pattern.most_turns();
            assert!(pattern.turn_s() > 1.5 + change.as_secs_f64());
            assert!(turns > 2 && pattern.longest_s(turns) <= MAX_CONNECTION_S);
        }
    }

    /// Turns without any change, whose receiver reports intervals of `report` after `lag`.
    async fn turns(report: Duration, lag: Duration) -> (Vec<Span>, Vec<Interval>, Pattern) {
        let pattern = Pattern::new(Duration::from_millis(500), Duration::ZERO);
        let mut appliers = Appliers::new(std::path::PathBuf::new(), Default::default());
        let (reports, reported) = watch::channel(Vec::new());
        let (_, ends) = interrupt();
        let (begin, payload) = oneshot::channel();
        assert!(begin.send(Instant::now()).is_ok());
        let arms = [Arm(Vec::new())];
        let changing = Changing { appliers: &mut appliers, arms: &arms, pattern, reported, ends };
        let order = [(1, 0), (1, 0)];
        let mut spans = std::pin::pin!(changing.through(&order, payload));
        let mut made: Vec<Interval> = Vec::new();
        let mut next = tokio::time::interval(report);
        next.tick().await;
        let spans = loop {
            tokio::select! {
                spans = &mut spans => break spans.unwrap(),
                _ = next.tick() => {
                    let from_s = made.last().map_or(0.0, |last| last.to_s);
                    let to_s = from_s + report.as_secs_f64();
                    made.push(Interval { from_s, to_s, ..interval(EndName::Near, 0, 125_000) });
                    let reached = made.iter().filter(|one| one.to_s + lag.as_secs_f64() <= to_s);
                    let reached: Vec<_> = reached.cloned().collect();
                    reports.send_replace(reached);
                }
            }
        };
        (spans, made, pattern)
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_goes_on_until_its_receiver_has_reported_enough_of_it() {
        for (report_ms, lag_ms) in [(100, 0), (100, 300), (300, 0), (400, 0)] {
            let report = Duration::from_millis(report_ms);
            let (spans, intervals, pattern) = turns(report, Duration::from_millis(lag_ms)).await;
            let known =
                spans.iter().filter(|span| pattern.goodput(**span, &intervals).value().is_some());
            assert_eq!((spans.len(), known.count()), (2, 2), "{report_ms} {lag_ms}: {spans:?}");
        }
    }
}
