//! From single round trips to the numbers of a record.

use std::collections::BTreeMap;

use goodput_experiment::quantile::{nearest_rank, trimmed_mean};
use goodput_model::{
    FlowSample, IdleAndLoaded, Known, Latency, Missing, Role, RoundTrips, Transport,
};

use super::schedule::ANSWER_TIMEOUT;
use super::{Phase, ProbesResult};
use crate::result::measurement::Measurement;

/// Share of the longest times that responsiveness leaves out (draft-ietf-ippm-responsiveness: the mean
/// is trimmed at the 95th percentile).
const TRIMMED_SHARE: f64 = 0.05;

/// A minute, microseconds.
const MINUTE_US: f64 = 60e6;

/// The latency of a measurement, from the probes before and during it.
pub fn latency(mut idle: Phase, mut loaded: Phase, measurement: &Measurement) -> Latency {
    idle.sort();
    loaded.sort();
    let compared = |idle: &ProbesResult, loaded: &ProbesResult| IdleAndLoaded {
        idle: probed(idle),
        loaded: probed(loaded),
    };
    Latency {
        tcp_connect: compared(&idle.tcp_connect, &loaded.tcp_connect),
        udp_echo: compared(&idle.udp_echo, &loaded.udp_echo),
        tcp_rtt: tcp_rtt(measurement),
        unsent: unsent(measurement).into(),
        loaded_rpm: per_minute(&loaded),
        idle_rpm: per_minute(&idle),
    }
}

impl Phase {
    fn sort(&mut self) {
        for found in [&mut self.tcp_connect, &mut self.udp_echo].into_iter().flatten() {
            found.us.sort_by(f64::total_cmp);
        }
    }
}

fn probed(found: &ProbesResult) -> Known<RoundTrips> {
    let counted = found.as_ref().map_err(Clone::clone).and_then(|probes| {
        let none = || match probes.lost {
            0 => Missing::because("no request was sent: the test was too short"),
            lost => Missing::because(format!(
                "none of {lost} requests was answered within {} s",
                ANSWER_TIMEOUT.as_secs()
            )),
        };
        let kept = round_trips(&probes.us, Known::Value(probes.lost)).ok_or_else(none)?;
        let (min_us, max_us) = probes.range_us;
        let of_every = (probes.of_every > 1).then_some(probes.of_every);
        Ok(RoundTrips { n: probes.answered, min_us, max_us, of_every, ..kept })
    });
    counted.into()
}

/// The statistics of sorted times; `None` if there are none.
fn round_trips(sorted: &[f64], lost: Known<u64>) -> Option<RoundTrips> {
    let at = |share| nearest_rank(sorted, share);
    Some(RoundTrips {
        n: sorted.len() as u64,
        lost,
        min_us: at(0.0)?,
        p50_us: at(0.5)?,
        p90_us: at(0.9)?,
        p99_us: at(0.99)?,
        max_us: at(1.0)?,
        of_every: None,
    })
}

/// Round trips per minute, from every way to probe that has a result.
fn per_minute(phase: &Phase) -> Known<f64> {
    let found = [&phase.tcp_connect, &phase.udp_echo];
    let means: Vec<f64> = found
        .iter()
        .filter_map(|found| trimmed_mean(&found.as_ref().ok()?.us, TRIMMED_SHARE))
        .filter(|mean| *mean > 0.0)
        .collect();
    let why = found.iter().find_map(|found| found.as_ref().err().cloned());
    let why = why.unwrap_or_else(|| Missing::because("no request was answered"));
    let mean = trimmed_mean(&means, 0.0).ok_or(why);
    mean.map(|mean| MINUTE_US / mean).into()
}

/// The sending flows of a TCP measurement, sample by sample, with their times; or why there are none.
fn sending(measurement: &Measurement) -> Result<Vec<(f64, &FlowSample)>, Missing> {
    if measurement.plan.transport == Transport::Udp {
        return Err(Missing::because("the flows are UDP"));
    }
    let nothing = || Missing::because("nothing was sent");
    let sender = measurement.senders().first().copied().ok_or_else(nothing)?;
    if measurement.end(sender).is_none() {
        let why = "only the sending end's TCP knows, and that end does not report it";
        return Err(Missing::because(why));
    }
    let samples = measurement.steady(sender).iter();
    let flows = samples.flat_map(|sample| sample.flows.iter().map(|flow| (sample.at_s, flow)));
    Ok(flows.filter(|(_, flow)| flow.role == Role::Sender).collect())
}

/// The statistics of sampled times, in any order.
fn sampled(mut times: Vec<f64>) -> Result<RoundTrips, Missing> {
    times.sort_by(f64::total_cmp);
    let lost = Known::missing("these are samples of an estimate, not requests");
    let none = || Missing::because("no sample has tcp_info of a sending flow");
    round_trips(&times, lost).ok_or_else(none)
}

/// Round trips of the flows as the sending end's TCP estimated them.
fn tcp_rtt(measurement: &Measurement) -> IdleAndLoaded {
    let flows = match sending(measurement) {
        Ok(flows) => flows,
        Err(why) => return IdleAndLoaded::missing(&why),
    };
    let of = |wanted: &dyn Fn(f64) -> bool| {
        let flows = flows.iter().filter(|(at_s, _)| wanted(*at_s));
        let rtt = flows.filter_map(|(_, flow)| flow.tcp.value()?.rtt_us().ok());
        sampled(rtt.filter(|us| *us > 0).map(|us| us as f64).collect()).into()
    };
    let omit_s = measurement.plan.omit_s;
    IdleAndLoaded { idle: of(&|at_s| at_s == 0.0), loaded: of(&|at_s| at_s > omit_s) }
}

/// How long payload waited in the sending sockets: each socket's unsent bytes over the rate at which its payload was
/// acknowledged overall (J. D. C. Little, 1961: the mean wait is the mean queue over the throughput).
fn unsent(measurement: &Measurement) -> Result<RoundTrips, Missing> {
    let flows = sending(measurement)?;
    let omit_s = measurement.plan.omit_s;
    let mut series: BTreeMap<u16, Vec<(f64, u64, u64)>> = BTreeMap::new();
    for (at_s, flow) in flows.into_iter().filter(|(at_s, _)| *at_s > omit_s) {
        let tcp = flow.tcp.get()?;
        let point = (at_s, tcp.acked_bytes()?, tcp.notsent_bytes()?);
        series.entry(flow.flow).or_default().push(point);
    }
    sampled(series.values().flat_map(|flow| waits_us(flow)).collect())
}

/// The waits of one flow, from the time, the acknowledged bytes by then, and the unsent bytes.
fn waits_us(series: &[(f64, u64, u64)]) -> Vec<f64> {
    let (Some(first), Some(last)) = (series.first(), series.last()) else { return Vec::new() };
    let bytes_per_s = last.1.saturating_sub(first.1) as f64 / (last.0 - first.0);
    let is_rate = bytes_per_s.is_finite() && bytes_per_s > 0.0;
    let waits = series.iter().map(|(_, _, unsent)| *unsent as f64 / bytes_per_s * 1e6);
    waits.filter(|_| is_rate).collect()
}

#[cfg(test)]
mod tests {
    use super::super::schedule::PhaseProbes;
    use super::*;

    fn phase(tcp: &[f64], udp: ProbesResult) -> Phase {
        let mut phase = Phase { tcp_connect: Ok(probes(tcp, 0)), udp_echo: udp };
        phase.sort();
        phase
    }

    fn probes(us: &[f64], lost: u64) -> PhaseProbes {
        let mut probes = PhaseProbes { lost, ..PhaseProbes::default() };
        us.iter().for_each(|us| probes.take(*us));
        probes
    }

    #[test]
    fn responsiveness_is_of_all_that_answered() {
        let no_echo = || Err(Missing::because("no echo"));
        assert_eq!(per_minute(&phase(&[40_000.0, 20_000.0], no_echo())), Known::Value(2000.0));
        let both = phase(&[30_000.0], Ok(probes(&[10_000.0], 1)));
        assert_eq!(per_minute(&both), Known::Value(3000.0));
        assert_eq!(per_minute(&phase(&[], no_echo())), Known::missing("no echo"));
    }

    #[test]
    fn what_nobody_answered_says_how_many_were_asked() {
        let lost = probed(&Ok(probes(&[], 7)));
        assert_eq!(lost, Known::missing("none of 7 requests was answered within 3 s"));
        let Known::Value(seen) = probed(&Ok(probes(&[1.0, 2.0, 9.0], 2))) else {
            panic!("three were answered");
        };
        assert_eq!((seen.n, seen.lost, seen.p50_us, seen.max_us), (3, Known::Value(2), 2.0, 9.0));
    }

    #[test]
    fn a_wait_is_what_is_unsent_over_the_rate() {
        let series = [(1.0, 0, 250_000), (2.0, 900_000, 0), (3.0, 2_000_000, 500_000)];
        assert_eq!(waits_us(&series), [250_000.0, 0.0, 500_000.0]);
        assert!(waits_us(&[(1.0, 5, 250_000)]).is_empty() && waits_us(&[]).is_empty());
        assert!(waits_us(&[(1.0, 5, 9), (2.0, 5, 9)]).is_empty());
    }
}
