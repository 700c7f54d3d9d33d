//! Four flows: a limit on each flow allows four times as much; a limit on all of them does not.

use goodput_model::{Missing, Record};

use super::{Pair, Probe, Reading, SetUp};

const TRIED_FLOWS: u16 = 4;

pub const PROBE: Probe = Probe {
    id: "four-flows",
    title: "four times the flows",
    set_up,
    pairs: &[
        Pair {
            one: "per-flow-limit",
            other: "path-rate",
            read: Reading::Goodput { one_from: 2.0, other_to: 1.3 },
            why: "with a cap on each flow, four flows get four times as much, until the path is full",
        },
        Pair {
            one: "path-loss",
            other: "path-rate",
            read: Reading::Goodput { one_from: 2.0, other_to: 1.3 },
            why: "each flow backs off for its own losses: measured 30.8, 120.8 and 237.9 Mbit/s with 1, 4 and 8 flows",
        },
        Pair {
            one: "receive-window",
            other: "path-rate",
            read: Reading::Goodput { one_from: 2.0, other_to: 1.3 },
            why: "each flow has its own window",
        },
    ],
};

fn set_up(record: &Record) -> Result<SetUp, Missing> {
    let flows = record
        .plan
        .flows
        .checked_mul(TRIED_FLOWS)
        .filter(|flows| *flows <= 64)
        .ok_or_else(|| Missing::because("there are many flows already"))?;
    Ok(SetUp::plan(record, |plan| plan.flows = flows))
}
