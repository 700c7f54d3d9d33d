//! A token bucket that can't give its configured rate, or whose queue is too short.

use goodput_ceiling::ETHERNET_HEADER_BYTES;
use goodput_ceiling::bucket::queue_bytes;
use goodput_model::Confidence;

use super::super::{Answer, Check, HostView, Scope};
use crate::finding::{bytes, rate};
use crate::names::{LINK_MTU, QDISC_BURST, QDISC_CEIL, QDISC_KIND, QDISC_LIMIT, QDISC_RATE};
use crate::shaper::{BATCH_BYTES, needed_burst};

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

/// Seconds of its rate; a shorter queue runs empty when TCP cuts its window.
const SHORT_QUEUE_S: f64 = 0.01;

/// The queue of tbf, which other shapers have in disciplines of their own.
pub(super) const QUEUE_TOO_SHORT: Check = Check {
    id: "queue-too-short",
    title: "a queue that holds less than one batch of packets",
    scope: Scope::Device,
    ask: &queue,
};

fn queue(check: &Check, host: &HostView) -> Answer {
    if host.text(QDISC_KIND)? != "tbf" {
        return Ok(None);
    }
    let (configured, limit) = (host.count(QDISC_RATE)?, host.count(QDISC_LIMIT)?);
    let frame = host.count(LINK_MTU)? + ETHERNET_HEADER_BYTES;
    let is_short = limit < BATCH_BYTES && limit < SHORT_QUEUE_S * configured / 8.0;
    if !is_short && limit >= 2.0 * frame {
        return Ok(None);
    }
    // A queue that no frame fits in lets nothing through.
    let confidence = if limit < frame { Confidence::Certain } else { Confidence::Likely };
    // How long round trips are is unknown here.
    let needed = queue_bytes(configured, 0.0);
    let text = format!(
        "the queue before {} holds {}; one batch of segmentation offload is {}",
        rate(configured),
        bytes(limit),
        bytes(BATCH_BYTES)
    );
    let (from, to) = (Some(format!("{limit:.0}")), format!("{needed:.0}"));
    let why = "10 ms at its rate, at least two batches of segmentation offload";
    check
        .draft(confidence, QDISC_LIMIT, limit, &text)
        .changes([host.change("qdisc.tbf.limit", from, &to, why)])
        .found()
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::{Finding, Snapshot};

    fn queue_of(rate: u64, limit: u64) -> Option<Finding> {
        let mut facts = Snapshot::default();
        facts.put(QDISC_KIND, "tbf");
        facts.put(QDISC_RATE, rate);
        facts.put(QDISC_LIMIT, limit);
        facts.put(LINK_MTU, 1500u64);
        QUEUE_TOO_SHORT.check(&HostView { device: Some("v1"), now: &facts, before: None }).unwrap()
    }

    #[test]
    fn a_queue_of_a_few_frames_is_found_and_raised() {
        let found = queue_of(50_000_000, 4000).unwrap();
        assert_eq!(found.changes[0].as_argument(), "qdisc.tbf.limit@v1=4000,140000");
        assert_eq!(found.confidence, Confidence::Likely);
        assert_eq!(queue_of(1_000_000_000, 15_360).unwrap().changes[0].to, "1250000");
        assert_eq!(queue_of(1_000_000, 1500).unwrap().confidence, Confidence::Certain);
    }

    #[test]
    fn a_queue_that_holds_a_batch_or_ten_milliseconds_stays() {
        assert_eq!(queue_of(50_000_000, 250_000), None);
        assert_eq!(queue_of(1_000_000, 4000), None, "32 ms");
        assert_eq!(queue_of(10_000_000_000, 100_000), None);
    }

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
