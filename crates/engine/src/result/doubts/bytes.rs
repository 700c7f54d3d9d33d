//! Whether a foreign far end's byte counts can belong to the same measurement. TCP loses nothing, so the two counts may
//! differ only by what was in flight when one end stopped counting.

use goodput_model::{BitRate, Bytes, End, EndName, FlowSample, Missing, Role, Transport};

use crate::result::measurement::Measurement;

/// What a far end may count that this end does not, bytes of each flow: a protocol's cookie or header, and the rounding
/// of a count in megabytes.
const MAX_HEADER_BYTES: u64 = 4096;

/// What a far end's send buffer may hold when it is asked to stop, bytes of each flow: the upper bound of Linux's
/// autotuning, net.ipv4.tcp_wmem (ip-sysctl.rst).
const MAX_SEND_BUFFER_BYTES: u64 = 4 << 20;

/// How much longer one end may count than the other, seconds: until the stop has reached every thread of a busy host.
const MAX_STOPPING_S: f64 = 0.02;

/// Counts of both ends that don't fit together, in words.
pub fn disagree(measurement: &Measurement) -> Vec<String> {
    let tcp = measurement.plan.transport == Transport::Tcp && measurement.far_totals.is_some();
    let senders = if tcp { measurement.senders() } else { Vec::new() };
    let disagreements = senders.into_iter().filter_map(|sender| match sender {
        EndName::Near => near_to_far(measurement).ok().flatten(),
        EndName::Far => far_to_near(measurement).ok().flatten(),
    });
    disagreements.collect()
}

fn near_to_far(measurement: &Measurement) -> Result<Option<String>, Missing> {
    let received = *measurement.far_counts(Role::Receiver).sum(|flow| &flow.bytes).get()?;
    let flows = last_flows(&measurement.near, Role::Sender);
    let sent: u64 = flows.iter().map(|flow| flow.bytes).sum();
    // In this end's socket, or in the far end's, which can't hold more than it ever announced. Some far ends discard
    // what still comes once they know that it is over.
    let mut on_its_way =
        MAX_HEADER_BYTES * flows.len() as u64 + sent_while_stopping(&measurement.near, sent);
    for flow in &flows {
        on_its_way +=
            flow.memory.get()?.sndbuf_bytes + widest_window(&measurement.near, flow.flow)?;
    }
    Ok(compare(sent, received, on_its_way, flows.len()))
}

fn far_to_near(measurement: &Measurement) -> Result<Option<String>, Missing> {
    let sent = *measurement.far_counts(Role::Sender).sum(|flow| &flow.bytes).get()?;
    let flows = last_flows(&measurement.near, Role::Receiver);
    let received: u64 = flows.iter().map(|flow| flow.bytes).sum();
    let mut on_its_way = sent_while_stopping(&measurement.near, received);
    for flow in &flows {
        on_its_way += MAX_SEND_BUFFER_BYTES + flow.memory.get()?.rcvbuf_bytes;
    }
    Ok(compare(sent, received, on_its_way, flows.len()))
}

fn sent_while_stopping(end: &End, bytes: u64) -> u64 {
    let rate = end.last_sample().and_then(|last| BitRate::over(bytes, last.at_s));
    rate.map_or(0.0, |rate| rate.bytes_in(MAX_STOPPING_S)) as u64
}

fn compare(sent: u64, received: u64, on_its_way: u64, flows: usize) -> Option<String> {
    let (all, less) = (Bytes(sent), sent.saturating_sub(received));
    if less > on_its_way {
        return Some(format!(
            "the far end reports {} of the {all} sent as not received; at most {} could be in flight at the end, so one count is wrong, or something on the path received the rest instead",
            Bytes(less),
            Bytes(on_its_way)
        ));
    }
    let more = received.saturating_sub(sent);
    (more > MAX_HEADER_BYTES * flows as u64).then(|| {
        format!(
            "the far end reports {} more received than the {all} sent: one of the counts includes other traffic",
            Bytes(more)
        )
    })
}

fn last_flows(end: &End, role: Role) -> Vec<&FlowSample> {
    let last = end.samples.iter().rev().find(|sample| !sample.flows.is_empty());
    last.iter().flat_map(|sample| &sample.flows).filter(|flow| flow.role == role).collect()
}

fn widest_window(end: &End, id: u16) -> Result<u64, Missing> {
    let flows = end.samples.iter().flat_map(|sample| &sample.flows);
    let windows = flows.filter(|flow| flow.flow == id && flow.role == Role::Sender);
    let windows = windows.filter_map(|flow| flow.tcp.value()?.snd_wnd_bytes().ok());
    windows.max().ok_or_else(|| Missing::because("this kernel does not report the peer's window"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_may_differ_by_what_is_on_its_way() {
        assert_eq!(compare(1_000_000, 900_000, 100_000, 1), None);
        let words = compare(1_000_000, 900_000, 99_999, 1).unwrap();
        assert!(words.contains("100 kB of the 1 MB"), "{words}");
    }

    #[test]
    fn more_than_was_sent_is_only_a_header_or_a_rounding() {
        assert_eq!(compare(1000, 1000 + MAX_HEADER_BYTES, 0, 1), None);
        assert!(
            compare(1000, 1001 + MAX_HEADER_BYTES, 0, 1)
                .unwrap()
                .contains("includes other traffic")
        );
    }
}
