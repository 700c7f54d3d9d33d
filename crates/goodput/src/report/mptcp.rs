//! How many subflows the flows had, if they were to be MPTCP.

use goodput_model::{Known, Record};

/// The most subflows that each flow was seen with at this end. That one fell back is a note of its own.
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
