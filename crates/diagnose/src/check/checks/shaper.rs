//! A token bucket that can't give its configured rate.

use goodput_ceiling::ETHERNET_HEADER_BYTES;
use goodput_model::Confidence;

use super::super::{Answer, Check, HostView, Scope};
use crate::finding::{bytes, rate};
use crate::names::{LINK_MTU, QDISC_BURST, QDISC_CEIL, QDISC_KIND, QDISC_RATE};
use crate::shaper::needed_burst;

/// Share of the needed burst below which it is worth reporting: with slightly less than needed, a shaper still
/// gives nearly the whole rate.
const MAX_SMALL_BURST_SHARE: f64 = 0.25;

/// The bucket of tbf or htb.
pub(super) const SHAPER_BURST: Check = Check {
    id: "shaper-burst",
    title: "a token bucket too small for its rate",
    scope: Scope::Device,
    ask: &bucket,
};

fn bucket(check: &Check, host: &HostView) -> Answer {
    let kind = host.text(QDISC_KIND)?;
    if !["tbf", "htb"].contains(&kind) {
        return Ok(None);
    }
    let configured = host.count(QDISC_CEIL).or_else(|_| host.count(QDISC_RATE))?;
    let (burst, mtu) = (host.count(QDISC_BURST)?, host.count(LINK_MTU)?);
    let frame = mtu + ETHERNET_HEADER_BYTES;
    let needed = needed_burst(configured, frame);
    let confidence = match burst {
        b if b < frame => Confidence::Certain,
        b if b < MAX_SMALL_BURST_SHARE * needed => Confidence::Likely,
        _ => return Ok(None),
    };
    let text = format!(
        "{kind} of {} with a burst of {}: to reach this rate at low CPU cost, it needs {}",
        rate(configured),
        bytes(burst),
        bytes(needed)
    );
    let draft = check.draft(confidence, QDISC_BURST, burst, &text);
    let to = format!("{needed:.0}");
    match kind {
        "tbf" => {
            let from = Some(format!("{burst:.0}"));
            let why = "1 ms of the rate, at least one super-packet";
            draft.changes([host.change("qdisc.tbf.burst", from, &to, why)]).found()
        }
        _ => draft
            .advice(format!(
                "give the class of {kind} a burst and a cburst of {to} bytes (tc class change)"
            ))
            .permanent(
                "/etc/systemd/network/DEV.network",
                format!("[HierarchyTokenBucketClass]\nBufferBytes={to}\nCeilBufferBytes={to}"),
            )
            .found(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::{Finding, Snapshot};

    fn of(rate: u64, burst: u64) -> Option<Finding> {
        let mut facts = Snapshot::default();
        facts.put(QDISC_KIND, "tbf");
        facts.put(QDISC_RATE, rate);
        facts.put(QDISC_BURST, burst);
        facts.put(LINK_MTU, 1500u64);
        SHAPER_BURST.check(&HostView { device: Some("eth0"), now: &facts, before: None }).unwrap()
    }

    #[test]
    fn the_bucket_of_the_old_how_to_is_found() {
        assert_eq!(of(100_000_000, 10_240).unwrap().confidence, Confidence::Likely);
        assert_eq!(of(100_000_000, 1500).unwrap().confidence, Confidence::Certain);
        assert_eq!(of(100_000_000, 125_000), None);
    }
}
