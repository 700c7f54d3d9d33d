//! Doubts about a measurement that its own numbers raise.

mod beginning;
mod bytes;
mod copies;
mod lost;

use goodput_model::{End, EndName, EndResult, FlowSample, Known, Outcome, Plan, SocketOptions};
use goodput_mover::socket::cut_buffer;

use crate::result::measurement::Measurement;

/// Share of one CPU that a hypervisor may take before results vary with its other guests, percent.
/// Below it, the accounting of /proc/stat is mostly rounding.
const STEAL_PERCENT: f64 = 2.0;

/// What a reader should know before believing the numbers.
pub fn doubts(measurement: &Measurement, result: &Outcome) -> Vec<String> {
    let ends = [("near", &result.near), ("far", &result.far)];
    let stolen = steal(ends).into_iter();
    let cut = measurement.far.value().map(|far| cut(far, &measurement.plan.socket));
    let disagreements = uncounted(measurement).chain(bytes::disagree(measurement));
    let copied =
        [EndName::Near, EndName::Far].into_iter().flat_map(|end| copies::made(measurement, end));
    let cut = cut.into_iter().flatten();
    let fallen = fell_back(measurement).into_iter();
    let doubts =
        stolen.chain(fallen).chain(unreported(measurement)).chain(silent(measurement)).chain(cut);
    let doubts = doubts.chain(disagreements).chain(copied).chain(coarse(&measurement.plan));
    doubts
        .chain(senders_times(measurement))
        .chain(measurement.omitted_nothing())
        .chain(beginning::counted(measurement))
        .chain(lost::flows(measurement))
        .collect()
}

/// Senders whose device does not hold datagrams until the times that the mover `txtime` gave them. The
/// leaves of mq are not checked.
fn senders_times(measurement: &Measurement) -> Vec<String> {
    if measurement.plan.mover != "txtime" {
        return Vec::new();
    }
    let kind = |end| Some((end, measurement.end(end)?.before.text("qdisc.kind").ok()?));
    let kinds = measurement.senders().into_iter().filter_map(kind);
    let ignoring = kinds.filter(|(_, kind)| !["fq", "mq"].contains(kind));
    let words = ignoring.map(|(end, kind)| {
        format!(
            "the {kind} qdisc of the {end} end ignores the times set by mover txtime, so datagrams left in batches; fq keeps the times (tc qdisc replace dev DEVICE root fq)"
        )
    });
    words.collect()
}

/// What the far kernel made of the requested buffers, by its flows' own memory. The near end compares
/// its own when it opens its sockets.
fn cut(far: &End, asked: &SocketOptions) -> Vec<String> {
    let last = far.samples.iter().rev().find(|sample| !sample.flows.is_empty());
    let flows = last.map_or(&[][..], |sample| &sample.flows);
    let mut found = Vec::new();
    for memory in flows.iter().filter_map(|flow| flow.memory.value()) {
        for (name, asked, has, sysctl) in [
            ("send", asked.sndbuf_bytes, memory.sndbuf_bytes, "net.core.wmem_max"),
            ("receive", asked.rcvbuf_bytes, memory.rcvbuf_bytes, "net.core.rmem_max"),
        ] {
            let limit =
                far.before.text(&format!("sysctl.{sysctl}")).ok().and_then(|t| t.parse().ok());
            let words = asked.and_then(|asked| cut_buffer(name, asked.0, has, sysctl, limit));
            found.extend(words.map(|words| format!("at the far end {words}")));
        }
    }
    // Every flow reports the same.
    found.sort();
    found.dedup();
    found
}

/// Whether connections that should be MPTCP are not, mostly as the connecting end sees them.
fn fell_back(measurement: &Measurement) -> Option<String> {
    let last = measurement.near.last_sample().filter(|_| measurement.plan.socket.mptcp)?;
    let subflows = |flow: &FlowSample| flow.mptcp_subflows.clone();
    let why = last.flows.iter().find_map(|flow| match subflows(flow) {
        Some(Known::Missing(why)) => Some(why.missing.to_string()),
        Some(Known::Value(_)) => None,
        None => Some("one connection lacks it".into()),
    })?;
    Some(format!("--mptcp: {why}"))
}

/// The receiver's count is the goodput. If goodput's own far end does not report it, the next best
/// count is used. Other programs are not expected to report it.
fn unreported(measurement: &Measurement) -> Option<String> {
    if measurement.far_totals.is_some() {
        return None;
    }
    let sends = measurement.senders().contains(&EndName::Near);
    let why = measurement.far.get().err().filter(|_| sends)?;
    Some(format!("{why}: the received bytes are those that its TCP acknowledged"))
}

/// What replaces the count of a receiver that fell silent.
fn silent(measurement: &Measurement) -> Option<String> {
    let sends = measurement.senders().contains(&EndName::Near);
    let silence = measurement.silence().filter(|_| sends)?;
    let instead = match measurement.partly_counted(EndName::Near) {
        Some(_) => "the goodput is that of the time before; no end reports what arrived afterwards",
        None => "the received bytes are those that its TCP acknowledged",
    };
    Some(format!("{silence}: {instead}"))
}

/// Directions in which payload moved, but nothing shows what arrived.
fn uncounted(measurement: &Measurement) -> impl Iterator<Item = String> {
    let senders = measurement.senders().into_iter();
    senders.filter(|sender| measurement.measured(*sender).is_none()).map(|sender| {
        let why = match (sender, &measurement.far) {
            (EndName::Near, Known::Missing(why)) => why.to_string(),
            _ => "the receiver counted nothing".into(),
        };
        format!("no end reports what arrived from the {sender} end: {why}")
    })
}

/// A rate at which few packets leave: the result can be off by one whole packet.
fn coarse(plan: &Plan) -> Option<String> {
    let packets = goodput_wire::check::few(plan)?;
    let percent = 100.0 / packets;
    Some(format!(
        "at this rate a flow sends about {packets:.0} packets in the test: one more or less is {percent:.0} % of the result; use a smaller --chunk or a longer time"
    ))
}

/// One note for both ends: two virtual machines of one host report the same.
fn steal(ends: [(&str, &EndResult); 2]) -> Option<String> {
    let took = ends.iter().filter_map(|(name, end)| match end.steal_percent {
        Known::Value(percent) if percent > STEAL_PERCENT => {
            Some(format!("{percent:.0} % of a CPU away from the {name} host"))
        }
        _ => None,
    });
    let took = took.collect::<Vec<_>>().join(" and ");
    (!took.is_empty()).then(|| {
        format!("a hypervisor took {took} during the test: its other guests affect the numbers")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::{Bytes, FlowSample, Host, Role, Sample, Snapshot, SocketMemory};

    pub(super) fn flow(sndbuf_bytes: u64) -> FlowSample {
        let memory = SocketMemory {
            rmem_alloc_bytes: 0,
            rcvbuf_bytes: 131_072,
            wmem_alloc_bytes: 0,
            sndbuf_bytes,
            wmem_queued_bytes: 0,
            backlog_bytes: 0,
            drops: 0,
        };
        FlowSample {
            memory: Known::Value(memory),
            ..FlowSample::unreported(0, Role::Sender, 0, "not asked")
        }
    }

    #[test]
    fn what_the_far_kernel_cut_is_reported_once_with_its_limit() {
        let mut before = Snapshot::default();
        before.put("sysctl.net.core.wmem_max", "212992");
        let flows = vec![flow(425_984), flow(425_984)];
        let samples = vec![Sample { at_s: 1.0, sent_bytes: 0, received_bytes: 0, flows }];
        let host = Host { name: "b".into(), kernel: "Linux".into(), goodput: "0".into(), cpus: 1 };
        let far = End { before, samples, ..End::unobserved(host) };
        let asked =
            |bytes| SocketOptions { sndbuf_bytes: Some(Bytes(bytes)), ..SocketOptions::default() };
        let cuts = cut(&far, &asked(1 << 20));
        assert_eq!(cuts.len(), 1, "{cuts:?}");
        assert!(cuts[0].starts_with("at the far end a send buffer of 1048576 bytes"), "{cuts:?}");
        assert!(cuts[0].contains("net.core.wmem_max = 212992"), "{cuts:?}");
        assert!(cut(&far, &asked(212_992)).is_empty());
        assert!(cut(&far, &SocketOptions::default()).is_empty());
    }

    fn end(steal: Known<f64>) -> EndResult {
        let missing = || Known::missing("not asked");
        EndResult {
            cpu_percent: missing(),
            host_cpu_percent: missing(),
            softirq_percent: missing(),
            steal_percent: steal,
        }
    }

    #[test]
    fn a_hypervisor_that_takes_much_is_reported_once() {
        let words = |near, far| steal([("near", &end(near)), ("far", &end(far))]);
        let unknown = || Known::missing("no /proc/stat");
        assert!(words(Known::Value(1.0), unknown()).is_none());
        let one = words(unknown(), Known::Value(12.4)).unwrap();
        assert!(one.starts_with("a hypervisor took 12 % of a CPU away from the far host"), "{one}");
        let both = words(Known::Value(5.0), Known::Value(12.4)).unwrap();
        assert!(both.contains("5 % of a CPU away from the near host and 12 %"), "{both}");
    }
}
