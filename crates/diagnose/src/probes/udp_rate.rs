//! UDP above the measured rate: datagrams are sent whatever is lost, so the received rate is what the path
//! carries.

use goodput_model::{BitRate, Missing, Record, Transport};

use super::{Pair, Probe, Reading, SetUp};

/// Sent rate over the goodput: a rate limit that carries no more then loses a third.
const SENT_RATE_RATIO: f64 = 1.5;

pub const PROBE: Probe = Probe {
    id: "udp-rate",
    title: "UDP at 1.5 times the rate",
    set_up,
    pairs: &[
        Pair {
            one: "path-rate",
            other: "path-loss",
            read: Reading::Lost { one_from: 0.2, other_to: 0.1 },
            why: "a rate limit loses the third that exceeds it; random loss slows TCP down long before it reaches a tenth",
        },
        Pair {
            one: "path-rate",
            other: "congestion-control",
            read: Reading::Lost { one_from: 0.2, other_to: 0.1 },
            why: "no congestion control holds UDP back",
        },
        Pair {
            one: "path-rate",
            other: "receive-window",
            read: Reading::Lost { one_from: 0.2, other_to: 0.1 },
            why: "no window holds UDP back",
        },
    ],
};

fn set_up(record: &Record) -> Result<SetUp, Missing> {
    let goodput = record.result.goodput_bits_per_s.0;
    if record.plan.transport == Transport::Udp || goodput <= 0.0 {
        return Err(Missing::because("the probe needs a rate reached by TCP"));
    }
    Ok(SetUp::plan(record, |plan| {
        plan.transport = Transport::Udp;
        plan.chunk_bytes = Transport::Udp.standard_chunk();
        plan.mover = "copy".into();
        plan.rate_bits_per_s = Some(BitRate(SENT_RATE_RATIO * goodput));
        // Options of TCP.
        plan.socket.mss_bytes = None;
        plan.socket.congestion = None;
    }))
}
