//! The metrics of a route: its TCP parameters (`RTAX_*`, include/uapi/linux/rtnetlink.h).

use netlink_packet_route::route::RouteMetric;

/// TCP parameters that a route sets for its connections; `None` if unset.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RouteMetrics {
    /// Largest window to advertise, bytes.
    pub window: Option<u32>,
    /// Path MTU, bytes.
    pub mtu: Option<u32>,
    /// Maximum segment size to advertise, bytes.
    pub advmss: Option<u32>,
    /// Initial congestion window, segments.
    pub initcwnd: Option<u32>,
    /// Initial receive window, segments.
    pub initrwnd: Option<u32>,
    /// Smallest retransmission time-out, milliseconds.
    pub rto_min: Option<u32>,
    /// 1 to acknowledge every segment at once.
    pub quickack: Option<u32>,
    /// Features of TCP, bits (`RTAX_FEATURE_*`): [`ROUTE_FEATURE_ECN`] and others.
    pub features: Option<u32>,
    /// Name of the congestion control.
    pub congctl: Option<String>,
}

/// `RTAX_FEATURE_ECN`: connections over the route ask for congestion marks (RFC 3168).
pub const ROUTE_FEATURE_ECN: u32 = 1;

impl RouteMetrics {
    pub(crate) fn from_attributes(attributes: &[RouteMetric]) -> Self {
        let mut metrics = Self::default();
        for attribute in attributes {
            match attribute {
                RouteMetric::Window(value) => metrics.window = Some(*value),
                RouteMetric::Mtu(value) => metrics.mtu = Some(*value),
                RouteMetric::Advmss(value) => metrics.advmss = Some(*value),
                RouteMetric::InitCwnd(value) => metrics.initcwnd = Some(*value),
                RouteMetric::InitRwnd(value) => metrics.initrwnd = Some(*value),
                RouteMetric::RtoMin(value) => metrics.rto_min = Some(*value),
                RouteMetric::QuickAck(value) => metrics.quickack = Some(*value),
                RouteMetric::Features(value) => metrics.features = Some(*value),
                RouteMetric::CcAlgo(name) => metrics.congctl = Some(name.clone()),
                _ => {}
            }
        }
        metrics
    }

    /// The attributes that apply `self` and leave everything else of `original` as it is.
    pub(crate) fn onto(&self, original: &[RouteMetric]) -> Vec<RouteMetric> {
        let mut all: Vec<_> = original.iter().filter(|metric| !is_ours(metric)).cloned().collect();
        all.extend(self.window.map(RouteMetric::Window));
        all.extend(self.mtu.map(RouteMetric::Mtu));
        all.extend(self.advmss.map(RouteMetric::Advmss));
        all.extend(self.initcwnd.map(RouteMetric::InitCwnd));
        all.extend(self.initrwnd.map(RouteMetric::InitRwnd));
        all.extend(self.rto_min.map(RouteMetric::RtoMin));
        all.extend(self.quickack.map(RouteMetric::QuickAck));
        all.extend(self.features.map(RouteMetric::Features));
        all.extend(self.congctl.clone().map(RouteMetric::CcAlgo));
        all
    }
}

fn is_ours(metric: &RouteMetric) -> bool {
    matches!(
        metric,
        RouteMetric::Window(_)
            | RouteMetric::Mtu(_)
            | RouteMetric::Advmss(_)
            | RouteMetric::InitCwnd(_)
            | RouteMetric::InitRwnd(_)
            | RouteMetric::RtoMin(_)
            | RouteMetric::QuickAck(_)
            | RouteMetric::Features(_)
            | RouteMetric::CcAlgo(_)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_metric_changes_and_the_rest_stays() {
        let original =
            vec![RouteMetric::Lock(4), RouteMetric::Window(1000), RouteMetric::Hoplimit(9)];
        let mut metrics = RouteMetrics::from_attributes(&original);
        metrics.window = Some(2000);
        let changed = metrics.onto(&original);
        assert_eq!(
            changed,
            [RouteMetric::Lock(4), RouteMetric::Hoplimit(9), RouteMetric::Window(2000)]
        );
        metrics.window = None;
        assert_eq!(metrics.onto(&original), [RouteMetric::Lock(4), RouteMetric::Hoplimit(9)]);
    }
}
