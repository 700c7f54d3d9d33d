//! The tcp_info of each flow over the whole measurement.

use std::collections::HashMap;

use goodput_model::{FlowSample, Missing, Sample, TcpInfo};

use super::Side;

impl<'a> Side<'a> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Case;
    use crate::view::View;
    use goodput_model::Known;

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
}
