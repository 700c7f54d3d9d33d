//! Paced at 80 % of the measured rate: drops for too much at once then stop; drops by
//! chance stay.

use goodput_model::{BitRate, Missing, Record};

use super::{Pair, Probe, Reading, SetUp};

/// Share of the goodput (diagnosis by pacing below a bucket's rate: its tokens never run out).
const PACED_RATE_SHARE: f64 = 0.8;

pub const PROBE: Probe = Probe {
    id: "paced",
    title: "pacing at 80 % of the rate",
    set_up,
    pairs: &[
        Pair {
            one: "path-loss",
            other: "policer",
            read: Reading::Retransmitted { one_from: 0.5, other_to: 0.2 },
            why: "random loss takes its share of whatever is sent; a bucket that fills faster than it empties drops only slow start's excess",
        },
        Pair {
            one: "path-loss",
            other: "path-rate",
            read: Reading::Retransmitted { one_from: 0.5, other_to: 0.2 },
            why: "a queue that does not fill drops nothing",
        },
        Pair {
            one: "path-loss",
            other: "queue-too-short",
            read: Reading::Retransmitted { one_from: 0.5, other_to: 0.2 },
            why: "spread-out bursts fit into a short queue",
        },
    ],
};

fn set_up(record: &Record) -> Result<SetUp, Missing> {
    let goodput = record.result.goodput_bits_per_s.0;
    if goodput <= 0.0 {
        return Err(Missing::because("nothing arrived"));
    }
    Ok(SetUp::plan(record, |plan| plan.rate_bits_per_s = Some(BitRate(PACED_RATE_SHARE * goodput))))
}
