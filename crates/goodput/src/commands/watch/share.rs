//! What a test moves so that all targets share the budget.

use anyhow::{Result, bail, ensure};
use goodput_model::{Bytes, Direction, Transport};
use goodput_watch::{Budget, cost_of, payload_of, round_up};

use super::path::Path;
use crate::args::WatchArgs;

/// Payload below which a test would show little but slow start (docs/watching.md, what short tests show).
const MIN_PAYLOAD: Bytes = Bytes(1_000_000);

/// The payload of a test that costs at most `share`, of one of `targets` targets.
///
/// # Errors
/// A share that is too small, with the smallest budget that is not.
pub fn payload(args: &WatchArgs, share: Bytes, targets: usize) -> Result<Bytes> {
    let length = &args.measure.length;
    // A file is as long as it is.
    let has_file = args.measure.files.source.is_some();
    let asks = length.bytes.is_some() || length.fetches.is_some() || has_file;
    let both = args.measure.direction.direction() == Direction::Both;
    let directions = if both { 2 } else { 1 };
    let payload = Bytes(payload_of(share).0 / directions);
    if payload < MIN_PAYLOAD && !asks {
        let needed = cost_of(Bytes(MIN_PAYLOAD.0 * directions));
        let smallest = Budget::smallest(needed, args.schedule.every, targets);
        bail!(
            "--budget leaves {share} for a test, and a test needs at least {MIN_PAYLOAD} of payload in each direction; \
             allow {}, test fewer targets, or less often (--every)",
            per_day(smallest)
        );
    }
    Ok(payload)
}

/// Refuses tests of datagrams as fast as this host sends them. A small one is over in milliseconds: its rate is that of a burst
/// into the queues on the way.
///
/// # Errors
/// With what to ask for.
pub fn check_rate(args: &WatchArgs) -> Result<()> {
    let measure = &args.measure;
    let is_burst = measure.direction.transport() == Transport::Udp && measure.load.rate.is_none();
    ensure!(
        !is_burst,
        "--udp needs --rate here: without it, a small test is one burst, whose rate says nothing of the path; ask for a rate \
         that the path should carry, as in --rate 20mbit"
    );
    Ok(())
}

/// What is said of tests of TCP that are too short for slow start; none of others.
pub fn short_tests(args: &WatchArgs) -> Option<String> {
    let measure = &args.measure;
    let bytes = measure.length.bytes.filter(|bytes| *bytes < MIN_PAYLOAD)?;
    (measure.direction.transport() == Transport::Tcp).then(|| {
        format!(
            "warning: tests of {bytes} may end within slow start: they show how fast connections start, not what the path can \
             carry; -n 1M or more shows more of the path"
        )
    })
}

/// Refuses a test that the whole budget is too small for.
///
/// # Errors
/// With the budget that it needs.
pub fn check_fits(path: &Path, budget: Bytes) -> Result<()> {
    match path.planned_cost() {
        Some(cost) if cost > budget => bail!(
            "--budget allows {budget} a day, and a test of {} may cost {cost}; allow {}, or make it smaller (-n)",
            path.text,
            per_day(round_up(cost.0))
        ),
        _ => Ok(()),
    }
}

/// A budget as --budget takes it.
fn per_day(budget: Bytes) -> String {
    format!("{budget}/day").replace(' ', "")
}
