//! Lasting losses, as opposed to the cost of overshooting at the start.
//!
//! A sender that finds the rate of a path for the first time sends at up to twice that rate for a round trip,
//! and half of this may be lost. This ends with the first recovery (RFC 6675), and says nothing about
//! the path.

use std::collections::HashMap;

use goodput_model::{FlowSample, Missing, Sample, TcpInfo};

use super::{Side, positive};

/// `TCP_CA_Open` of include/uapi/linux/tcp.h: nothing is missing.
const CA_OPEN: u64 = 0;

/// Losses after the first recovery.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LastingLoss {
    /// Segments retransmitted.
    pub segments: f64,
    /// Share of the bytes that were retransmitted.
    pub share: f64,
}

impl<'a> Side<'a> {
    /// Retransmissions after each flow's first recovery, all flows together; those of the window
    /// if no flow ever recovered.
    pub fn lasting_loss(&self) -> Result<LastingLoss, Missing> {
        let (mut again, mut sent, mut segments) = (0.0, 0.0, 0.0);
        for flow in self.tcp_series()? {
            let Some(last) = flow.last() else { continue };
            let settled = settled(&flow).unwrap_or(0);
            let first = flow[settled];
            let grown = |from: u64, to: u64| to.saturating_sub(from) as f64;
            again += grown(first.retrans_bytes()?, last.retrans_bytes()?);
            sent += grown(first.sent_bytes()?, last.sent_bytes()?);
            segments += grown(first.total_retrans_segments()?, last.total_retrans_segments()?);
        }
        let share = again / positive(sent, "the bytes sent")?;
        Ok(LastingLoss { segments, share })
    }

    /// Thresholds to which the congestion window was cut, segments, for the flow with most of
    /// them. A full queue cuts a window at the same size each time, after the first; chance cuts at any size.
    pub fn cuts(&self) -> Result<Vec<f64>, Missing> {
        let mut most = Vec::new();
        for flow in self.tcp_series()? {
            let mut cuts: Vec<u64> = Vec::new();
            for tcp in &flow {
                let threshold = tcp.snd_ssthresh_segments()?;
                if threshold < TcpInfo::INFINITE_SSTHRESH && cuts.last() != Some(&threshold) {
                    cuts.push(threshold);
                }
            }
            if cuts.len() > most.len() {
                most = cuts;
            }
        }
        Ok(most.into_iter().map(|segments| segments as f64).collect())
    }

    /// The tcp_info of each flow over the whole measurement.
    pub(super) fn tcp_series(&self) -> Result<Vec<Vec<&'a TcpInfo>>, Missing> {
        let samples: Vec<&'a Sample> =
            self.end()?.samples.iter().filter(|s| !s.flows.is_empty()).collect();
        let last = samples.last().ok_or_else(|| Missing::because("no flow was sampled"))?;
        let is_mine = |flow: &&'a FlowSample| flow.role == self.role;
        // Gathered in one pass, because there may be a thousand flows.
        let mut series: HashMap<u16, Vec<Result<&'a TcpInfo, Missing>>> = HashMap::new();
        for flow in samples.iter().flat_map(|sample| &sample.flows).filter(is_mine) {
            series.entry(flow.flow).or_default().push(flow.tcp.get());
        }
        let ids = last.flows.iter().filter(is_mine).map(|flow| flow.flow);
        ids.filter_map(|id| series.remove(&id)).map(|one| one.into_iter().collect()).collect()
    }
}

/// The first sample after the first recovery; `None` if nothing was lost or nothing recovered.
fn settled(flow: &[&TcpInfo]) -> Option<usize> {
    let lost = |tcp: &TcpInfo| tcp.total_retrans_segments.is_some_and(|count| count > 0);
    let first = flow.iter().position(|tcp| lost(tcp))?;
    let open = |tcp: &TcpInfo| tcp.ca_state == Some(CA_OPEN);
    flow[first..].iter().position(|tcp| open(tcp)).map(|after| first + after)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Case;
    use crate::view::View;
    use goodput_model::Known;

    #[test]
    fn what_overshooting_cost_does_not_last() {
        let case = Case::healthy().tcp(|tcp, number| {
            tcp.ca_state = Some(if (3..7).contains(&number) { 3 } else { 0 });
            tcp.total_retrans_segments = Some(if number < 3 { 0 } else { 700 + number / 10 });
            tcp.retrans_bytes = tcp.total_retrans_segments.map(|n| n * 1448);
        });
        let evidence = case.evidence();
        let lasting = View::new(&evidence).sender.lasting_loss().unwrap();
        assert_eq!(lasting.segments, 4.0);
        assert!(lasting.share < 1e-4, "{lasting:?}");
    }

    /// Looking each flow up in each sample would take many seconds for these.
    #[test]
    fn each_of_very_many_flows_has_its_own_series() {
        let mut evidence = Case::healthy().evidence();
        let Known::Value(near) = &mut evidence.near else { panic!("a healthy case has both ends") };
        let near = std::sync::Arc::make_mut(near);
        for (at, sample) in near.samples.iter_mut().enumerate() {
            let one = sample.flows.pop().expect("each has one flow");
            sample.flows = (0..3000).map(|flow| FlowSample { flow, ..one.clone() }).collect();
            for flow in &mut sample.flows {
                let count = u64::from(flow.flow) + at as u64;
                let Known::Value(tcp) = &mut flow.tcp else { panic!("it is TCP") };
                tcp.total_retrans_segments = Some(count);
            }
        }
        let samples = near.samples.len() as u64;
        let series = View::new(&evidence).sender.tcp_series().unwrap();
        assert_eq!(series.len(), 3000);
        for (flow, series) in (0..).zip(&series) {
            let counts = series.iter().map(|tcp| tcp.total_retrans_segments.unwrap());
            assert!(counts.eq(flow..flow + samples), "flow {flow}");
        }
    }

    #[test]
    fn a_recovery_that_never_ends_lasts() {
        let case = Case::path_loss().retransmitted(0.05).tcp(|tcp, _| tcp.ca_state = Some(3));
        let evidence = case.evidence();
        let lasting = View::new(&evidence).sender.lasting_loss().unwrap();
        assert!((lasting.share - 0.05 / 1.05).abs() < 0.001, "{lasting:?}");
    }

    #[test]
    fn cuts_are_distinguished_by_their_threshold() {
        let case = Case::healthy().tcp(|tcp, number| {
            tcp.snd_ssthresh_segments = Some(match number {
                0..5 => TcpInfo::INFINITE_SSTHRESH,
                5..20 => 1784,
                20..30 => 1117,
                _ => 411,
            });
        });
        let evidence = case.evidence();
        assert_eq!(View::new(&evidence).sender.cuts().unwrap(), [1784.0, 1117.0, 411.0]);
    }
}
