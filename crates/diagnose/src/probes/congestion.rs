//! Another congestion control: one that does not back off at each loss instead of one that does, and
//! vice versa. This does not distinguish a slow congestion control from loss: BBR is faster at both.

use goodput_model::{EndName, Missing, Record};

use super::{Pair, Probe, Reading, SetUp};
use crate::names::{TCP_AVAILABLE, TCP_CONGESTION};

pub const PROBE: Probe = Probe {
    id: "congestion",
    title: "another congestion control",
    set_up,
    pairs: &[Pair {
        one: "path-loss",
        other: "path-rate",
        read: Reading::Goodput { one_from: 2.0, other_to: 1.3 },
        why: "measured at 0.03 to 3 % random loss: BBR got 460 to 735 Mbit/s, CUBIC 3 to 43; then loss does not come from a full path",
    }],
};

/// Only from a control that backs off to BBR: the opposite change shows nothing about loss.
fn set_up(record: &Record) -> Result<SetUp, Missing> {
    let sender = match record.verdict.sender {
        EndName::Near => record.ends.near.get()?,
        EndName::Far => record.ends.far.get()?,
    };
    let present = match &record.plan.socket.congestion {
        Some(name) => name.as_str(),
        None => sender.before.text(TCP_CONGESTION)?,
    };
    let available = sender.before.text(TCP_AVAILABLE)?;
    if present.starts_with("bbr") {
        return Err(Missing::because("BBR is in use already"));
    }
    if !available.split_whitespace().any(|name| name == "bbr") {
        return Err(Missing::because(format!("the sender's kernel has only {available}")));
    }
    Ok(SetUp::plan(record, |plan| plan.socket.congestion = Some("bbr".into())))
}
