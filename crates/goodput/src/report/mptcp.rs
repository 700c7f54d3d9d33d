//! The number of subflows, if the flows requested MPTCP.

use goodput_model::{Known, Record};

/// The highest number of subflows seen on each flow at this end. A separate note reports a flow that fell back.
pub fn phrase(record: &Record) -> Option<String> {
    let near = record.ends.near.value().filter(|_| record.plan.socket.mptcp)?;
    let samples = || near.samples.iter().flat_map(|sample| &sample.flows);
    let most = |id: u16| {
        let own = samples().filter(|flow| flow.flow == id);
        let counts = own.filter_map(|flow| flow.mptcp_subflows.as_ref().and_then(Known::value));
        counts.max().map_or("none".to_string(), u64::to_string)
    };
    let flows = record.plan.flow_plans();
    let each: Vec<_> = flows.iter().map(|flow| most(flow.id)).collect();
    Some(format!("subflows of each flow: {}", each.join(", ")))
}
