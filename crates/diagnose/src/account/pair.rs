//! Two detailed samples of an end, one after the other.

use std::collections::HashMap;

use goodput_model::{FlowSample, Role, Sample, TcpInfo};

/// Samples closer to each other are one, seconds.
const SHORTEST_S: f64 = 1e-4;

/// Flows between two samples.
pub struct Pair<'a> {
    /// Time of the first, seconds by that end's samples.
    pub from_s: f64,
    /// Time of the second.
    pub to_s: f64,
    /// Each flow that is in both.
    pub flows: Vec<(&'a FlowSample, &'a FlowSample)>,
}

impl<'a> Pair<'a> {
    /// All pairs, and in each the flows on which the end has this role, in the order of time. Samples of a peer may say
    /// anything of their time.
    pub fn all(samples: &'a [Sample], role: Role) -> Vec<Self> {
        let detailed: Vec<&Sample> = samples.iter().filter(|one| !one.flows.is_empty()).collect();
        let pair = |two: &[&'a Sample]| {
            let lasts_s = two[1].at_s - two[0].at_s;
            let is_one = lasts_s < SHORTEST_S || !lasts_s.is_finite();
            (!is_one).then(|| Self {
                from_s: two[0].at_s,
                to_s: two[1].at_s,
                flows: in_both(two[0], two[1], role),
            })
        };
        detailed.windows(2).filter_map(pair).collect()
    }

    /// How long it lasts, seconds.
    pub fn lasts_s(&self) -> f64 {
        self.to_s - self.from_s
    }

    /// The time between its samples, seconds.
    pub fn middle_s(&self) -> f64 {
        self.from_s.midpoint(self.to_s)
    }

    /// What all flows together got delivered, segments; nothing is known of one that does not report it.
    pub fn delivered_segments(&self) -> Option<f64> {
        self.grown(|tcp| tcp.delivered_segments)
    }

    /// What all flows together got acknowledged, bits per second; nothing is known of one that does not report it.
    pub fn rate(&self) -> Option<f64> {
        let bytes = self.grown(|tcp| tcp.acked_bytes)?;
        Some(bytes * 8.0 / self.lasts_s())
    }

    /// By how much a counter of all flows together grew.
    fn grown(&self, read: fn(&TcpInfo) -> Option<u64>) -> Option<f64> {
        let count = |flow: &FlowSample| read(flow.tcp.value()?);
        let grown = |(from, to): &(&FlowSample, &FlowSample)| {
            Some(count(to)?.saturating_sub(count(from)?) as f64)
        };
        self.flows.iter().map(grown).sum()
    }
}

fn in_both<'a>(
    from: &'a Sample,
    to: &'a Sample,
    role: Role,
) -> Vec<(&'a FlowSample, &'a FlowSample)> {
    let mine = |flow: &&FlowSample| flow.role == role;
    let before: HashMap<u16, &FlowSample> =
        from.flows.iter().filter(mine).map(|flow| (flow.flow, flow)).collect();
    let both = |later: &'a FlowSample| Some((*before.get(&later.flow)?, later));
    to.flows.iter().filter(mine).filter_map(both).collect()
}
