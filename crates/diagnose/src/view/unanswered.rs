//! Flows of which nothing comes back as long as they run, because a queue keeps it. No round trip of theirs shows that queue:
//! only the exchanges of the clocks do, and on which way it is.

use goodput_model::{EndName, Exchange, FlowSample, Missing, Sample, TcpInfo};

use super::{Halves, Side, View};
use crate::bounded::Bounded;
use crate::clocks::MAX_DRIFT_SHARE;
use crate::thresholds::MIN_LIMITING_TIME_SHARE;

/// What is counted for a median.
const AN_EXCHANGE: &str = "an exchange of the clocks";

/// What exchanges show that were on their way when the flows ended, and had waited for most of that.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Unanswered {
    /// From when on a queue explains that nothing came back, seconds by the sender's samples. Before that, what was sent with
    /// the first of these exchanges could not have been back even without a queue.
    pub explained_from_s: f64,
    /// How long these exchanges took, seconds; the median.
    pub took_s: f64,
    /// How much longer they took on each way than the fastest exchange. If that one waited, too, the queue is longer.
    pub halves: Halves,
}

impl View<'_> {
    /// What kept all acknowledgements of the flows.
    ///
    /// # Errors
    /// If one came back, if no exchange of the clocks was kept for most of that time, or if one came back that was sent after
    /// the flows' segments.
    pub fn unanswered(&self) -> Result<Unanswered, Missing> {
        let (from_s, to_s) = self.sender.unanswered_s()?;
        let trips = self.trips()?;
        let passed = |trip: &Trip| trip.sent_s >= from_s && trip.back_s <= to_s;
        if trips.iter().any(passed) {
            return Err(Missing::because(
                "an exchange of the clocks came back that was sent after the flows' segments",
            ));
        }
        let fastest_s = trips.iter().map(Trip::took_s).fold(f64::INFINITY, f64::min);
        let late_s = self.late_s();
        let kept: Vec<&Trip> = trips
            .iter()
            .filter(|trip| trip.sent_s < to_s && trip.back_s > to_s)
            .filter(|trip| trip.mostly_waited(fastest_s, late_s))
            .collect();
        let first_s = kept.iter().map(|trip| trip.sent_s).fold(f64::INFINITY, f64::min);
        let explained_from_s = first_s + fastest_s;
        if explained_from_s > to_s - MIN_LIMITING_TIME_SHARE * (to_s - from_s) {
            return Err(Missing::because(
                "no exchange of the clocks was kept for most of the time that the flows ran",
            ));
        }
        let took = kept.iter().map(|trip| trip.took_s()).collect();
        Ok(Unanswered {
            explained_from_s,
            took_s: Bounded::median(took, AN_EXCHANGE)?.value,
            halves: beyond_the_fastest(&kept, &trips)?,
        })
    }

    /// All exchanges of the clocks.
    fn trips(&self) -> Result<Vec<Trip>, Missing> {
        let clocks = &self.evidence.clocks;
        let near = self.evidence.near.get()?;
        let clock = near.clock.as_ref().ok_or_else(|| {
            Missing::because("the near end does not report when its samples began")
        })?;
        let is_near = self.sender.name == EndName::Near;
        let later_s = match is_near {
            true => 0.0,
            false => clocks.far_began_later_s(near, self.evidence.far.get()?)?,
        };
        let at_s = |ns: u64| ns.wrapping_sub(clock.began_ns) as i64 as f64 / 1e9 - later_s;
        let trip = |e: &Exchange| {
            let out_ns = e.received_ns.wrapping_sub(e.sent_ns) as i64;
            let home_ns = e.back_ns.wrapping_sub(e.answered_ns) as i64;
            let ways_ns = if is_near { [out_ns, home_ns] } else { [home_ns, out_ns] };
            Trip { sent_s: at_s(e.sent_ns), back_s: at_s(e.back_ns), ways_ns }
        };
        Ok(clocks.exchanges.iter().map(trip).collect())
    }
}

impl Side<'_> {
    /// Since when something of the flows was seen in flight, and when they were last sampled, seconds.
    ///
    /// # Errors
    /// If something of one was delivered, or one had nothing in flight at the end.
    fn unanswered_s(&self) -> Result<(f64, f64), Missing> {
        if !self.tcp_series()?.iter().all(|flow| is_unanswered(flow)) {
            return Err(Missing::because(
                "the flows got acknowledgements, or had nothing in flight",
            ));
        }
        let samples = &self.end()?.samples;
        let is_sent = |flow: &FlowSample| {
            flow.role == self.role && flow.tcp.value().is_some_and(has_something_in_flight)
        };
        let first = samples.iter().find(|sample| sample.flows.iter().any(is_sent));
        let at_s = |sample: Option<&Sample>| sample.map_or(0.0, |sample| sample.at_s);
        Ok((at_s(first), at_s(samples.last())))
    }
}

/// Whether something of a flow is in flight, and nothing of it was delivered but what time-outs sent again, of which no round
/// trip was measured. False if the kernel does not report that.
fn is_unanswered(flow: &[&TcpInfo]) -> bool {
    let is = |first: &TcpInfo, last: &TcpInfo| {
        let arrived = last.delivered_segments?.checked_sub(first.delivered_segments?)?;
        let of_time_outs = arrived <= last.total_rto.unwrap_or(0) && last.rtt_us == first.rtt_us;
        Some(has_something_in_flight(last) && (arrived == 0 || of_time_outs))
    };
    flow.first().zip(flow.last()).and_then(|(first, last)| is(first, last)).unwrap_or(false)
}

fn has_something_in_flight(tcp: &TcpInfo) -> bool {
    tcp.unacked_segments.is_some_and(|segments| segments > 0)
}

/// An exchange of the clocks, by the sender's samples.
struct Trip {
    sent_s: f64,
    back_s: f64,
    /// What the clocks of both ends differ by over the way to the receiver, and over the way back, nanoseconds. Only their sum
    /// is a time.
    ways_ns: [i64; 2],
}

impl Trip {
    fn took_s(&self) -> f64 {
        self.ways_ns[0].wrapping_add(self.ways_ns[1]) as f64 / 1e9
    }

    /// Whether it waited for most of its time, and longer than hosts explain. On a long path, others are on their way at any
    /// time, and prove nothing.
    fn mostly_waited(&self, fastest_s: f64, late_s: f64) -> bool {
        let waited_s = self.took_s() - fastest_s;
        waited_s > late_s && 2.0 * waited_s > self.took_s()
    }
}

fn beyond_the_fastest(kept: &[&Trip], all: &[Trip]) -> Result<Halves, Missing> {
    let least_ns =
        [0usize, 1].map(|way| all.iter().map(|trip| trip.ways_ns[way]).min().unwrap_or(0));
    let beyond_s =
        |trip: &Trip, way: usize| trip.ways_ns[way].wrapping_sub(least_ns[way]) as f64 / 1e9;
    let first_s = all.iter().map(|trip| trip.sent_s).fold(f64::INFINITY, f64::min);
    let last_s = all.iter().map(|trip| trip.back_s).fold(f64::NEG_INFINITY, f64::max);
    let drift_s = MAX_DRIFT_SHARE * (last_s - first_s);
    let median = |read: &dyn Fn(&Trip) -> f64, by_s: f64| {
        let waits = kept.iter().map(|trip| read(trip)).collect();
        Bounded::median(waits, AN_EXCHANGE).map(|median| median.wider(by_s))
    };
    Ok(Halves {
        more_back_s: median(&|trip: &Trip| beyond_s(trip, 1) - beyond_s(trip, 0), 2.0 * drift_s)?,
        there_s: median(&|trip: &Trip| beyond_s(trip, 0), drift_s)?,
        back_s: median(&|trip: &Trip| beyond_s(trip, 1), drift_s)?,
    })
}

#[cfg(test)]
mod tests {
    use std::mem;

    use goodput_model::Evidence;

    use super::*;
    use crate::testing::Case;

    fn unanswered(case: Case) -> Result<Unanswered, Missing> {
        View::new(&case.evidence()).unanswered()
    }

    /// Nothing comes back for 4 s, while exchanges wait this long on each way.
    fn silent(there_s: f64, back_s: f64) -> Case {
        let case = Case::path_rate().waits(there_s, back_s);
        case.tcp(|tcp, _| (tcp.delivered_segments, tcp.unacked_segments) = (Some(2), Some(11)))
    }

    /// The same measurement if the far end sends, and the near end begins each exchange of the clocks.
    fn sent_by_far(mut evidence: Evidence) -> Evidence {
        const APART_NS: u64 = 76_000_000_000_000;
        mem::swap(&mut evidence.near, &mut evidence.far);
        evidence.sender_end = EndName::Far;
        for e in &mut evidence.clocks.exchanges {
            (e.sent_ns, e.back_ns) = (e.sent_ns + APART_NS, e.back_ns + APART_NS);
            (e.received_ns, e.answered_ns) = (e.received_ns - APART_NS, e.answered_ns - APART_NS);
        }
        evidence.clocks.relation =
            crate::clocks::relation(&evidence.clocks.exchanges, false).into();
        evidence
    }

    #[test]
    fn exchanges_that_are_kept_as_long_say_on_which_way() {
        for case in [silent(0.0, 9.0), silent(0.0, 9.0).without_far()] {
            let found = unanswered(case).unwrap();
            assert!((found.halves.back_s.value - 9.0).abs() < 1e-6, "{found:?}");
            assert!(found.halves.there_s.value.abs() < 1e-6, "{found:?}");
            assert!((found.took_s - 9.042).abs() < 1e-6, "{found:?}");
        }
        let there = unanswered(silent(9.0, 0.0)).unwrap();
        assert_eq!(there.halves.more_back_s.exceeds(0.0, "it"), Ok(false));
    }

    #[test]
    fn the_way_back_to_a_far_sender_is_the_exchanges_way_there() {
        let evidence = sent_by_far(silent(9.0, 0.0).began_late(EndName::Near, 0.3).evidence());
        let found = View::new(&evidence).unanswered().unwrap();
        assert!((found.halves.back_s.value - 9.0).abs() < 1e-6, "{found:?}");
        assert!((found.explained_from_s - 0.042 + 0.3).abs() < 1e-3, "{found:?}");
    }

    /// One segment of each of four flows that a narrow way back drowns, as measured.
    #[test]
    fn what_time_outs_send_again_is_no_answer() {
        let case = |time_outs: u64, rtt_us: fn(u64) -> u64| {
            silent(0.0, 9.0).tcp(move |tcp, number| {
                tcp.delivered_segments = Some(if number > 20 { 3 } else { 2 });
                (tcp.total_rto, tcp.rtt_us) = (Some(time_outs), Some(rtt_us(number)));
            })
        };
        assert!(unanswered(case(1, |_| 648_153)).is_ok());
        assert!(unanswered(case(0, |_| 648_153)).is_err());
        assert!(unanswered(case(1, |number| 648_153 + number)).is_err(), "a round trip");
    }

    #[test]
    fn a_queue_explains_nothing_before_the_fastest_answer_would_be_back() {
        let from_s = |case| unanswered(case).unwrap().explained_from_s;
        assert!((from_s(silent(0.0, 9.0)) - 0.042).abs() < 1e-6);
        assert!((from_s(silent(0.0, 9.0).far_apart(0.3)) - 0.6).abs() < 1e-6);
        let late = silent(0.0, 9.0).began_late(EndName::Near, 0.3);
        assert!((from_s(late) - 0.042 + 0.3).abs() < 1e-6);
    }

    #[test]
    fn what_is_on_its_way_over_a_long_path_is_not_kept() {
        // Black-holed payload, and some milliseconds of jitter; and a test that is shorter than the round trip.
        for (way_s, back_s) in [(0.3, 0.0), (0.3, 0.005), (2.5, 0.0), (2.5, 0.005)] {
            let found = unanswered(silent(0.0, back_s).far_apart(way_s));
            assert!(found.is_err(), "{way_s} {back_s} {found:?}");
        }
    }

    /// What is sent until then is lost.
    #[test]
    fn a_queue_that_comes_late_explains_no_silence_before_it() {
        let from = |late_s: f64| {
            let mut evidence = silent(0.0, 9.0).evidence();
            let began_ns = evidence.near.get().unwrap().clock.as_ref().unwrap().began_ns;
            let lost = began_ns..began_ns + (late_s * 1e9) as u64;
            evidence.clocks.exchanges.retain(|e| !lost.contains(&e.sent_ns));
            View::new(&evidence).unanswered().map(|found| found.explained_from_s)
        };
        assert!(from(1.0).is_ok_and(|from_s| (from_s - 1.042).abs() < 1e-6));
        assert!(from(2.5).is_err());
    }

    #[test]
    fn a_queue_that_lets_later_exchanges_through_keeps_no_earlier_segments() {
        let why = unanswered(silent(0.0, 2.0)).unwrap_err().to_string();
        assert!(why.contains("came back that was sent after"), "{why}");
    }

    #[test]
    fn nothing_is_said_of_flows_that_got_answers_or_of_quick_exchanges() {
        assert!(unanswered(Case::path_rate().waits(0.0, 9.0)).is_err());
        assert!(unanswered(silent(0.0, 0.0)).is_err());
        let idle = silent(0.0, 9.0).tcp(|tcp, _| tcp.unacked_segments = Some(0));
        assert!(unanswered(idle).is_err());
    }
}
