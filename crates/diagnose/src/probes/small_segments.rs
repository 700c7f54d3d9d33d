//! Small segments: MSS 536, which every path accepts (RFC 9293 section 3.7.1). A limit on packets then lets
//! less through; a limit on packet size lets these packets pass.

use goodput_model::{Missing, Record, Transport};

use super::{Pair, Probe, Reading, SetUp};

const SMALL_MSS_BYTES: u32 = 536;

pub const PROBE: Probe = Probe {
    id: "small-segments",
    title: "small segments (MSS 536)",
    set_up,
    pairs: &[
        Pair {
            one: "path-rate",
            other: "receiver-cpu",
            read: Reading::Goodput { one_from: 0.8, other_to: 0.65 },
            why: "headers alone cost 8 % of a rate (536/574 against 1448/1514); a CPU with a cost per packet does 2.7 times the work",
        },
        Pair {
            one: "path-rate",
            other: "sender-cpu",
            read: Reading::Goodput { one_from: 0.8, other_to: 0.65 },
            why: "headers alone cost 8 % of a rate; a CPU with a cost per packet does 2.7 times the work",
        },
        Pair {
            one: "pmtu-black-hole",
            other: "path-loss",
            read: Reading::Goodput { one_from: 2.0, other_to: 1.2 },
            why: "if large packets vanish, almost nothing passes; with random loss the rate falls with the segment size (Mathis et al. 1997)",
        },
        Pair {
            one: "mtu-mismatch",
            other: "path-loss",
            read: Reading::Goodput { one_from: 2.0, other_to: 1.2 },
            why: "full-sized frames are lost, small ones are not",
        },
        Pair {
            one: "path-rate",
            other: "small-mss",
            read: Reading::Goodput { one_from: 0.8, other_to: 0.65 },
            why: "if small segments already cost goodput, smaller ones cost more",
        },
    ],
};

fn set_up(record: &Record) -> Result<SetUp, Missing> {
    match record.plan.transport {
        Transport::Tcp => {
            Ok(SetUp::plan(record, |plan| plan.socket.mss_bytes = Some(SMALL_MSS_BYTES)))
        }
        Transport::Udp => Err(Missing::because("only TCP has segments")),
    }
}
