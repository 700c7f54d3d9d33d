//! When slow start ended, from the sender's samples.

use std::collections::BTreeMap;

use goodput_model::{FlowSample, Role, Sample, TcpInfo};

/// Growth of the delivery rate below which a pipe counts as full, and for how many consecutive round trips:
/// `bbr_full_bw_thresh` and `bbr_full_bw_cnt` of net/ipv4/tcp_bbr.c.
const FULL_PIPE_GROWTH_RATIO: f64 = 1.25;
const FULL_PIPE_ROUND_TRIPS: u32 = 3;

/// Seconds on the sender's clock until the last flow left slow start: the congestion window reached the threshold,
/// something was retransmitted, or delivery stopped growing (BBR's only sign). For each flow the earliest of these
/// signs counts. Flows without any sign, such as those still growing and UDP flows, are left out; `None` if no flow is
/// left.
pub fn ended_s(samples: &[Sample]) -> Option<f64> {
    let mut flows: BTreeMap<u16, Vec<(f64, &TcpInfo)>> = BTreeMap::new();
    for sample in samples {
        for (flow, tcp) in sample.flows.iter().filter_map(sending_tcp) {
            flows.entry(flow).or_default().push((sample.at_s, tcp));
        }
    }
    flows.values().filter_map(|flow| flow_ended_s(flow)).max_by(f64::total_cmp)
}

fn sending_tcp(flow: &FlowSample) -> Option<(u16, &TcpInfo)> {
    let tcp = flow.tcp.value()?;
    (flow.role == Role::Sender).then_some((flow.flow, tcp))
}

fn flow_ended_s(flow: &[(f64, &TcpInfo)]) -> Option<f64> {
    let left = flow.iter().find(|(_, tcp)| has_left(tcp)).map(|(at, _)| *at);
    [left, growth_ended_s(flow)].into_iter().flatten().min_by(f64::total_cmp)
}

fn has_left(tcp: &TcpInfo) -> bool {
    let retransmitted = tcp.total_retrans_segments.is_some_and(|count| count > 0);
    let reached = match (tcp.snd_cwnd_segments, tcp.snd_ssthresh_segments) {
        // BBR never sets the threshold, and neither does a flow limited by the peer's window before the first loss.
        (Some(cwnd), Some(ssthresh)) => ssthresh < TcpInfo::INFINITE_SSTHRESH && cwnd >= ssthresh,
        _ => false,
    };
    retransmitted || reached
}

/// When the delivery rate last grew by a quarter, if it did not for three round trips after that. Steps shorter than
/// the round-trip time are joined: within a round trip, delivery comes in bursts.
fn growth_ended_s(flow: &[(f64, &TcpInfo)]) -> Option<f64> {
    let mut points = flow.iter().filter_map(|(at, tcp)| Some((*at, tcp.acked_bytes?, tcp.rtt_us?)));
    let (mut from_s, mut from_bytes, _) = points.next()?;
    let (mut best, mut best_at, mut rounds) = (0.0, None, 0);
    for (at, bytes, rtt_us) in points {
        if at <= from_s || at - from_s < rtt_us as f64 / 1e6 {
            continue;
        }
        let rate = bytes.checked_sub(from_bytes)? as f64 / (at - from_s);
        (from_s, from_bytes) = (at, bytes);
        if rate > best * FULL_PIPE_GROWTH_RATIO {
            (best, best_at, rounds) = (rate, Some(at), 0);
        } else if best_at.is_some() {
            rounds += 1;
        }
        if rounds == FULL_PIPE_ROUND_TRIPS {
            return best_at;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::Known;

    /// Samples of one flow, a 10th of a second apart.
    fn samples(flow: u16, infos: Vec<TcpInfo>) -> Vec<Sample> {
        let sample = |(index, tcp): (usize, TcpInfo)| Sample {
            at_s: index as f64 / 10.0,
            sent_bytes: 0,
            received_bytes: 0,
            flows: vec![FlowSample {
                tcp: Known::Value(tcp),
                ..FlowSample::unreported(flow, Role::Sender, 0, "not asked")
            }],
        };
        infos.into_iter().enumerate().map(sample).collect()
    }

    fn window(cwnd: u64, ssthresh: u64) -> TcpInfo {
        TcpInfo {
            snd_cwnd_segments: Some(cwnd),
            snd_ssthresh_segments: Some(ssthresh),
            ..TcpInfo::default()
        }
    }

    /// BBR's samples: no threshold, bytes delivered at `rates`, a 10th of a second apart.
    fn delivered(rates: &[u64]) -> Vec<TcpInfo> {
        let mut bytes = 0;
        std::iter::once(&0)
            .chain(rates)
            .map(|rate| {
                bytes += rate;
                TcpInfo {
                    acked_bytes: Some(bytes),
                    rtt_us: Some(20_000),
                    ..window(10, TcpInfo::INFINITE_SSTHRESH)
                }
            })
            .collect()
    }

    #[test]
    fn ends_where_the_window_reaches_the_threshold() {
        let infos = vec![window(10, TcpInfo::INFINITE_SSTHRESH), window(80, 90), window(95, 90)];
        assert_eq!(ended_s(&samples(0, infos)), Some(0.2));
    }

    #[test]
    fn ends_with_the_first_retransmission() {
        let lost = TcpInfo { total_retrans_segments: Some(3), ..window(40, 90) };
        assert_eq!(ended_s(&samples(0, vec![window(80, 90), lost])), Some(0.1));
    }

    #[test]
    fn without_a_threshold_ends_where_growth_does() {
        let rates = [10, 20, 40, 80, 95, 96, 94, 95, 95];
        assert_eq!(ended_s(&samples(0, delivered(&rates))), Some(0.4));
        assert_eq!(ended_s(&samples(0, delivered(&[10, 20, 40, 80]))), None);
    }

    #[test]
    fn a_late_loss_does_not_make_slow_start_long() {
        let mut infos = delivered(&[100; 50]);
        infos.push(TcpInfo { total_retrans_segments: Some(1), ..infos[50].clone() });
        assert_eq!(ended_s(&samples(0, infos)), Some(0.1));
    }

    #[test]
    fn bursts_within_a_round_trip_are_not_a_plateau() {
        let long = |mut tcp: TcpInfo| {
            tcp.rtt_us = Some(400_000);
            tcp
        };
        let rates = [10, 0, 0, 0, 20, 0, 0, 0, 40, 0, 0, 0, 80, 0, 0, 0];
        let infos = delivered(&rates).into_iter().map(long).collect();
        assert_eq!(ended_s(&samples(0, infos)), None);
    }

    #[test]
    fn the_last_flow_decides_and_a_silent_one_does_not() {
        let mut all = samples(0, vec![window(95, 90), window(95, 90), window(95, 90)]);
        let second = samples(1, vec![window(10, 90), window(10, 90), window(95, 90)]);
        let third = samples(2, vec![TcpInfo::default(); 3]);
        for (sample, others) in all.iter_mut().zip(second.into_iter().zip(third)) {
            sample.flows.extend(others.0.flows.into_iter().chain(others.1.flows));
        }
        assert_eq!(ended_s(&all), Some(0.2));
        assert_eq!(ended_s(&[]), None);
    }
}
