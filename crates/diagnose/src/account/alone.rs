//! The account of a receiver whose sender reports nothing, as a server of files: whether the receiver was the limit. What only
//! the sender knows stays unknown.

use std::collections::HashMap;

use goodput_model::{FlowSample, Limiter, Missing, Role};

use super::flow::Entry;
use super::pair::Pair;
use super::reader::{behind, throttled_share};
use super::share::{Ledger, Seat};
use crate::view::{View, WINDOW_IS_ALL_RATIOS};

/// Every interval of every flow that the receiver sampled, in the order of time.
///
/// # Errors
/// If the receiver reports no samples.
pub fn entries(view: &View) -> Result<Vec<Entry>, Missing> {
    let side = &view.receiver;
    let throttled_share = throttled_share(side);
    let mut entries = Vec::new();
    let mut before: HashMap<u16, Ledger> = HashMap::new();
    for pair in Pair::all(side.end()?, Role::Receiver) {
        let (from_s, to_s) = (pair.from_s, pair.to_s);
        let is_measured = side.is_measured(from_s) && side.is_measured(to_s);
        for (from, to) in &pair.flows {
            let ledger = ledger([from, to], to_s - from_s, throttled_share);
            let flow = to.flow;
            let as_before = match &ledger {
                Ok(now) => before.insert(flow, now.clone()),
                Err(_) => before.remove(&flow),
            };
            let as_before = as_before.map(|ledger| ledger.scaled_to(to_s - from_s));
            entries.push(Entry { flow, from_s, to_s, is_measured, ledger, as_before });
        }
    }
    Ok(entries)
}

fn ledger(
    [from, to]: [&FlowSample; 2],
    seconds: f64,
    throttled_share: f64,
) -> Result<Ledger, Missing> {
    let mut ledger = Ledger::default();
    if let Some(work) = behind([from, to], seconds, throttled_share) {
        ledger.enter_own(work.own_split(seconds * 1e6), Seat::Receiver, seconds);
    } else if window_is_all([from, to], seconds)? {
        ledger.enter(Limiter::ReceiveWindow, Seat::Receiver, seconds);
    } else {
        return Err(Missing::because(
            "the sender reports nothing, and the receiver was ready for more",
        ));
    }
    Ok(ledger.all_seen())
}

/// Whether one window in each round trip is all that arrived.
fn window_is_all([from, to]: [&FlowSample; 2], seconds: f64) -> Result<bool, Missing> {
    let tcp = to.tcp.get()?;
    let arrived = to.bytes.saturating_sub(from.bytes) as f64;
    let allowed = tcp.rcv_wnd_bytes()? as f64 / (tcp.rcv_rtt_us()? as f64 / 1e6) * seconds;
    Ok(WINDOW_IS_ALL_RATIOS.contains(&(allowed / arrived)))
}
