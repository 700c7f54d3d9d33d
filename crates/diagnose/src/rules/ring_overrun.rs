//! # What it means
//! The receiving card had no free descriptor in its receive ring, and discarded frames that had
//! arrived intact.
//!
//! # Why it limits
//! The ring holds frames until a CPU empties it: 256 frames last 3.1 ms at 1 Gbit/s and 0.31 ms at
//! 10 Gbit/s. A longer burst is cut off, and the sender slows down as for any loss. Old cards with
//! room for 3 frames lost every datagram above 4 KiB in this way.
//!
//! # How it is seen
//! The card, its driver or the kernel counted missed frames, at least half as many as the flows
//! lost, and that loss explains the goodput or is at least 0.5 %.
//!
//! # What to try
//! A larger receive ring. If it is at its maximum: more queues, a sender that paces, or pause
//! frames.
//!
//! # When it is wrong
//! A CPU with no time left overruns a ring of any size; then softirq-saturation is reported, or
//! napi-budget if the CPU had time but no budget. A ring at its maximum on an idle host suggests
//! the host's interconnect. Drivers name these counters as they like. Of the names known here only
//! virtio's were seen on a device; the others come from the drivers' sources.
//!
//! # Source
//! Documentation/networking/statistics.rst and include/uapi/linux/if_link.h (`rx_missed_errors`);
//! Documentation/netlink/specs/netdev.yaml (`rx-hw-drop-overruns`); ethtool(8) `-G`, `-S`;
//! Ethernet-HOWTO ("overruns").

use goodput_model::{Change, Confidence, Finding, Missing};

use crate::bounds::next_after;
use crate::change::{more_queues, of_host};
use crate::finding::{Draft, percent};
use crate::lost_here::LostHere;
use crate::names::{RING_RX, RING_RX_MAX};
use crate::parts;
use crate::ring::{is_at_most, ring};
use crate::rule::{Depth, Rule};
use crate::view::{Side, View};

/// The rule.
pub const RULE: Rule = Rule {
    id: "ring-overrun",
    title: "The receive ring of the card is too short",
    refines: parts::LOSSES,
    depth: Depth::Reason,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "ring_drops_per_million_packets",
    witness_words: ("packets dropped at the ring per million", ""),
    source: include_str!("ring_overrun.rs"),
};

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    let side = &view.receiver;
    let drops = side.ring_drops()?;
    let Some(lost) = LostHere::of(view, drops)? else { return Ok(None) };
    let counter = side.ring_counter();
    let place = side.place();
    let device = side.device()?;
    let text = format!("{device} missed {drops:.0} frames because no buffer was free ({counter})");
    let at_most = is_at_most(side);
    // At its largest the ring is what it can be, and something else makes it overflow.
    let confidence =
        lost.confidence().min(if at_most { Confidence::Likely } else { Confidence::Certain });
    Draft::new(RULE.id, place, confidence, format!("the receive ring of {device}"))
        .saw(place, counter, drops, text)
        .saw(view.sender.place(), "lost", lost.lost, lost.text(view))
        .saw_if(place, RING_RX, side.count(RING_RX), |frames| ring(side, frames))
        .saw_if(place, "softirq_share", side.softirq_share(), |share| {
            format!("softirqs took {} of the busiest CPU", percent(share))
        })
        .predicted(next_after(view, &[RULE.id]))
        .changes(larger(side, device))
        .changes(more_queues(side).filter(|_| view.plan().flows > 1))
        .advice("let the sender pace: fq as its queueing discipline, or BBR")
        .changes(pausing(side, device))
        .permanent("/boot/loader.conf (FreeBSD, em)", "hw.em.rxd=\"4096\"")
        .found()
}

fn larger(side: &Side, device: &str) -> Option<Change> {
    let (now, most) = (side.count(RING_RX).ok()?, side.count(RING_RX_MAX).ok()?);
    let values = (Some(format!("{now:.0}")), format!("{most:.0}"));
    let why = "the card's maximum; costs memory, and cache on a slow link";
    (most > now).then(|| of_host(side, "ring.rx", Some(device), values, why))
}

/// Pause frames from a card that sends none.
fn pausing(side: &Side, device: &str) -> Option<Change> {
    let values = (Some("off".into()), "on".into());
    let why = "the card sends pause frames before the ring is full";
    let is_off = side.text("pause.tx") == Ok("off");
    is_off.then(|| of_host(side, "pause.tx", Some(device), values, why))
}

/// Frames that found no descriptor, per million that arrived.
fn witness(view: &View) -> Result<f64, Missing> {
    view.receiver.per_million_arrived(view.receiver.ring_drops()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::EndName::Far;
    use goodput_model::Place;

    fn overrun() -> Case {
        Case::path_loss().fact(Far, RING_RX, 256u64).fact(Far, RING_RX_MAX, 4096u64).grows(
            Far,
            "driver.rx_missed",
            7,
        )
    }

    #[test]
    fn fires_on_counted_overruns_and_enlarges_the_ring() {
        let finding = fires(&RULE, overrun());
        assert_eq!((finding.end, finding.confidence), (Place::Far, Confidence::Certain));
        assert_eq!(finding.changes[0].as_argument(), "far:ring.rx@eth0=256,4096");
        let ring = &finding.evidence[2].text;
        assert!(ring.contains("256 frames = 3.1"), "{ring}");
    }

    #[test]
    fn a_ring_at_its_most_is_not_changed() {
        let finding = fires(&RULE, overrun().fact(Far, RING_RX, 4096u64));
        assert!(finding.changes.is_empty());
        assert_eq!(finding.confidence, Confidence::Likely);
    }

    #[test]
    fn a_card_that_sends_no_pause_frames_may_send_some() {
        let finding = fires(&RULE, overrun().fact(Far, "pause.tx", "off"));
        let last = finding.changes.last().unwrap().as_argument();
        assert_eq!(last, "far:pause.tx@eth0=off,on");
    }

    #[test]
    fn it_takes_the_place_of_loss_on_the_path() {
        let diagnosis = crate::diagnose(&overrun().evidence());
        assert_eq!(diagnosis.verdict.limit, "ring-overrun");
        assert!(diagnosis.findings.iter().all(|f| f.rule != "path-loss"));
    }

    #[test]
    fn stays_quiet_where_the_ring_lost_little_of_what_was_lost_or_nothing_limits() {
        quiet(&RULE, overrun().grows(Far, "driver.rx_missed", 2));
        quiet(&RULE, Case::path_loss());
        quiet(&RULE, Case::healthy().grows(Far, "driver.rx_missed", 5000));
    }

    #[test]
    fn cannot_tell_without_counters() {
        cannot_tell(&RULE, Case::path_loss().without(Far, "link"));
        cannot_tell(&RULE, overrun().without_far());
    }
}
