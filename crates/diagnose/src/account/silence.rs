//! Silences that a time-out ended: all of it was spent waiting for that time-out, whatever the windows looked like.

use std::collections::HashSet;

use goodput_model::{FlowSample, Missing, Role, TcpInfo};

use super::pair::Pair;
use crate::view::{TcpOption, View};

/// Segments in flight of which an outage delivers none. Of that many, even a path that loses half of all packets delivers
/// none in one case of a thousand.
const MIN_IN_FLIGHT_SEGMENTS: f64 = 10.0;

/// Times within the window in which the path delivered nothing of any flow, though much was in flight, and after which it
/// delivered again.
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
        let pairs = Pair::all(&view.sender.end()?.samples, Role::Sender);
        let silences = Silences::of(&pairs);
        let silent = |number: usize, pair: &Pair| {
            let all = pair.flows.iter().all(|(_, to)| silences.cover(number, to.flow));
            all && !pair.flows.is_empty() && view.sender.is_measured(pair.from_s)
        };
        Ok(Self::among(&pairs, silent))
    }

    /// Of these pairs, if `silent` says of which all flows waited for a time-out.
    fn among(pairs: &[Pair], silent: impl Fn(usize, &Pair) -> bool) -> Self {
        let (mut outages, mut began) = (Self::default(), None);
        for (number, pair) in pairs.iter().enumerate() {
            if silent(number, pair) {
                let (from_s, _, in_flight) =
                    began.unwrap_or((pair.from_s, pair.to_s, pair.in_flight_segments()));
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

/// The flows that waited for a time-out, by the number of the pair of samples.
pub struct Silences(HashSet<(usize, u16)>);

impl Silences {
    /// Of all pairs, in the order of time.
    pub fn of(pairs: &[Pair]) -> Self {
        let (mut found, mut next) = (HashSet::new(), HashSet::new());
        for (number, pair) in pairs.iter().enumerate().rev() {
            let waits = |(from, to): &&(&FlowSample, &FlowSample)| {
                is_silent(from, to) && (timed_out(from, to) || next.contains(&to.flow))
            };
            next = pair.flows.iter().filter(waits).map(|(_, to)| to.flow).collect();
            found.extend(next.iter().map(|flow| (number, *flow)));
        }
        Self(found)
    }

    /// Whether `flow` waited for a time-out between the two samples of the pair of this number.
    pub fn cover(&self, number: usize, flow: u16) -> bool {
        self.0.contains(&(number, flow))
    }
}

/// Whether something was on its way, and nothing was delivered.
fn is_silent(from: &FlowSample, to: &FlowSample) -> bool {
    tcp(from).and_then(|tcp| tcp.unacked_segments).is_some_and(|segments| segments > 0)
        && grown(from, to, |tcp| tcp.delivered_segments) == Some(0)
}

fn is_delivering(from: &FlowSample, to: &FlowSample) -> bool {
    grown(from, to, |tcp| tcp.delivered_segments).is_some_and(|segments| segments > 0)
}

fn timed_out(from: &FlowSample, to: &FlowSample) -> bool {
    grown(from, to, |tcp| tcp.total_rto).is_some_and(|timeouts| timeouts > 0)
}

fn grown(from: &FlowSample, to: &FlowSample, read: fn(&TcpInfo) -> Option<u64>) -> Option<u64> {
    Some(read(tcp(to)?)?.saturating_sub(read(tcp(from)?)?))
}

fn tcp(sample: &FlowSample) -> Option<&TcpInfo> {
    sample.tcp.value()
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

    fn pairs_of(series: &[(u64, u64)], read: impl FnOnce(&[Pair])) {
        let samples: Vec<_> =
            series.iter().map(|(segments, rto)| sample(*segments, *rto)).collect();
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

    fn silences(series: &[(u64, u64)]) -> Vec<bool> {
        let mut silent = Vec::new();
        pairs_of(series, |pairs| {
            let silences = Silences::of(pairs);
            silent.extend((0..pairs.len()).map(|number| silences.cover(number, 0)));
        });
        silent
    }

    fn outages(series: &[(u64, u64)]) -> usize {
        let mut count = 0;
        pairs_of(series, |pairs| {
            let silences = Silences::of(pairs);
            count = Outages::among(pairs, |number, _| silences.cover(number, 0)).spans.len();
        });
        count
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
