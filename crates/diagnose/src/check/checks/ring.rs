//! How long the receive ring lasts at line rate, compared with how late this host's CPUs wake up.

use goodput_model::{Change, Confidence, Place};

use super::super::{Answer, Check, HostView, Scope};
use super::wakeups::LONGEST;
use crate::finding::{Draft, rate, time};
use crate::names::{LINK_SPEED, RING_RX, RING_RX_MAX};
use crate::view::positive;

/// Bits of a full frame of MTU 1500 on the wire: 1518 bytes, preamble and gap (IEEE 802.3).
const FRAME_BITS: f64 = 1538.0 * 8.0;
/// A ring that lasts this long bridges the usual gaps of a busy Linux host, seconds.
const MIN_RING_S: f64 = 0.001;

pub(super) const RING: Check = Check {
    id: "ring-size",
    title: "a receive ring too short for the gaps between two polls",
    scope: Scope::Device,
    ask: &ring,
};

fn ring(check: &Check, host: &HostView) -> Answer {
    let frames = host.count(RING_RX)?;
    host.count(RING_RX_MAX)?;
    let speed = positive(host.count(LINK_SPEED)?, "the link's speed")?;
    let lasts = frames * FRAME_BITS / speed;
    let gap = host.number(LONGEST).map(|us| us / 1e6);
    let confidence = match gap {
        Ok(gap) if gap > lasts => Confidence::Likely,
        Err(_) if lasts < MIN_RING_S => Confidence::Possible,
        _ => return Ok(None),
    };
    let ring = format!("receive ring of {frames} frames = {} at {}", time(lasts), rate(speed));
    let summary = match gap {
        Ok(gap) => format!("{ring}; longest gap seen on a CPU: {}", time(gap)),
        Err(_) => ring.clone(),
    };
    Draft::new(check.id, Place::Near, confidence, summary)
        .saw(Place::Near, "ring.rx_frames", frames, ring)
        .saw_if(Place::Near, LONGEST, gap, |gap| format!("a CPU woke up {} late", time(gap)))
        .changes(larger(host))
        .found()
}

/// The largest ring that the card has.
pub(super) fn larger(host: &HostView) -> Option<Change> {
    let (frames, largest) = (host.count(RING_RX).ok()?, host.count(RING_RX_MAX).ok()?);
    let (from, to) = (Some(format!("{frames:.0}")), format!("{largest:.0}"));
    (largest > frames).then(|| host.change("ring.rx", from, &to, "bridges longer gaps"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::{Finding, Snapshot};

    fn facts(frames: u64, gap_us: Option<f64>) -> Snapshot {
        let mut facts = Snapshot::default();
        facts.put("ring.rx_frames", frames);
        facts.put("ring.rx_max_frames", 4096u64);
        facts.put(LINK_SPEED, 1_000_000_000u64);
        if let Some(us) = gap_us {
            facts.put(LONGEST, us);
        }
        facts
    }

    fn of(facts: &Snapshot) -> Option<Finding> {
        RING.check(&HostView { device: Some("eth0"), now: facts, before: None }).unwrap()
    }

    #[test]
    fn a_ring_shorter_than_the_gap_seen_is_found() {
        let finding = of(&facts(256, Some(4800.0))).unwrap();
        for fact in ["256 frames", "3.1", "1 Gbit/s", "4.80 ms"] {
            assert!(finding.summary.contains(fact), "{fact} in {}", finding.summary);
        }
        assert_eq!(finding.changes[0].to, "4096");
        assert_eq!(of(&facts(1024, Some(4800.0))), None);
    }

    #[test]
    fn without_a_watch_only_a_short_ring_is_worth_a_word() {
        assert_eq!(of(&facts(64, None)).unwrap().confidence, Confidence::Possible);
        assert_eq!(of(&facts(256, None)), None);
    }
}
