//! The datagrams of a train that came, and what both ends counted of it.

use goodput_model::{Direction, ETHERNET_HEADER_BYTES, End, EndName, FlowSample, Missing, Plan};
use goodput_shaping::{Sizes, Train};

use crate::result::dropped::dropped_share;
use crate::result::measurement::Measurement;

/// The mover that joins datagrams.
pub(super) const JOINING: &str = "gso";
/// Largest share of the datagrams that the receiving socket may drop: more would look like a policer.
const MAX_DROPPED_SHARE: f64 = 0.005;
/// Most datagrams that the sender joins to one packet: `UDP_MAX_SEGMENTS` (include/linux/udp.h) of Linux 4.18 to 6.8, to which the mover
/// keeps. One call may send several such packets.
const MOST_JOINED: f64 = 64.0;
/// Smallest share of the lost datagrams that the receiving host itself has dropped, if they don't show what the path does.
const MAX_OWN_LOSS_SHARE: f64 = 0.5;
/// Packets that a receiving host drops before a socket gets them: no room in the card's ring, in the CPU's backlog.
const HOST_DROPS: [&str; 2] = ["link.rx_missed_errors", "softnet.dropped"];
/// Header of a datagram, bytes (RFC 768).
const UDP_HEADER_BYTES: u64 = 8;

/// The datagrams that came, as the receiving end reports them.
///
/// # Errors
/// If an end does not report its part, the receiving socket dropped too many, or a datagram came that was not sent.
pub(super) fn train(measurement: &Measurement) -> Result<Train, Missing> {
    let plan = &measurement.plan;
    let sender = if plan.direction == Direction::Reverse { EndName::Far } else { EndName::Near };
    let receiver = measurement.end(sender.other());
    let dropped = receiver.map_or(Ok(0.0), dropped_share)?;
    if dropped > MAX_DROPPED_SHARE {
        let percent = dropped * 100.0;
        return Err(Missing::because(format!(
            "the receiving socket dropped {percent:.1} % of the datagrams: that host is too busy, or its buffers are too small"
        )));
    }
    let arrivals = receiver.and_then(|end| end.arrivals.first());
    let arrivals = arrivals.ok_or_else(|| Missing::because("the receiver kept no arrivals"))?;
    let last = measurement.end(sender).and_then(|end| end.last_sample());
    let last = last.ok_or_else(|| Missing::because("the sender reports no counts"))?;
    let sent = last.sent_bytes / plan.chunk_bytes.0;
    let flow = last.flows.first().ok_or_else(|| Missing::because("the sender reports no flow"))?;
    // A sender that does not count its calls is taken for one that joins nothing.
    let calls = flow.calls.value().map_or(sent as f64, |calls| (*calls as f64).max(1.0));
    let over_v6 = measurement.connections.first().is_some_and(|flow| flow.remote.is_ipv6());
    let packet = plan.chunk_bytes.0 + UDP_HEADER_BYTES + if over_v6 { 40 } else { 20 };
    let frame = packet + u64::from(ETHERNET_HEADER_BYTES);
    let train = Train {
        arrivals: arrivals.datagrams.clone(),
        sent,
        refused: flow.datagrams.as_ref().map_or(0, |counts| counts.refused),
        sizes: Sizes { payload: plan.chunk_bytes.0, packet, frame },
        held_percent: held_percent(flow, last.at_s).into(),
        rate_waits_per_call: rate_waits(measurement, sender).map(|waits| waits / calls).into(),
        batch: sent as f64 / calls,
        joined: joined(plan, sent as f64 / calls),
    };
    let own = receiver.map_or(0, dropped_by_host);
    by_path(train.checked()?, own)
}

/// Average number of datagrams in a packet, if the sender's mover joins them. Others may send several in a call, too, each in a packet
/// of its own.
fn joined(plan: &Plan, per_call: f64) -> Option<f64> {
    (plan.mover == JOINING).then(|| per_call.min(MOST_JOINED))
}

/// Packets that a host dropped before they came to its sockets, as far as it counts them.
fn dropped_by_host(receiver: &End) -> u64 {
    let grown = |name: &&str| receiver.before.grown(&receiver.after, name).ok();
    HOST_DROPS.iter().filter_map(grown).fold(0, u64::saturating_add)
}

/// The train, unless the receiving host `dropped` most of what was lost: that would look like a policer.
fn by_path(train: Train, dropped: u64) -> Result<Train, Missing> {
    let lost = train.sent.saturating_sub(train.arrivals.len() as u64);
    let is_much = dropped as f64 > MAX_DROPPED_SHARE * train.sent as f64;
    if is_much && dropped as f64 >= MAX_OWN_LOSS_SHARE * lost as f64 {
        return Err(Missing::because(format!(
            "the receiving host dropped {dropped} packets before its socket got them, and {lost} datagrams are missing: that \
             host is too busy, or its receive ring or backlog is too short"
        )));
    }
    Ok(train)
}

/// How often the sender's queueing discipline waited for its rate.
fn rate_waits(measurement: &Measurement, sender: EndName) -> Result<f64, Missing> {
    let none = || Missing::because("the sender reports nothing");
    let end = measurement.end(sender).ok_or_else(none)?;
    Ok(end.before.grown(&end.after, "qdisc.overlimits")? as f64)
}

/// How long the sender waited for its own queue, percent of the time until its last sample.
fn held_percent(flow: &FlowSample, at_s: f64) -> Result<f64, Missing> {
    let blocked_s = *flow.blocked_us.get()? as f64 / 1e6;
    match at_s > 0.0 {
        true => Ok(blocked_s / at_s * 100.0),
        false => Err(Missing::because("its only sample is from the beginning")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::{
        Arrival, Bytes, DatagramCounts, FlowArrivals, Host, Known, Role, Sample, SocketMemory,
        Transport,
    };

    /// A train of 20 datagrams, the last of which the far end reports by this number.
    fn reported(last: u64) -> Measurement {
        let chunk_bytes = Bytes(1472);
        let plan = Plan { transport: Transport::Udp, chunk_bytes, ..Plan::standard() };
        let end = |role| {
            let bytes = 20 * chunk_bytes.0;
            let mut flow = FlowSample::unreported(0, role, bytes, "not looked at");
            let datagrams = DatagramCounts { received: 20, ..DatagramCounts::default() };
            flow.datagrams = Some(datagrams);
            flow.memory = Known::Value(SocketMemory {
                rmem_alloc_bytes: 0,
                rcvbuf_bytes: 0,
                wmem_alloc_bytes: 0,
                sndbuf_bytes: 0,
                wmem_queued_bytes: 0,
                backlog_bytes: 0,
                drops: 0,
            });
            let sample =
                Sample { at_s: 1.0, sent_bytes: bytes, received_bytes: bytes, flows: vec![flow] };
            End { samples: vec![sample], ..End::unobserved(Host::foreign("made up")) }
        };
        let numbers = (0..19).chain([last]);
        let arrival = |number: u64| Arrival { number, sent_ns: number % 32, came_ns: number % 32 };
        let datagrams = numbers.map(arrival).collect();
        let arrivals = vec![FlowArrivals { flow: 0, datagrams }];
        let far = Known::Value(End { arrivals, ..end(Role::Receiver) }.into());
        Measurement::made_up(plan, end(Role::Sender), far)
    }

    #[test]
    fn a_far_end_that_reports_datagrams_which_were_not_sent_is_not_believed() {
        let honest = train(&reported(19)).unwrap();
        assert_eq!((honest.sent, honest.arrivals.len()), (20, 20));
        for wrong in [20, u64::MAX] {
            let why = train(&reported(wrong)).unwrap_err().to_string();
            assert!(why.contains("only 20 were sent"), "{why}");
        }
    }

    /// The same number of datagrams in a call leave one by one (`sendmmsg`), or in as many packets as hold them.
    #[test]
    fn only_a_mover_that_joins_sends_joined_datagrams() {
        let by = |mover: &str, per_call| {
            joined(&Plan { mover: mover.into(), ..Plan::standard() }, per_call)
        };
        assert_eq!(by("copy", 32.0), None);
        assert_eq!(by("gso", 44.0), Some(44.0));
        assert_eq!(by("gso", 655.0), Some(64.0));
    }

    #[test]
    fn what_the_receiving_host_drops_is_not_held_against_the_path() {
        let whole = train(&reported(19)).unwrap();
        let of = |lost: usize, dropped| {
            let arrivals = whole.arrivals[lost..].to_vec();
            by_path(Train { arrivals, ..whole.clone() }, dropped)
        };
        assert!(of(8, 0).is_ok() && of(8, 3).is_ok() && of(0, 0).is_ok());
        let why = of(8, 4).unwrap_err().to_string();
        assert!(why.contains("dropped 4 packets") && why.contains("8 datagrams"), "{why}");
    }
}
