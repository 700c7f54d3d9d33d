//! Two detailed samples of an end, one after the other.

use std::collections::HashMap;

use goodput_model::{End, FlowSample, Role, Sample, TcpInfo};

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
    /// All pairs, and in each the flows on which the end has this role until it lost them, in the order of time. Samples of a
    /// peer may say anything of their time.
    pub fn all(end: &'a End, role: Role) -> Vec<Self> {
        let detailed = end.samples.iter().filter(|one| !one.flows.is_empty());
        let detailed: Vec<&Sample> = detailed.collect();
        let mine = end.lost_flows.iter().filter(|lost| lost.role == role);
        let lost_at_s: HashMap<u16, f64> = mine.map(|lost| (lost.flow, lost.at_s)).collect();
        let pair = |two: &[&'a Sample]| {
            let lasts_s = two[1].at_s - two[0].at_s;
            let is_one = lasts_s < SHORTEST_S || !lasts_s.is_finite();
            // Counters of a lost flow stand still, as those of a program do that sends nothing.
            let is_there = |(_, to): &(&FlowSample, &FlowSample)| {
                lost_at_s.get(&to.flow).is_none_or(|lost_at_s| *lost_at_s >= two[1].at_s)
            };
            (!is_one).then(|| {
                let flows = in_both(two[0], two[1], role).into_iter().filter(is_there).collect();
                Self { from_s: two[0].at_s, to_s: two[1].at_s, flows }
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
    // Nearly always, each flow is in the same place of both.
    let same = |(before, later): &(&FlowSample, &FlowSample)| before.flow == later.flow;
    let (befores, laters) = (from.flows.iter().filter(mine), to.flows.iter().filter(mine));
    let both: Vec<_> = befores.clone().zip(laters.clone()).take_while(same).collect();
    if both.len() == laters.clone().count() {
        return both;
    }
    let before: HashMap<u16, &FlowSample> = befores.map(|flow| (flow.flow, flow)).collect();
    laters.filter_map(|later| Some((*before.get(&later.flow)?, later))).collect()
}

#[cfg(test)]
mod tests {
    use goodput_model::{Host, LostFlow};

    use super::*;

    #[test]
    fn a_lost_flow_is_there_until_it_is_lost() {
        let flow = |flow| FlowSample::unreported(flow, Role::Sender, 0, "not asked");
        let sample =
            |at_s| Sample { at_s, sent_bytes: 0, received_bytes: 0, flows: vec![flow(0), flow(1)] };
        let lost = |role| LostFlow { flow: 1, role, at_s: 1.5, why: "timed out".into() };
        let end = |role| End {
            samples: [0.0, 1.0, 2.0, 3.0].map(sample).into(),
            lost_flows: vec![lost(role)],
            ..End::unobserved(Host::foreign("x"))
        };
        let counts = |end: &End| -> Vec<usize> {
            Pair::all(end, Role::Sender).iter().map(|pair| pair.flows.len()).collect()
        };
        assert_eq!(counts(&end(Role::Sender)), [2, 1, 1]);
        assert_eq!(counts(&end(Role::Receiver)), [2, 2, 2], "of the other direction");
    }
}
