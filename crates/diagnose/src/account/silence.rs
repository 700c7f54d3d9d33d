//! Silences that a time-out ended: all of it was spent waiting for that time-out, whatever the windows looked like, unless a
//! queue was longer than the time-out.

use std::collections::{BTreeMap, HashMap};

use goodput_model::{FlowSample, Missing, Role, TcpInfo};

use super::pair::Pair;
use super::state::{CA_LOSS, in_flight_segments};
use crate::fresh_trip::fresh_trip_us;
use crate::view::{TcpOption, View};

/// Segments in flight of which an outage delivers none. Of that many, even a path that loses half of all packets delivers
/// none in one case of a thousand.
const MIN_IN_FLIGHT_SEGMENTS: f64 = 10.0;

/// Times within the window in which the path delivered nothing of any flow, though much was in flight, and after which it
/// delivered again. None if a queue kept most of that.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outages {
    /// When each began and ended, seconds by the sender's samples.
    pub spans: Vec<(f64, f64)>,
    /// Segments in flight when the last began.
    pub in_flight_segments: f64,
}

impl Outages {
    /// By the sender's samples.
    ///
    /// # Errors
    /// If the payload is not TCP's, the connection has no selective acknowledgements or the sender reports no samples.
    pub fn of(view: &View) -> Result<Self, Missing> {
        view.needs_tcp()?;
        if view.sender.has_option(TcpOption::Sack) == Ok(false) {
            return Err(Missing::because(
                "without selective acknowledgements the sender does not know what arrived",
            ));
        }
        let pairs = Pair::all(view.sender.end()?, Role::Sender);
        let is_measured = |pair: &Pair| view.sender.is_measured(pair.from_s);
        Ok(Self::among(&pairs, &Silences::of(&pairs), is_measured))
    }

    fn among(pairs: &[Pair], silences: &Silences, is_measured: impl Fn(&Pair) -> bool) -> Self {
        let (mut outages, mut began) = (Self::default(), None);
        for (number, pair) in pairs.iter().enumerate() {
            let silent = |(from, to): &(&FlowSample, &FlowSample)| {
                silences.wait(number, to.flow).is_some() && !is_delivering(from, to)
            };
            if is_measured(pair) && !pair.flows.is_empty() && pair.flows.iter().all(silent) {
                let (from_s, _, in_flight) = began.unwrap_or_else(|| {
                    (pair.from_s, pair.to_s, silences.undelivered_segments(number, pair))
                });
                began = Some((from_s, pair.to_s, in_flight));
            } else if pair.flows.iter().any(|(from, to)| is_delivering(from, to)) {
                began.take().into_iter().for_each(|outage| outages.enter(outage));
            }
        }
        outages
    }

    /// How long they lasted together, seconds, in whole samples.
    pub fn seconds(&self) -> f64 {
        self.spans.iter().map(|(from_s, to_s)| to_s - from_s).sum()
    }

    fn enter(&mut self, (from_s, to_s, in_flight_segments): (f64, f64, f64)) {
        if in_flight_segments >= MIN_IN_FLIGHT_SEGMENTS {
            self.spans.push((from_s, to_s));
            self.in_flight_segments = in_flight_segments;
        }
    }
}

/// What a flow waited for while nothing of it was delivered, and until the time-out that ended this was taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// A time-out, as far as is known.
    TimeOut,
    /// A queue that was longer than the time-out, which was needless.
    Queue,
}

/// The flows that waited until a time-out, by the number of the pair of samples.
pub struct Silences(HashMap<(usize, u16), Wait>);

impl Silences {
    /// Of all pairs, in the order of time.
    pub fn of(pairs: &[Pair]) -> Self {
        let mut found = HashMap::new();
        for (flow, steps) in by_flow(pairs) {
            let mut ended = 0;
            for stretch in steps.chunk_by(Step::goes_on) {
                ended += stretch.len();
                let timed_out = stretch.iter().rposition(Step::timed_out);
                let Some(last) = timed_out.filter(|_| stretch[0].is_silent()) else { continue };
                let later = &steps[ended..];
                let no_more = &later[..0];
                let (wait, held, still) = match was_queue(stretch, later).unwrap_or(false) {
                    true => (Wait::Queue, stretch, until_taken_back(&stretch[0], later)),
                    false => (Wait::TimeOut, &stretch[..=last], no_more),
                };
                found.extend(held.iter().chain(still).map(|step| ((step.number, flow), wait)));
            }
        }
        Self(found)
    }

    /// What `flow` waited for between the two samples of the pair of this number, if nothing of it was delivered until a
    /// time-out. For a needless one, also while the connection still recovers from it.
    pub fn wait(&self, number: usize, flow: u16) -> Option<Wait> {
        self.0.get(&(number, flow)).copied()
    }

    /// What all flows had in flight at the start of this pair; nothing if a queue kept most of it.
    fn undelivered_segments(&self, number: usize, pair: &Pair) -> f64 {
        let in_flight = |(from, to): &(&FlowSample, &FlowSample)| {
            let segments = in_flight_segments(from.tcp.value()?).ok()?;
            Some((segments, self.wait(number, to.flow) == Some(Wait::Queue)))
        };
        let sum = |(all, kept): (f64, f64), (segments, is_kept): (f64, bool)| {
            (all + segments, kept + if is_kept { segments } else { 0.0 })
        };
        let (all, kept) = pair.flows.iter().filter_map(in_flight).fold((0.0, 0.0), sum);
        if 2.0 * kept > all { 0.0 } else { all }
    }
}

/// Whether a queue kept what was in flight while nothing was delivered: most of it arrived without being sent again, and what
/// was sent next, within as long again, took as long as the silence. What a link holds while it is down arrives, too, but then
/// round trips are short again. The time-out is needless then, and the kernel takes it back (RFC 5682;
/// net/ipv4/tcp_input.c, `tcp_process_loss`). `None` if it can't be known.
fn was_queue(silence: &[Step], later: &[Step]) -> Option<bool> {
    let (first, last) = (silence.first()?, silence.last()?);
    let in_flight = in_flight_segments(first.from).ok()?;
    let once_arrived = first.from.delivered_segments? as f64 + in_flight;
    let arrived = later.iter().position(|step| step.delivered() >= once_arrived)?;
    let then = later[arrived].to;
    if 2.0 * (sent_again(first.from, then)? + then.lost_segments? as f64) >= in_flight {
        return Some(false);
    }
    let lasted_s = last.to_s - first.from_s;
    let near = later.iter().take_while(|step| step.to_s <= last.to_s + lasted_s).last();
    let near = near.or(later.first())?;
    let sent_near = near.delivered() + in_flight_segments(near.to).ok()?;
    let of_these = later[arrived + 1..].iter().take_while(|step| step.delivered() <= sent_near);
    let trip_us = fresh_trip_us(then, of_these.last()?.to).ok()??;
    Some(trip_us / 1e6 >= lasted_s)
}

/// The steps after a needless time-out in which the connection still takes it for a loss: until two acknowledgements of what
/// was sent once show that it was none. Meanwhile, all that was in flight counts as lost, so what is sent again tells. Another
/// time-out has a silence of its own.
fn until_taken_back<'s, 'a>(first: &Step, later: &'s [Step<'a>]) -> &'s [Step<'a>] {
    let goes_on = |step: &Step| {
        let in_flight = in_flight_segments(first.from).ok();
        let is_kept = sent_again(first.from, step.to)
            .zip(in_flight)
            .is_some_and(|(again, in_flight)| 2.0 * again < in_flight);
        step.to.ca_state == Some(CA_LOSS) && !step.timed_out() && is_kept
    };
    let end = later.iter().position(|step| !goes_on(step)).unwrap_or(later.len());
    &later[..end]
}

/// Segments that were sent again from one sample to another.
fn sent_again(from: &TcpInfo, to: &TcpInfo) -> Option<f64> {
    Some(to.total_retrans_segments?.checked_sub(from.total_retrans_segments?)? as f64)
}

/// A flow's connection between two samples.
#[derive(Debug, Clone, Copy)]
struct Step<'a> {
    /// Of the pair of samples.
    number: usize,
    from_s: f64,
    to_s: f64,
    from: &'a TcpInfo,
    to: &'a TcpInfo,
}

impl Step<'_> {
    /// Whether something was on its way, and nothing was delivered.
    fn is_silent(&self) -> bool {
        self.from.unacked_segments.is_some_and(|segments| segments > 0)
            && grown(self.from, self.to, |tcp| tcp.delivered_segments) == Some(0)
    }

    fn timed_out(&self) -> bool {
        grown(self.from, self.to, |tcp| tcp.total_rto).is_some_and(|timeouts| timeouts > 0)
    }

    /// Whether the next one begins as this one ends, and is silent if this one is.
    fn goes_on(&self, next: &Self) -> bool {
        self.number + 1 == next.number && self.is_silent() == next.is_silent()
    }

    /// Segments delivered by its end; none if the kernel does not report it.
    fn delivered(&self) -> f64 {
        self.to.delivered_segments.unwrap_or(0) as f64
    }
}

fn by_flow<'a>(pairs: &[Pair<'a>]) -> BTreeMap<u16, Vec<Step<'a>>> {
    let mut flows: BTreeMap<u16, Vec<Step<'a>>> = BTreeMap::new();
    for (number, pair) in pairs.iter().enumerate() {
        for (from, to) in &pair.flows {
            if let (Some(before), Some(after)) = (from.tcp.value(), to.tcp.value()) {
                let (from_s, to_s) = (pair.from_s, pair.to_s);
                let step = Step { number, from_s, to_s, from: before, to: after };
                flows.entry(to.flow).or_default().push(step);
            }
        }
    }
    flows
}

fn is_delivering(from: &FlowSample, to: &FlowSample) -> bool {
    let both = from.tcp.value().zip(to.tcp.value());
    both.and_then(|(from, to)| grown(from, to, |tcp| tcp.delivered_segments)).is_some_and(|n| n > 0)
}

fn grown(from: &TcpInfo, to: &TcpInfo, read: fn(&TcpInfo) -> Option<u64>) -> Option<u64> {
    Some(read(to)?.saturating_sub(read(from)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::Known;

    /// A flow at one sample, with 10 segments in flight.
    fn sample(delivered: u64, timeouts: u64) -> FlowSample {
        let tcp = TcpInfo {
            unacked_segments: Some(10),
            sacked_segments: Some(0),
            lost_segments: Some(0),
            retrans_out_segments: Some(0),
            delivered_segments: Some(delivered),
            total_rto: Some(timeouts),
            ..TcpInfo::default()
        };
        FlowSample { tcp: Known::Value(tcp), ..FlowSample::unreported(0, Role::Sender, 0, "") }
    }

    fn pairs_of(samples: &[FlowSample], read: impl FnOnce(&[Pair])) {
        let pair = |two: &'_ [FlowSample]| (two[0].clone(), two[1].clone());
        let pairs: Vec<_> = samples.windows(2).map(pair).collect();
        let pairs: Vec<_> = (0..)
            .zip(&pairs)
            .map(|(n, (from, to))| Pair {
                from_s: f64::from(n),
                to_s: f64::from(n) + 1.0,
                flows: vec![(from, to)],
            })
            .collect();
        read(&pairs);
    }

    fn series(counts: &[(u64, u64)]) -> Vec<FlowSample> {
        counts.iter().map(|(segments, rto)| sample(*segments, *rto)).collect()
    }

    fn waits(samples: &[FlowSample]) -> Vec<Option<Wait>> {
        let mut waits = Vec::new();
        pairs_of(samples, |pairs| {
            let silences = Silences::of(pairs);
            waits.extend((0..pairs.len()).map(|number| silences.wait(number, 0)));
        });
        waits
    }

    fn silences(counts: &[(u64, u64)]) -> Vec<bool> {
        waits(&series(counts)).iter().map(Option::is_some).collect()
    }

    fn outages_of(samples: &[FlowSample]) -> usize {
        let mut count = 0;
        pairs_of(samples, |pairs| {
            let silences = Silences::of(pairs);
            count = Outages::among(pairs, &silences, |_| true).spans.len();
        });
        count
    }

    fn outages(counts: &[(u64, u64)]) -> usize {
        outages_of(&series(counts))
    }

    /// Round trips of 3 s, longer than a first silence of 1 or 2 s. The connection is in this state at each sample, and has
    /// sent so many segments again.
    fn needless(samples: &[(u64, u64, u64, u64)]) -> Vec<FlowSample> {
        let one = |(delivered, timeouts, ca_state, again): &(u64, u64, u64, u64)| {
            let mut flow = sample(*delivered, *timeouts);
            if let Known::Value(tcp) = &mut flow.tcp {
                (tcp.ca_state, tcp.total_retrans_segments) = (Some(*ca_state), Some(*again));
                (tcp.rtt_us, tcp.segs_in) = (Some(3_000_000), Some(*delivered));
            }
            flow
        };
        samples.iter().map(one).collect()
    }

    #[test]
    fn a_queue_keeps_the_flow_until_the_needless_time_out_is_taken_back() {
        const QUEUE: Option<Wait> = Some(Wait::Queue);
        let taken_back =
            [(100, 0, 0, 0), (100, 1, 4, 1), (115, 1, 4, 1), (120, 1, 4, 1), (130, 1, 0, 1)];
        assert_eq!(waits(&needless(&taken_back)), [QUEUE, QUEUE, QUEUE, None]);
        // Nothing comes for a while after the time-out, either.
        let longer = [&taken_back[..2], &taken_back[1..]].concat();
        assert_eq!(waits(&needless(&longer)), [QUEUE, QUEUE, QUEUE, QUEUE, None]);
        // Half of what was in flight is sent again after all.
        let lost = [(100, 0, 0, 0), (100, 1, 4, 1), (115, 1, 4, 1), (120, 1, 4, 5), (130, 1, 4, 9)];
        assert_eq!(waits(&needless(&lost)), [QUEUE, QUEUE, None, None]);
    }

    #[test]
    fn what_comes_while_a_time_out_is_not_taken_back_ends_a_silence() {
        let again = [
            (100, 0, 0, 0),
            (100, 1, 4, 1),
            (115, 1, 4, 1),
            (120, 1, 4, 1),
            (120, 2, 4, 1),
            (140, 2, 0, 1),
        ];
        let (queue, time_out) = (Some(Wait::Queue), Some(Wait::TimeOut));
        assert_eq!(waits(&needless(&again)), [queue, queue, queue, time_out, None]);
        assert_eq!(outages_of(&needless(&again)), 1);
    }

    #[test]
    fn a_path_that_never_delivers_again_has_no_outage() {
        let again = [(1, 0), (9, 0), (9, 0), (9, 1), (20, 1)];
        assert_eq!(outages(&again), 1);
        assert_eq!(outages(&again[..4]), 0);
        assert_eq!(outages(&[(1, 0), (9, 0), (9, 1), (9, 1), (9, 1)]), 0);
    }

    #[test]
    fn the_wait_for_a_time_out_begins_when_nothing_arrives_any_more() {
        assert_eq!(
            silences(&[(1, 0), (9, 0), (9, 0), (9, 0), (9, 1), (20, 1)]),
            [false, true, true, true, false]
        );
    }

    #[test]
    fn a_pause_without_a_time_out_is_none() {
        assert_eq!(silences(&[(9, 0), (9, 0), (20, 0), (30, 1)]), [false; 3]);
    }
}
