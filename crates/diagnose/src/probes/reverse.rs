//! The other direction: a slow host is slow both ways, at whichever end of the flow it is.

use goodput_model::{Direction, Missing, Record};

use super::{Pair, Probe, Reading, SetUp};

pub const PROBE: Probe = Probe {
    id: "reverse",
    title: "the opposite direction",
    set_up,
    pairs: &[Pair {
        one: "sender-cpu",
        other: "receiver-cpu",
        read: Reading::SameHost { least: 0.15 },
        why: "CPU shares on equal hosts differ by up to a tenth between runs",
    }],
};

fn set_up(record: &Record) -> Result<SetUp, Missing> {
    let turned = match record.plan.direction {
        Direction::Send => Direction::Reverse,
        Direction::Reverse => Direction::Send,
        Direction::Both => return Err(Missing::because("both directions were measured at once")),
    };
    Ok(SetUp::plan(record, |plan| plan.direction = turned))
}
